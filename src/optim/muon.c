/* SPDX-License-Identifier: MIT
 *
 * Muon (Jordan et al. 2024; torch.optim.Muon): momentum, orthogonalised. For a matrix of two dimensions:
 *
 *     b = momentum*b + (1 - momentum)*g          u = (1 - momentum)*g + momentum*b with nesterov, else b
 *     x = u, transposed if it has more rows than columns;  x = x / max(|x|, eps)
 *     ns_steps times:  G = x x';  x = ns_a*x + (ns_b*G + ns_c*G*G) x
 *     k = 0.2*sqrt(max(rows, columns)) with match_rms, else sqrt(max(1, rows/columns))
 *     p = p*(1 - lr*weight_decay) - lr*k*x, transposed back
 *
 * The iteration runs in float32 (PyTorch's in bf16, 1 to 2 % off the exact result) on scratch that is declared
 * beforehand: two matrices of the tensor's size and two squares of its smaller side. What is no matrix, and every
 * tensor of a group with `adamw` set (embeddings, head), is stepped by AdamW with the group's lr, beta1, beta2 and
 * weight decay, and eps 1e-8: `eps` is the iteration's.
 */
#include <math.h>

#include "optim/adam.h"
#include "optim/matmul.h"
#include "optim/pass.h"

static bool by_adamw(const lst_hyper *hyper, const lst_tensor *tensor)
{
    return hyper->adamw || tensor->n_dims != 2;
}

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    if (by_adamw(hyper, tensor))
        return lst__adam_slots(hyper, tensor, out);
    out[0] = (lst__slot_spec){LST_BUCKET_MOMENTUM_BUFFER, lst__tensor_n(tensor), false, false};
    return 1;
}

/* The scratch of one matrix. */
typedef struct orthogonal {
    size_t rows, columns; /* of x: rows <= columns */
    bool transposed;
    float *x, *other, *gram, *polynomial;
} orthogonal;

static orthogonal layout(const lst_tensor *tensor, float *memory)
{
    const size_t high = tensor->dims[0], wide = tensor->dims[1], n = high * wide;
    orthogonal o = {.rows = high < wide ? high : wide, .columns = high < wide ? wide : high, .transposed = high > wide};
    o.x = memory;
    o.other = memory + n;
    o.gram = memory + 2 * n;
    o.polynomial = memory + 2 * n + o.rows * o.rows;
    return o;
}

static size_t scratch_bytes(const lst_hyper *hyper, const lst_tensor *tensor)
{
    if (by_adamw(hyper, tensor))
        return 0;
    const size_t high = tensor->dims[0], wide = tensor->dims[1], small = high < wide ? high : wide;
    return (2 * high * wide + 2 * small * small) * sizeof(float);
}

typedef struct job {
    orthogonal o;
    float momentum, take;
    bool nesterov;
    float decay, rate;
} job;

/* Where element `index` of the tensor lies in x. */
static size_t place(const orthogonal *o, size_t index)
{
    return o->transposed ? index % o->rows * o->columns + index / o->rows : index;
}

static void momentum_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    (void)step;
    const job *j = user;
    float *b = tile->s[0];
    double sum = 0;
    for (size_t i = 0; i < tile->n; i++) {
        const float g = tile->g[i], buffer = b[i] + j->take * (g - b[i]);
        const float u = j->nesterov ? g + j->momentum * (buffer - g) : buffer;
        b[i] = buffer;
        j->o.x[place(&j->o, tile->first + i)] = u;
        sum += (double)u * (double)u;
    }
    sums[0] += sum;
}

static void apply_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    (void)step, (void)sums;
    const job *j = user;
    for (size_t i = 0; i < tile->n; i++)
        tile->w[i] = tile->w[i] * j->decay + j->rate * j->o.x[place(&j->o, tile->first + i)];
}

/* One Newton-Schulz iteration: x and other change places. */
static void iterate(orthogonal *o, const lst_hyper *h, const lst__step *step)
{
    const size_t n = o->rows;
    const lst__matmul gram = {.rows = n,
                              .columns = n,
                              .inner = o->columns,
                              .a = o->x,
                              .b = o->x,
                              .b_transposed = true,
                              .by = 1,
                              .out = o->gram};
    const lst__matmul polynomial = {.rows = n,
                                    .columns = n,
                                    .inner = n,
                                    .a = o->gram,
                                    .b = o->gram,
                                    .base = o->gram,
                                    .scale = (float)h->ns_b,
                                    .by = (float)h->ns_c,
                                    .out = o->polynomial};
    const lst__matmul next = {.rows = n,
                              .columns = o->columns,
                              .inner = n,
                              .a = o->polynomial,
                              .b = o->x,
                              .base = o->x,
                              .scale = (float)h->ns_a,
                              .by = 1,
                              .out = o->other};
    lst__matmul_run(&gram, step->kernels, step->pool);
    lst__matmul_run(&polynomial, step->kernels, step->pool);
    lst__matmul_run(&next, step->kernels, step->pool);
    float *swap = o->x;
    o->x = o->other;
    o->other = swap;
}

static void step_adamw(lst__step *step)
{
    static const enum lst__rule_loop_id loops[2] = {LST__LOOP_adamw, LST__LOOP_adamw_late};
    lst__rule_call call = {0};
    call.loop = loops[lst__adam_scalars(step->hyper, step->t, call.k)];
    call.k[LST__K_EPS] = 1e-8f;
    call.k[LST__K_DECAY] = (float)(1.0 - step->hyper->lr * step->hyper->weight_decay);
    const lst__pass pass = lst__pass_of_call(&call, 2);
    lst__pass_run(step, &pass, NULL);
}

static void whole(lst__step *step)
{
    const lst_hyper *h = step->hyper;
    if (by_adamw(h, step->tensor)) {
        step_adamw(step);
        return;
    }
    job j = {.o = layout(step->tensor, step->scratch),
             .momentum = (float)h->momentum,
             .take = (float)(1.0 - h->momentum),
             .nesterov = h->nesterov};
    const lst__pass momentum = {
        .reads = LST__USE_G | LST__USE_S0, .writes = LST__USE_S0, .tile = momentum_tile, .user = &j, .n_sums = 1};
    double square;
    lst__pass_run(step, &momentum, &square);
    const double inverse = 1.0 / fmax(sqrt(square), h->eps);
    for (size_t i = 0; i < step->n_elems; i++)
        j.o.x[i] = (float)((double)j.o.x[i] * inverse); /* the inverse may be beyond float32 */
    for (double i = 0; i < h->ns_steps; i++)
        iterate(&j.o, h, step);
    const double rows = (double)step->tensor->dims[0], columns = (double)step->tensor->dims[1];
    const double k = h->match_rms ? 0.2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns));
    j.decay = (float)(1.0 - h->lr * h->weight_decay);
    j.rate = (float)(-h->lr * k);
    const lst__pass apply = {.reads = LST__USE_W, .writes = LST__USE_W, .tile = apply_tile, .user = &j};
    lst__pass_run(step, &apply, NULL);
}

const lst__rule lst__rule_muon = {
    .defaults = {.lr = 1e-3,
                 .beta1 = 0.9,
                 .beta2 = 0.999,
                 .eps = 1e-7,
                 .momentum = 0.95,
                 .weight_decay = 0.1,
                 .ns_steps = 5,
                 .ns_a = 3.4445,
                 .ns_b = -4.775,
                 .ns_c = 2.0315,
                 .nesterov = true,
                 .match_rms = true},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_BETA2 | LST__FIELD_EPS | LST__FIELD_MOMENTUM |
              LST__FIELD_WEIGHT_DECAY | LST__FIELD_NS_STEPS | LST__FIELD_NS_A | LST__FIELD_NS_B | LST__FIELD_NS_C |
              LST__FIELD_NESTEROV | LST__FIELD_MATCH_RMS | LST__FIELD_ADAMW,
    .slots = slots,
    .whole = whole,
    .scratch_bytes = scratch_bytes,
};
