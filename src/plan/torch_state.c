/* SPDX-License-Identifier: MIT
 *
 * Optimizer state, tensor by tensor, and what a step allocates above it. Exceptions stand where they apply: 8-bit
 * states below 4,096 elements are float32, embeddings may be, a step counter is a 4-byte tensor.
 */
#include "plan/torch.h"

typedef struct sizes {
    uint64_t state;     /* of one tensor */
    uint64_t temporary; /* while it is stepped */
} sizes;

typedef struct stepper {
    const lst__torch *c;
    const lst_torch_run *run;
    uint64_t element;  /* bytes of an element of what is trained */
    uint64_t moment;   /* of an element of a full-size moment */
    uint64_t previous; /* elements of the tensor stepped before */
} stepper;

static sizes float_moments(const stepper *s, const lst__trainable *p, uint64_t count)
{
    return (sizes){.state = count * s->moment * p->elems};
}

static sizes adamw(const stepper *s, const lst__trainable *p)
{
    sizes out = float_moments(s, p, 2);
    out.state += 4;
    if (s->run->form == LST_TORCH_LOOP) /* two temporaries of this tensor, and one of the last */
        out.temporary = s->element * (2 * p->elems + s->previous) + 8 + s->element;
    return out;
}

static sizes adafactor(const stepper *s, const lst__trainable *p)
{
    const uint64_t statistics = p->cols ? s->element * (p->rows + p->cols) : 0;
    return (sizes){
        .state = 4 + (p->cols ? statistics : s->element * p->elems),
        .temporary = s->element * (p->elems + s->previous) + statistics + 12 + s->element,
    };
}

static sizes bitsandbytes8(const stepper *s, const lst__trainable *p)
{
    const bool wide = p->elems < 4096 || (p->embedding && s->run->embed_float32_state);
    const uint64_t blocks = (p->elems + 255) / 256;
    return (sizes){
        .state = wide ? 8 * p->elems : 2 * p->elems + 8 * blocks,
        /* its CUDA kernels update in place; its path on the CPU does not */
        .temporary = s->run->gpu ? 0
                                 : (wide              ? 12
                                    : s->element == 2 ? 24
                                                      : 20) *
                                           p->elems +
                                       12,
    };
}

static sizes torchao(const stepper *s, const lst__trainable *p, uint64_t bits, uint64_t block)
{
    const bool wide = p->elems < 4096 || p->elems % block != 0;
    const uint64_t tables = 2 * 4 * (bits == 8 ? 256u : 16u);
    sizes out = {
        .state = 4 + (wide ? 2 * s->element * p->elems : 2 * p->elems * bits / 8 + 8 * (p->elems / block) + tables)};
    if (s->run->compiled_optim || s->run->gpu)
        out.temporary = 8 * p->elems + p->elems / 32;
    else if (wide)
        out.temporary = 24 * p->elems + 8;
    else
        out.temporary = (s->element == 2 ? 57 : 53) * p->elems + p->elems / 64 + 8;
    if (s->run->gpu) /* fused: no copy of a tensor appears */
        out.temporary = 0;
    return out;
}

/* One moment for matrices inside the layers, AdamW's two for the rest. */
static sizes muon(const stepper *s, const lst__trainable *p)
{
    if (!p->hidden)
        return float_moments(s, p, 2);
    sizes out = float_moments(s, p, 1);
    out.temporary = 3 * 2 * p->elems; /* Newton-Schulz in bfloat16: the iterate, its Gram product, the next */
    return out;
}

/* Moments of the projected gradient; GaLore stores its projector, APOLLO makes it from a seed. */
static sizes projected(const stepper *s, const lst__trainable *p, bool projector)
{
    const uint64_t small = p->rows < p->cols ? p->rows : p->cols, large = p->rows + p->cols - small;
    uint64_t rank = s->run->optim_rank;
    if (!p->hidden || rank >= small)
        return float_moments(s, p, 2);
    sizes out = {.state = 2 * s->moment * rank * large + (projector ? s->element * rank * small : 0)};
    out.temporary = s->element * (p->elems + rank * large);
    return out;
}

/* int8 moments with a 16-bit scale a group of 32, and 8 more bits of each weight. */
static sizes flash(const stepper *s, const lst__trainable *p)
{
    const uint64_t groups = (p->elems + 31) / 32;
    return (sizes){.state = 2 * (p->elems + 2 * groups) + (s->element == 2 ? p->elems : 0)};
}

static sizes of_tensor(const stepper *s, const lst__trainable *p)
{
    switch (s->run->optim) {
    case LST_TORCH_SGD:
    case LST_TORCH_LOMO:
        return (sizes){0};
    case LST_TORCH_MOMENTUM:
    case LST_TORCH_LION:
        return float_moments(s, p, 1);
    case LST_TORCH_ADAFACTOR:
        return adafactor(s, p);
    case LST_TORCH_ADAMW8_BNB:
        return bitsandbytes8(s, p);
    case LST_TORCH_ADAMW8_AO:
        return torchao(s, p, 8, 256);
    case LST_TORCH_ADAMW4_AO:
        return torchao(s, p, 4, 128);
    case LST_TORCH_FLASHADAMW:
        return flash(s, p);
    case LST_TORCH_MUON:
        return muon(s, p);
    case LST_TORCH_GALORE:
        return projected(s, p, true);
    case LST_TORCH_APOLLO:
        return projected(s, p, false);
    default:
        return adamw(s, p);
    }
}

/* Whether state appears tensor by tensor as the first step goes, or all before any temporary. */
static bool grows_in_step(const lst_torch_run *run)
{
    return run->optim == LST_TORCH_ADAMW8_BNB || run->optim == LST_TORCH_ADAMW8_AO || run->optim == LST_TORCH_ADAMW4_AO;
}

static uint64_t setup_bytes(const lst_torch_run *run)
{
    switch (run->optim) {
    case LST_TORCH_ADAMW8_BNB:
        return 2048; /* two code tables of 256 floats */
    case LST_TORCH_ADAMW8_AO:
    case LST_TORCH_ADAMW4_AO:
        return 4; /* the learning rate, a tensor */
    default:
        return 0;
    }
}

/* What foreach and fused forms take once for all tensors, instead of tensor by tensor. */
static uint64_t whole_step_bytes(const stepper *s, const lst__trainables *trainable)
{
    const lst_torch_optim optim = s->run->optim;
    if (optim == LST_TORCH_MOMENTUM)
        return 8 + s->element;
    if (optim == LST_TORCH_ADAMW && s->run->form == LST_TORCH_FOREACH)
        return s->element * trainable->elems + 8 + s->element; /* one copy of all parameters */
    if (optim == LST_TORCH_ADAFACTOR && s->run->form == LST_TORCH_FOREACH)
        return s->element * trainable->elems; /* all updates at once */
    if (optim == LST_TORCH_ADAMW && s->run->form == LST_TORCH_FUSED)
        return 12;
    return 0;
}

void lst__torch_state(const lst__torch *c, const lst__trainables *trainable, lst__state_bytes *out)
{
    stepper s = {.c = c, .run = c->run, .element = c->lora ? c->adapter : c->weight};
    s.moment = c->run->float32_state || c->run->float32_master || c->run->float32_shards ? 4 : s.element;
    *out = (lst__state_bytes){.setup = setup_bytes(c->run)};
    uint64_t highest = 0;
    for (size_t i = 0; i < trainable->n; i++) {
        const lst__trainable *p = &trainable->item[i];
        sizes tensor = of_tensor(&s, p);
        if (c->run->float32_master)
            tensor.state += 4 * p->elems;
        out->state += tensor.state;
        if (c->run->optim == LST_TORCH_ADAMW8_BNB && tensor.state < 8 * p->elems)
            out->tables = out->setup;
        if (tensor.temporary > out->temporary)
            out->temporary = tensor.temporary;
        if (out->state + tensor.temporary > highest)
            highest = out->state + tensor.temporary;
        s.previous = p->elems;
    }
    if (c->run->optim == LST_TORCH_BADAM && c->run->blocks > 1) { /* float32 master and moments of one block */
        out->state = (4 + 8) * trainable->elems / c->run->blocks;
        out->temporary = 0;
    }
    const uint64_t whole = whole_step_bytes(&s, trainable);
    if (whole > out->temporary)
        out->temporary = whole;
    /* clipping: each gradient's norm, all of them stacked, the total; state is there already, or not yet */
    const uint64_t clip = c->run->clip ? 8 * (uint64_t)trainable->n + 4 : 0;
    out->first = grows_in_step(c->run) ? highest : out->state + out->temporary;
    if (c->run->optim == LST_TORCH_MOMENTUM)
        out->first = out->state; /* the buffers are made from the gradients, and nothing is added yet */
    if (clip > out->first)
        out->first = clip;
    if (clip > out->temporary)
        out->temporary = clip;
}
