/* SPDX-License-Identifier: MIT
 *
 * Adam-mini (Zhang et al. 2024): AdamW with one second moment for a block of weights instead of one for each.
 *
 *     p = p*(1 - lr*weight_decay)
 *     m = m + (1 - beta1)*(g - m)
 *     v_b = beta2*v_b + (1 - beta2)*mean of g*g over block b
 *     p = p - lr/(1 - beta1^t) * m / (sqrt(v_b)/sqrt(1 - beta2^t) + eps)
 *
 * A block is lst_tensor.moment_block consecutive values: an output row of a matrix, an attention head of q or k, a
 * whole vector; or a column of a matrix that is stored [in, out]. Where a block is one value this is AdamW, bit for
 * bit.
 */
#include "optim/pass.h"

#include <math.h>

#include "base/fail.h"
#include "optim/adam.h"
#include "optim/factored.h"

static size_t block_of(const lst_tensor *tensor)
{
    if (tensor->moment_block > 0)
        return tensor->moment_block;
    return tensor->n_dims >= 2 ? tensor->dims[tensor->n_dims - 1] : lst__tensor_n(tensor);
}

static bool by_columns(const lst_tensor *tensor)
{
    return tensor->moment_block == LST_MOMENT_COLUMNS;
}

static size_t n_moments(const lst_tensor *tensor)
{
    const size_t n = lst__tensor_n(tensor);
    return by_columns(tensor) ? n / tensor->dims[tensor->n_dims - 2] : n / block_of(tensor);
}

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    (void)hyper;
    const size_t n = lst__tensor_n(tensor);
    out[0] = (lst__slot_spec){LST_BUCKET_EXP_AVG, n, false, false};
    out[1] = (lst__slot_spec){LST_BUCKET_EXP_AVG_SQ, n_moments(tensor), true, block_of(tensor) > 1};
    return 2;
}

static lst_status check_tensor(const lst_tensor *tensor, lst_error *err)
{
    const size_t n = lst__tensor_n(tensor), block = block_of(tensor);
    if (by_columns(tensor)) {
        if (tensor->n_dims >= 2)
            return LST_OK;
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: LST_MOMENT_COLUMNS needs a matrix; it has %zu dimensions",
                         tensor->name, tensor->n_dims);
    }
    if (block <= n && n % block == 0)
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: moment_block is %zu, which does not divide its %zu values",
                     tensor->name, block, n);
}

typedef struct blocks {
    const lst__step *step;
    size_t block, n_blocks, a_task; /* blocks of a task */
    float *v;
    double beta2;
} blocks;

static double block_sum(const lst__step *step, size_t first, size_t n)
{
    float buffer[LST__TILE];
    double sum = 0;
    for (size_t at = 0; at < n; at += LST__TILE) {
        const size_t here = n - at < LST__TILE ? n - at : LST__TILE;
        sum += step->kernels->sum_squares(lst__load_grad(step, first + at, here, buffer), here);
    }
    return sum;
}

static void moment_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    const blocks *b = context;
    const size_t end = (index + 1) * b->a_task < b->n_blocks ? (index + 1) * b->a_task : b->n_blocks;
    for (size_t i = index * b->a_task; i < end; i++) {
        const double mean = block_sum(b->step, i * b->block, b->block) / (double)b->block;
        b->v[i] = (float)(b->beta2 * (double)b->v[i] + (1.0 - b->beta2) * mean);
    }
}

typedef struct step_call {
    const float *k;
    const float *v;
    size_t block;
    const lst__factored *columns; /* NULL: blocks of consecutive values */
    bool late;
} step_call;

/* A run of a tile from `at` on; value i has the second moment v[i * apart]. */
static void step_run(const step_call *c, const lst__tile *tile, size_t at, size_t n, const float *v, size_t apart)
{
    const float sign = c->k[LST__K_SIGN], rate = c->k[LST__K_RATE], decay = c->k[LST__K_DECAY];
    const float beta1c = c->k[LST__K_BETA1C], unbias2 = c->k[LST__K_UNBIAS2], eps = c->k[LST__K_EPS];
    float *restrict w = tile->w + at;
    float *restrict m = tile->s[0] + at;
    const float *restrict g = tile->g + at;
    for (size_t i = 0; i < n; i++) {
        const float x = sign * g[i], below = sqrtf(v[i * apart]) * unbias2 + eps;
        const float first = c->late ? x - beta1c * (x - m[i]) : m[i] + beta1c * (x - m[i]);
        m[i] = first;
        w[i] = w[i] * decay + (below == 0.0f ? 0.0f : rate * first / below);
    }
}

static void step_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    (void)step, (void)sums;
    const step_call *c = user;
    for (size_t at = 0; at < tile->n;) {
        if (c->columns) {
            const lst__row_run run = lst__row_run_at(c->columns, tile, at);
            step_run(c, tile, at, run.n, c->v + run.matrix * c->columns->columns + run.column, 1);
            at += run.n;
            continue;
        }
        const size_t block = (tile->first + at) / c->block, end = (block + 1) * c->block - tile->first;
        const size_t n = (end < tile->n ? end : tile->n) - at;
        step_run(c, tile, at, n, c->v + block, 0);
        at += n;
    }
}

static void update_blocks(const lst__step *step, size_t block)
{
    blocks b = {.step = step,
                .block = block,
                .n_blocks = step->n_elems / block,
                .a_task = block < 32768 ? 32768 / block : 1,
                .v = step->slots[1].memory,
                .beta2 = step->hyper->beta2};
    lst_pool_run(step->pool, (b.n_blocks + b.a_task - 1) / b.a_task, moment_task, &b);
}

static void whole(lst__step *step)
{
    static const enum lst__rule_loop_id loops[2] = {LST__LOOP_adamw, LST__LOOP_adamw_late};
    const lst_hyper *h = step->hyper;
    lst__rule_call call = {0};
    const int late = lst__adam_scalars(h, step->t, call.k);
    call.loop = loops[late];
    call.k[LST__K_DECAY] = (float)(1.0 - h->lr * h->weight_decay);
    const size_t block = block_of(step->tensor);
    if (block == 1) {
        const lst__pass pass = lst__pass_of_call(&call, 2);
        lst__pass_run(step, &pass, NULL);
        return;
    }
    lst__factored columns = {.step = step, .column = step->slots[1].memory, .keep = h->beta2, .take = 1.0 - h->beta2};
    step_call c = {.k = call.k, .v = step->slots[1].memory, .block = block, .late = late};
    if (by_columns(step->tensor)) {
        lst__factored_shape(step->tensor, &columns);
        lst__factored_update(&columns);
        c.columns = &columns;
    } else {
        update_blocks(step, block);
    }
    const lst__pass pass = {.reads = LST__USE_W | LST__USE_G | LST__USE_SLOTS(1),
                            .writes = LST__USE_W | LST__USE_SLOTS(1),
                            .tile = step_tile,
                            .user = &c};
    lst__pass_run(step, &pass, NULL);
}

const lst__rule lst__rule_adam_mini = {
    .defaults = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-2},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_BETA2 | LST__FIELD_EPS | LST__FIELD_WEIGHT_DECAY |
              LST__FIELD_MAXIMIZE,
    .check_tensor = check_tensor,
    .slots = slots,
    .whole = whole,
};
