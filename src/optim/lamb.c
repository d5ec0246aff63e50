/* SPDX-License-Identifier: MIT
 *
 * LAMB as in the paper (You et al. 2019), one tensor a layer:
 *
 *     m = beta1*m + (1 - beta1)*g               v = beta2*v + (1 - beta2)*g*g
 *     u = (m/(1 - beta1^t)) / (sqrt(v/(1 - beta2^t)) + eps) + weight_decay*p
 *     q = |p| / |u|, not clamped, 1 where either norm is 0 (so that zero weights train)
 *     p = p - lr*q*u
 *
 * exclude_1d: tensors of at most one dimension take no decay and q = 1. |u| must be known before the first weight
 * moves, so a first pass computes u and keeps only its norm, and the second computes it again from the same state: no
 * tensor of scratch, whatever the state's codec. Peers differ: bitsandbytes' ratio only scales down and zero weights
 * never move; DeepSpeed clamps it; pytorch-optimizer's first step is ten times too long.
 */
#include "optim/pass.h"

#include <math.h>

#include "optim/adam.h"

static void direction_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    float u[LST__MAX_TILE];
    const lst__rule_call *call = user;
    const lst__rule_args args = {
        .n = tile->n, .w = tile->w, .g = tile->g, .s = {tile->s[0], tile->s[1], NULL, u}, .k = call->k};
    step->kernels->rules[LST__LOOP_lamb_direction](&args);
    sums[0] += step->kernels->sum_squares(tile->w, tile->n);
    sums[1] += step->kernels->sum_squares(u, tile->n);
}

static double trust_ratio(const lst__step *step, const lst__rule_call *call)
{
    const lst__pass norms = {
        .reads = LST__USE_W | LST__USE_G | LST__USE_SLOTS(2), .tile = direction_tile, .user = call, .n_sums = 2};
    double sums[2];
    lst__pass_run(step, &norms, sums);
    return sums[0] > 0 && sums[1] > 0 ? sqrt(sums[0]) / sqrt(sums[1]) : 1;
}

static void whole(lst__step *step)
{
    const lst_hyper *h = step->hyper;
    const bool plain = h->exclude_1d && step->tensor->n_dims <= 1;
    lst__rule_call call = {.loop = LST__LOOP_lamb};
    (void)lst__adam_scalars(h, step->t, call.k); /* beta2, its correction, eps */
    call.k[LST__K_KEEP] = (float)h->beta1;
    call.k[LST__K_TAKE] = (float)(1.0 - h->beta1);
    call.k[LST__K_INVERSE_BC1] = (float)(1.0 / (1.0 - pow(h->beta1, (double)step->t)));
    call.k[LST__K_L2] = plain ? 0.0f : (float)h->weight_decay;
    call.k[LST__K_RATE] = (float)(-h->lr * (plain ? 1 : trust_ratio(step, &call)));
    const lst__pass pass = lst__pass_of_call(&call, 2);
    lst__pass_run(step, &pass, NULL);
}

const lst__rule lst__rule_lamb = {
    .defaults = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 1e-2, .exclude_1d = true},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_BETA2 | LST__FIELD_EPS | LST__FIELD_WEIGHT_DECAY |
              LST__FIELD_EXCLUDE_1D,
    .slots = lst__adam_slots,
    .whole = whole,
};
