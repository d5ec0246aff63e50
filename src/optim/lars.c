/* SPDX-License-Identifier: MIT
 *
 * LARS as in the paper (You, Gitman, Ginsburg 2017), one tensor a layer:
 *
 *     q = trust_coefficient*|p| / (|g| + weight_decay*|p|),  1 where |p| or |g| is 0 (so that zero weights train)
 *     b = momentum*b + lr*q*(g + weight_decay*p)             b starts at 0; lr inside the buffer
 *     p = p - b
 *
 * Norms are L2 of the whole tensor, of the bare gradient, in double. exclude_1d: tensors of at most one dimension take
 * no decay and q = 1. Peers differ: bitsandbytes' "LARS" only ever scales a step down, and zero weights never move;
 * others keep lr outside the buffer.
 */
#include "optim/pass.h"

#include <math.h>

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    (void)hyper;
    out[0] = (lst__slot_spec){LST_BUCKET_MOMENTUM_BUFFER, lst__tensor_n(tensor), false, false};
    return 1;
}

static void norms_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    (void)user;
    sums[0] += step->kernels->sum_squares(tile->w, tile->n);
    sums[1] += step->kernels->sum_squares(tile->g, tile->n);
}

static double trust_ratio(const lst__step *step)
{
    const lst__pass norms = {.reads = LST__USE_W | LST__USE_G, .tile = norms_tile, .n_sums = 2};
    double sums[2];
    lst__pass_run(step, &norms, sums);
    const double weights = sqrt(sums[0]), gradient = sqrt(sums[1]);
    if (!(weights > 0 && gradient > 0))
        return 1;
    return step->hyper->trust_coefficient * weights / (gradient + step->hyper->weight_decay * weights);
}

static void whole(lst__step *step)
{
    const bool plain = step->hyper->exclude_1d && step->tensor->n_dims <= 1;
    const double rate = step->hyper->lr * (plain ? 1 : trust_ratio(step));
    int exponent = 0;
    const double fraction = frexp(rate, &exponent);
    const int half = exponent / 2; /* rate = fraction * 2^exponent, in two factors within float32's range */
    lst__rule_call call = {.loop = LST__LOOP_lars};
    call.k[LST__K_L2] = plain ? 0.0f : (float)step->hyper->weight_decay;
    call.k[LST__K_KEEP] = (float)step->hyper->momentum;
    call.k[LST__K_TRUST] = (float)ldexp(fraction, exponent - 2 * half);
    call.k[LST__K_TRUST_UNIT] = (float)ldexp(1, half);
    const lst__pass pass = lst__pass_of_call(&call, 1);
    lst__pass_run(step, &pass, NULL);
}

const lst__rule lst__rule_lars = {
    .defaults = {.lr = 1.0, .momentum = 0.9, .weight_decay = 5e-4, .trust_coefficient = 1e-3, .exclude_1d = true},
    .fields = LST__FIELD_LR | LST__FIELD_MOMENTUM | LST__FIELD_WEIGHT_DECAY | LST__FIELD_TRUST_COEFFICIENT |
              LST__FIELD_EXCLUDE_1D,
    .slots = slots,
    .whole = whole,
};
