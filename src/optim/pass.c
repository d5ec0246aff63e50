/* SPDX-License-Identifier: MIT */
#include "optim/pass.h"

#include <string.h>

/* A task: 32 Ki elements (128 KiB an array) are enough work to hide the cost of dealing it, and few enough that two
 * threads finish together. Huge tensors have larger tasks, so that their sums fit in a small array. */
#define TASK_ELEMS 32768
/* A tile's buffers are set apart by a little more than a power of two: arrays at the same offset modulo 4,096 delay
 * each other (a load waits for a store that merely looks like the same address). */
#define BUFFER_STRIDE (LST__MAX_TILE + 144)
#define N_BUFFERS (2 + LST__RULE_STATES)

static size_t task_elems(size_t n_elems)
{
    const size_t share = (n_elems + LST__MAX_TASKS - 1) / LST__MAX_TASKS;
    if (share <= TASK_ELEMS)
        return TASK_ELEMS;
    return (share + LST__MAX_TILE - 1) / LST__MAX_TILE * LST__MAX_TILE;
}

size_t lst__n_tasks(size_t n_elems)
{
    const size_t each = task_elems(n_elems);
    return n_elems / each + (n_elems % each != 0);
}

/* The float32 array that holds the weights as the optimizer knows them, where there is one. */
static float *weights_in_place(const lst__weights *w)
{
    const lst_codec master = lst_weight_form_master(w->form);
    if (master == LST_CODEC_F32)
        return w->master;
    return master == LST_N_CODECS && lst_weight_form_codec(w->form) == LST_CODEC_F32 ? w->weights : NULL;
}

const float *lst__load_grad(const lst__step *step, size_t first, size_t n, float *buffer)
{
    const lst_grad_scale by = step->scale;
    if (step->grad_codec == LST_CODEC_F32 && by.unscale == 1.0f && by.clip == 1.0f)
        return (const float *)step->grad + first;
    lst__codec(step->grad_codec)->decode(step->grad, step->n_elems, first, n, buffer);
    if (by.unscale != 1.0f)
        step->kernels->scale(buffer, n, by.unscale);
    if (by.clip != 1.0f)
        step->kernels->scale(buffer, n, by.clip);
    return buffer;
}

static float *load_weights(const lst__step *step, const lst__pass *pass, size_t first, size_t n, float *buffer)
{
    float *in_place = weights_in_place(&step->weights);
    if (in_place)
        return in_place + first;
    if (pass->reads & LST__USE_W)
        lst__weights_decode(&step->weights, first, n, buffer);
    return buffer;
}

static float *load_slot(const lst__step *step, const lst__pass *pass, size_t slot, const lst__tile *tile, float *buffer)
{
    const lst_slot *s = &step->slots[slot];
    if (s->codec == LST_CODEC_F32)
        return (float *)s->memory + tile->first;
    if (pass->reads & (LST__USE_S0 << slot))
        lst__codec(s->codec)->decode(s->memory, s->n_elems, tile->first, tile->n, buffer);
    return buffer;
}

static lst__q8_moments q8_moments(const lst__step *step, size_t first)
{
    const lst_slot *m = &step->slots[0], *v = &step->slots[1];
    lst__rounding rounding = step->rounding;
    lst__q8_moments q = {.first = (uint32_t)first};
    lst__q8_run(m->memory, m->n_elems, first, &q.m, &q.m_bases);
    lst__q8_run(v->memory, v->n_elems, first, &q.v, &q.v_bases);
    rounding.slot = 1;
    q.m_key = lst__rounding_key_of(rounding, (uint32_t)((uint64_t)first >> 32));
    rounding.slot = 2;
    q.v_key = lst__rounding_key_of(rounding, (uint32_t)((uint64_t)first >> 32));
    return q;
}

/* The loop that decodes, steps and codes both moments itself, where this pass has one. */
static lst__q8_rule *q8_rule(const lst__step *step, const lst__rule_call *call)
{
    if (step->n_slots != 2 || step->slots[0].codec != LST_CODEC_Q8 || step->slots[1].codec != LST_CODEC_Q8U)
        return NULL;
    return step->kernels->rules_q8[call->loop];
}

static void call_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    (void)sums;
    const lst__rule_call *call = user;
    lst__rule_args args = {.n = tile->n, .w = tile->w, .g = tile->g, .k = call->k};
    lst__q8_rule *on_q8 = q8_rule(step, call);
    if (on_q8) {
        const lst__q8_moments moments = q8_moments(step, tile->first);
        on_q8(&args, &moments);
        return;
    }
    memcpy(args.s, tile->s, sizeof args.s);
    step->kernels->rules[call->loop](&args);
}

/* The slots that are decoded before the pass's function and coded after it. */
static unsigned slots_by_tile(const lst__step *step, const lst__pass *pass)
{
    return pass->tile == call_tile && q8_rule(step, pass->user) ? 0 : LST__USE_SLOTS(LST__RULE_STATES);
}

static void load(const lst__step *step, const lst__pass *pass, lst__tile *tile, float *buffers)
{
    const unsigned uses = pass->reads | pass->writes;
    if (uses & LST__USE_W)
        tile->w = load_weights(step, pass, tile->first, tile->n, buffers);
    if (uses & LST__USE_G)
        tile->g = lst__load_grad(step, tile->first, tile->n, buffers + BUFFER_STRIDE);
    const unsigned slots = uses & slots_by_tile(step, pass);
    for (size_t i = 0; i < step->n_slots; i++)
        if (slots & (LST__USE_S0 << i))
            tile->s[i] = load_slot(step, pass, i, tile, buffers + (2 + i) * BUFFER_STRIDE);
}

static void store_weights(const lst__step *step, const lst__tile *tile)
{
    const lst__weights *w = &step->weights;
    lst__rounding rounding = step->rounding;
    rounding.slot = 0;
    if (!weights_in_place(w))
        lst__weights_encode(w, tile->first, tile->n, tile->w, &rounding);
    else if (w->master)
        lst__codec(lst_weight_form_codec(w->form))
            ->encode(w->weights, w->n_elems, tile->first, tile->n, tile->w, &rounding);
}

static void store(const lst__step *step, const lst__pass *pass, const lst__tile *tile)
{
    if (pass->writes & LST__USE_W)
        store_weights(step, tile);
    const unsigned slots = pass->writes & slots_by_tile(step, pass);
    for (size_t i = 0; i < step->n_slots; i++) {
        const lst_slot *s = &step->slots[i];
        if (!(slots & (LST__USE_S0 << i)) || s->codec == LST_CODEC_F32)
            continue;
        lst__rounding rounding = step->rounding;
        rounding.slot = (uint32_t)(1 + i);
        lst__codec(s->codec)->encode(s->memory, s->n_elems, tile->first, tile->n, tile->s[i], &rounding);
    }
}

/* A multiple of every codec's block that takes part. */
static size_t tile_elems(const lst__step *step)
{
    size_t most = LST__TILE;
    for (size_t i = 0; i < step->n_slots; i++)
        if (lst__codec(step->slots[i].codec)->block > most)
            most = lst__codec(step->slots[i].codec)->block;
    return most;
}

void lst__pass_task(const lst__step *step, const lst__pass *pass, size_t task, double *sums)
{
    _Alignas(64) float buffers[N_BUFFERS * BUFFER_STRIDE];
    const size_t each = task_elems(step->n_elems), most = tile_elems(step);
    const size_t begin = task * each;
    const size_t end = step->n_elems - begin < each ? step->n_elems : begin + each;
    for (size_t first = begin; first < end; first += most) {
        lst__tile tile = {.first = first, .n = end - first < most ? end - first : most};
        load(step, pass, &tile, buffers);
        pass->tile(step, pass->user, &tile, sums);
        store(step, pass, &tile);
    }
}

typedef struct run {
    const lst__step *step;
    const lst__pass *pass;
    double *partial; /* n_sums a task */
} run;

static void run_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    const run *r = context;
    lst__pass_task(r->step, r->pass, index, r->partial + index * r->pass->n_sums);
}

void lst__pass_run(const lst__step *step, const lst__pass *pass, double *sums)
{
    double partial[LST__MAX_TASKS * LST__MAX_SUMS];
    const size_t n_tasks = lst__n_tasks(step->n_elems);
    memset(partial, 0, n_tasks * pass->n_sums * sizeof *partial);
    run r = {step, pass, partial};
    lst_pool_run(step->pool, n_tasks, run_task, &r);
    for (size_t k = 0; k < pass->n_sums; k++)
        sums[k] = 0;
    for (size_t i = 0; i < n_tasks * pass->n_sums; i++)
        sums[i % pass->n_sums] += partial[i];
}

lst__pass lst__pass_of_call(const lst__rule_call *call, size_t n_slots)
{
    const unsigned state = LST__USE_SLOTS(n_slots);
    return (lst__pass){
        .reads = LST__USE_W | LST__USE_G | state, .writes = LST__USE_W | state, .tile = call_tile, .user = call};
}
