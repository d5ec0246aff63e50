/* SPDX-License-Identifier: MIT */
#include "train/linear.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "leanstep/optim.h"
#include "model/matmul.h"
#include "plan/activations.h"
#include "plan/buffers.h"

enum { LINEAR_X, LINEAR_Y };

typedef struct layer {
    train_linear *result;
    lst_plan *plan;
    lst_arena arena;
    lst_optim *optim;
    lst_pool *pool;
    lst_optim_options options;
    lst_tensor tensor;
    size_t out, in;
} layer;

/* Every buffer lives from load to save: a matrix of dims[0] x dims[1] named by kind, slot and index. */
static lst_buffer buffer_of(lst_bucket bucket, lst_buffer_kind kind, int slot, size_t index, const size_t dims[2])
{
    lst_buffer b = {.bucket = bucket, .kind = kind, .layer = slot, .index = index, .codec = LST_CODEC_F32, .n_dims = 2};
    b.dims[0] = dims[0];
    b.dims[1] = dims[1];
    b.first_phase = lst_phase_load();
    b.last_phase = lst_phase_save(0);
    return b;
}

static lst_status add(layer *l, lst_buffer b, const char *name, lst_codec codec, lst_error *err)
{
    snprintf(b.name, sizeof b.name, "%s", name);
    b.codec = codec;
    return lst__plan_add(l->plan, &b, err);
}

static lst_status plan_slots(layer *l, lst_error *err)
{
    lst_slot slots[LST_MAX_SLOTS];
    size_t n_slots = 0;
    lst_status status = lst_optim_slots(&l->options, &l->tensor, slots, &n_slots, err);
    for (size_t s = 0; status == LST_OK && s < n_slots; s++) {
        const size_t dims[2] = {1, slots[s].n_elems};
        status =
            add(l, buffer_of(slots[s].bucket, LST_BUFFER_SLOT, (int)s, 0, dims), slots[s].name, slots[s].codec, err);
    }
    size_t scratch = 0;
    if (status == LST_OK)
        status = lst_optim_scratch(&l->options, &l->tensor, &scratch, err);
    if (status == LST_OK && scratch > 0)
        status =
            add(l, buffer_of(LST_BUCKET_WORKSPACE, LST_BUFFER_STEP_SCRATCH, -1, 0, (size_t[2]){1, (scratch + 3) / 4}),
                "optimizer scratch", LST_CODEC_F32, err);
    return status;
}

static lst_status make_plan(layer *l, const lst_recipe *recipe, lst_error *err)
{
    const size_t matrix[2] = {l->out, l->in}, x[2] = {TRAIN_LINEAR_ROWS, l->in}, y[2] = {TRAIN_LINEAR_ROWS, l->out};
    const size_t scratch[2] = {lst_pool_threads(l->pool), LST__PANEL_ELEMS};
    const lst_codec codec = lst_weight_form_codec(recipe->weights);
    lst_status status = lst__plan_begin(&l->plan, NULL, recipe, err);
    if (status != LST_OK)
        return status;
    l->plan->n_params = (uint64_t)l->out * l->in;
    status = add(l, buffer_of(LST_BUCKET_WEIGHTS, LST_BUFFER_WEIGHT, -1, 0, matrix), "weight", codec, err);
    if (status == LST_OK)
        status = plan_slots(l, err);
    if (status == LST_OK)
        status =
            add(l, buffer_of(LST_BUCKET_GRADIENTS, LST_BUFFER_GRADIENT, -1, 0, matrix), "gradient", LST_CODEC_F32, err);
    if (status == LST_OK)
        status = add(l, buffer_of(LST_BUCKET_ACTIVATIONS, LST_BUFFER_ACT, 0, LINEAR_X, x), "input", LST_CODEC_F32, err);
    if (status == LST_OK)
        status =
            add(l, buffer_of(LST_BUCKET_ACTIVATIONS, LST_BUFFER_ACT, 0, LINEAR_Y, y), "output", LST_CODEC_F32, err);
    if (status == LST_OK && codec != LST_CODEC_F32)
        status = add(l, buffer_of(LST_BUCKET_WORKSPACE, LST_BUFFER_SCRATCH, -1, 0, scratch), "worker scratch",
                     LST_CODEC_F32, err);
    return status == LST_OK ? lst__plan_finish(l->plan, err) : status;
}

static void *memory_of(const layer *l, lst_buffer_kind kind, int slot, size_t index)
{
    const lst_buffer *b = lst_plan_find(l->plan, kind, slot, index);
    return b ? l->arena.base + b->offset : NULL;
}

static uint64_t state_bytes(const lst_ledger *ledger)
{
    uint64_t sum = 0;
    for (int b = 0; b < LST_N_BUCKETS; b++)
        sum += lst_bucket_is_state((lst_bucket)b) ? ledger->now[b] : 0;
    return sum;
}

/* Arena, optimizer in it, and every buffer counted as it is taken. */
static lst_status bind(layer *l, lst_error *err)
{
    lst_status status = lst__arena_reserve(&l->arena, l->plan->arena_bytes, l->pool, err);
    if (status == LST_OK)
        status = lst_optim_create(&l->optim, &l->options, &l->tensor, 1, err);
    for (size_t s = 0; status == LST_OK && s < lst_optim_slot_count(l->optim, 0); s++)
        status = lst_optim_bind_slot(l->optim, 0, s, memory_of(l, LST_BUFFER_SLOT, (int)s, 0), err);
    if (status == LST_OK)
        status = lst_optim_bind_scratch(l->optim, memory_of(l, LST_BUFFER_STEP_SCRATCH, -1, 0),
                                        lst_optim_scratch_bytes(l->optim), err);
    if (status == LST_OK)
        status = lst_optim_bind_weights(l->optim, 0, memory_of(l, LST_BUFFER_WEIGHT, -1, 0), err);
    if (status == LST_OK)
        status = lst_optim_reset(l->optim, err);
    for (size_t i = 0; status == LST_OK && i < l->plan->n_buffers; i++)
        lst_ledger_take(&l->result->ledger, l->plan->buffers[i].bucket, l->plan->buffers[i].bytes);
    return status;
}

/* Normal numbers of deviation 1/sqrt(in), so that the output's deviation is that of the input. The gradient's memory is
 * borrowed for the float32 values. */
static lst_status draw(layer *l, lst_error *err)
{
    float *w = memory_of(l, LST_BUFFER_GRADIENT, -1, 0), *x = memory_of(l, LST_BUFFER_ACT, 0, LINEAR_X);
    const double deviation = 1 / sqrt((double)l->in);
    for (size_t i = 0; i < l->out * l->in; i++)
        w[i] = (float)(deviation * (2 * lst__random_unit(1, 0, i) - 1));
    for (size_t i = 0; i < TRAIN_LINEAR_ROWS * l->in; i++)
        x[i] = (float)lst__random_normal(1, 1, i);
    return lst_optim_set_weights_f32(l->optim, 0, w, err);
}

static double forward(const layer *l, const model_work *work, const model_linear *linear)
{
    model_rows x = {memory_of(l, LST_BUFFER_ACT, 0, LINEAR_X), l->in},
               y = {memory_of(l, LST_BUFFER_ACT, 0, LINEAR_Y), l->out};
    model_linear_forward(work, linear, y, x, TRAIN_LINEAR_ROWS, (model_rows){NULL, 0});
    double sum = 0;
    for (size_t i = 0; i < TRAIN_LINEAR_ROWS * l->out; i++)
        sum += (double)y.data[i] * (double)y.data[i];
    return sum / (double)(TRAIN_LINEAR_ROWS * l->out) / 2;
}

/* Loss, gradient, step, loss again. */
static lst_status step(layer *l, lst_error *err)
{
    train_linear *r = l->result;
    float *gradient = memory_of(l, LST_BUFFER_GRADIENT, -1, 0);
    const model_work work = {.pool = l->pool,
                             .loops = model_loops_get(),
                             .scratch = memory_of(l, LST_BUFFER_SCRATCH, -1, 0),
                             .scratch_elems = LST__PANEL_ELEMS};
    const model_linear linear = {
        memory_of(l, LST_BUFFER_WEIGHT, -1, 0), NULL, lst_weight_form_codec(l->options.weights), false, l->in, l->out};
    model_rows x = {memory_of(l, LST_BUFFER_ACT, 0, LINEAR_X), l->in},
               dy = {memory_of(l, LST_BUFFER_ACT, 0, LINEAR_Y), l->out};
    model_matmul_init();
    r->loss_before = forward(l, &work, &linear);
    for (size_t i = 0; i < TRAIN_LINEAR_ROWS * l->out; i++)
        dy.data[i] /= (float)(TRAIN_LINEAR_ROWS * l->out);
    model_linear_backward_weight(&work, &linear, gradient, NULL, dy, x, TRAIN_LINEAR_ROWS, false);
    r->state_before = state_bytes(&r->ledger);
    const void *gradients[1] = {gradient};
    lst_status status = lst_optim_step(l->optim, gradients, (lst_grad_scale){1, 1}, err);
    r->state_after = state_bytes(&r->ledger);
    r->loss_after = forward(l, &work, &linear);
    return status;
}

static void record(const layer *l)
{
    train_linear *r = l->result;
    lst_memory_use use;
    (void)!lst__memory_use(&use, NULL); /* while the arena is held, so that the process's peak knows of it */
    r->n_params = l->plan->n_params;
    r->planned_state = l->plan->optimizer_state_bytes;
    r->planned_peak = l->plan->peak_bytes;
    r->measured_peak = r->ledger.peak_total;
    r->arena_bytes = l->plan->arena_bytes;
    memcpy(r->planned, l->plan->bucket_bytes, sizeof r->planned);
}

lst_status train_linear_measure(train_linear *result, size_t out, size_t in, const lst_recipe *recipe, lst_pool *pool,
                                lst_error *err)
{
    layer l = {.result = result, .pool = pool, .out = out, .in = in};
    l.options = (lst_optim_options){.struct_size = sizeof l.options,
                                    .rule = recipe->rule,
                                    .weights = recipe->weights,
                                    .grads = LST_CODEC_F32,
                                    .state = recipe->state,
                                    .n_groups = 1,
                                    .groups = &recipe->hyper,
                                    .seed = 1,
                                    .pool = pool};
    l.tensor = (lst_tensor){.name = "weight", .n_dims = 2, .dims = {out, in}};
    memset(result, 0, sizeof *result);
    lst_ledger_init(&result->ledger);
    lst_status status = make_plan(&l, recipe, err);
    if (status == LST_OK)
        status = bind(&l, err);
    if (status == LST_OK)
        status = draw(&l, err);
    if (status == LST_OK)
        status = step(&l, err);
    if (status == LST_OK)
        record(&l);
    lst_optim_destroy(l.optim);
    if (l.arena.base)
        lst__arena_release(&l.arena);
    lst_plan_destroy(l.plan);
    return status;
}
