/* SPDX-License-Identifier: MIT */
#include "plan/torch_keep.h"

void lst__torch_keep(lst__kept *kept, const char *what, uint64_t bytes)
{
    if (bytes == 0)
        return;
    kept->bytes += bytes;
    for (size_t i = 0; i < kept->n; i++) {
        if (kept->item[i].what == what) {
            kept->item[i].bytes += bytes;
            return;
        }
    }
    if (kept->n == LST__KEPT_MAX)
        return; /* the sum stays right; the list has no name for it */
    kept->item[kept->n].what = what;
    kept->item[kept->n++].bytes = bytes;
}

void lst__torch_keep_scalars(lst__kept *out, uint64_t n)
{
    out->scalar_bytes += 8 * n;
    lst__torch_keep(out, "wrapped Python numbers", 8 * n);
}

uint64_t lst__torch_mask_size(const lst__torch *c)
{
    return c->run->gpu ? 1 : c->compute; /* the CPU keeps a mask of the activation's dtype */
}

unsigned lst__torch_fused_targets(const lst__torch *c)
{
    if (c->gpt2)
        return LST_TARGET_Q | LST_TARGET_O | LST_TARGET_UP | LST_TARGET_DOWN;
    if (c->run->shape.family == LST_SHAPE_PHI3)
        return LST_TARGET_Q | LST_TARGET_O | LST_TARGET_GATE | LST_TARGET_DOWN;
    return LST_TARGET_ALL;
}

static unsigned count_bits(unsigned bits)
{
    unsigned n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

/* A fused projection is adapted if any of its parts is named. */
static unsigned adapted(const lst__torch *c, unsigned readers)
{
    unsigned lora = c->run->lora;
    if (c->gpt2 || c->run->shape.family == LST_SHAPE_PHI3) {
        if (lora & (LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V))
            lora |= LST_TARGET_Q;
        if (lora & (LST_TARGET_GATE | LST_TARGET_UP))
            lora |= LST_TARGET_GATE | LST_TARGET_UP;
    }
    return lora & readers;
}

static void keep_adapter_input(const lst__torch *c, const char *what, uint64_t width, uint64_t n, bool input_grad,
                               bool kept, lst__kept *out)
{
    const uint64_t size = c->autocast ? 2 : c->adapter;
    if (c->run->lora_dropout > 0) {
        /* Peft casts before it drops: the mask has the adapter's dtype on the CPU */
        if (input_grad)
            lst__torch_keep(out, "masks of adapter dropout", n * c->t * width * (c->run->gpu ? 1 : c->adapter));
        lst__torch_keep(out, "dropped inputs of adapters", n * c->t * width * size);
    } else if (c->autocast || size != c->compute) {
        lst__torch_keep(out, "inputs of adapters in their dtype", n * c->t * width * size);
    } else if (!kept) {
        lst__torch_keep(out, what, c->t * width * size);
    }
}

void lst__torch_keep_input(const lst__torch *c, const char *what, uint64_t width, unsigned readers, bool input_grad,
                           bool kept, lst__kept *out)
{
    const uint64_t all = count_bits(readers), adapters = count_bits(adapted(c, readers));
    if (!c->lora) {
        if (!kept) /* autocast: each linear keeps its own bfloat16 copy */
            lst__torch_keep(out, what, (c->autocast ? all : 1) * c->compute * c->t * width);
        return;
    }
    if (c->run->quant_keeps_inputs && c->run->base != LST_TORCH_BASE_PLAIN && !kept && input_grad) {
        lst__torch_keep(out, what, c->compute * c->t * width);
        kept = true;
    }
    if (adapters == 0)
        return;
    keep_adapter_input(c, what, width, adapters, input_grad, kept, out);
    lst__torch_keep(out, "outputs of the adapters' first matrix",
                    adapters * c->t * c->r * (c->autocast ? 2 : c->adapter));
    lst__torch_keep_scalars(out, adapters);
}

void lst__torch_keep_head(const lst__torch *c, lst__kept *out)
{
    const bool adapter = c->run->lora & LST_TARGET_HEAD;
    if (!c->lora || adapter)
        lst__torch_keep(out, "input of the head", c->compute * c->t * c->h);
    if (adapter)
        lst__torch_keep(out, "outputs of the adapters' first matrix", c->t * c->r * c->adapter);
    if (c->autocast)
        lst__torch_keep(out, "bfloat16 copy of the head", 2 * c->V * c->h);
}

uint64_t lst__torch_linear_elems(const lst__torch *c)
{
    const uint64_t mlp_matrices = c->gpt2 ? 2 : 3;
    return 2 * c->h * c->q + 2 * c->h * c->kv + mlp_matrices * c->h * c->i;
}

uint64_t lst__torch_bias_elems(const lst__torch *c)
{
    const lst_shape *s = &c->run->shape;
    if (c->gpt2)
        return 3 * c->h + c->h + c->i + c->h;
    return (s->qkv_bias ? c->q + 2 * c->kv : 0) + (s->o_bias ? c->h : 0) + (s->mlp_bias ? 2 * c->i + c->h : 0);
}

/* Widths summed over one layer's adapters: what they read, what they write, and what q, k, v of them read. */
typedef struct widths {
    uint64_t in, out, first_in;
} widths;

static widths adapter_widths(const lst__torch *c)
{
    const struct {
        unsigned target;
        uint64_t in, out;
    } linears[] = {
        {LST_TARGET_Q, c->h, c->gpt2 ? 3 * c->h : c->q},
        {LST_TARGET_K, c->h, c->kv},
        {LST_TARGET_V, c->h, c->kv},
        {LST_TARGET_O, c->q, c->h},
        {LST_TARGET_GATE, c->h, c->i},
        {LST_TARGET_UP, c->h, c->i},
        {LST_TARGET_DOWN, c->i, c->h},
    };
    widths sum = {0};
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++) {
        if (!(adapted(c, linears[i].target) & lst__torch_fused_targets(c)))
            continue;
        sum.in += linears[i].in;
        sum.out += linears[i].out;
        if (linears[i].target & (LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V))
            sum.first_in += linears[i].in;
    }
    return sum;
}

uint64_t lst__torch_cast_bytes(const lst__torch *c, bool first)
{
    const uint64_t qkv = c->h * (c->q + 2 * c->kv); /* needed only where a gradient flows on, below them */
    const uint64_t weights = 2 * (lst__torch_linear_elems(c) - (first ? qkv : 0));
    if (!c->lora)
        return weights;
    const widths w = adapter_widths(c);
    return weights + 2 * c->r * (w.out + w.in - (first ? w.first_in : 0));
}
