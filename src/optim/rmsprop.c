/* SPDX-License-Identifier: MIT
 *
 * RMSprop (torch.optim.RMSprop): g = -g to maximize; g = g + weight_decay*p; v = alpha*v + (1 - alpha)*g*g;
 * centered: a = alpha*a + (1 - alpha)*g, d = sqrt(v - a*a) + eps, else d = sqrt(v) + eps;
 * momentum: b = momentum*b + g/d, p = p - lr*b, else p = p - lr*g/d.
 * Where PyTorch's v - a*a comes out negative by rounding, and its root is NaN, we take 0.
 */
#include "optim/rule.h"

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    const size_t n = lst__tensor_n(tensor);
    size_t count = 0;
    out[count++] = (lst__slot_spec){LST_BUCKET_SQUARE_AVG, n, true, false};
    if (hyper->centered)
        out[count++] = (lst__slot_spec){LST_BUCKET_GRAD_AVG, n, false, false};
    if (hyper->momentum > 0)
        out[count++] = (lst__slot_spec){LST_BUCKET_MOMENTUM_BUFFER, n, false, false};
    return count;
}

static void prepare(const lst_hyper *hyper, int64_t t, lst__rule_call *out)
{
    (void)t;
    if (hyper->centered)
        out->loop = hyper->momentum > 0 ? LST__LOOP_rmsprop_centered_momentum : LST__LOOP_rmsprop_centered;
    else
        out->loop = hyper->momentum > 0 ? LST__LOOP_rmsprop_momentum : LST__LOOP_rmsprop;
    out->k[LST__K_SIGN] = hyper->maximize ? -1.0f : 1.0f;
    out->k[LST__K_L2] = (float)hyper->weight_decay;
    out->k[LST__K_RATE] = (float)-hyper->lr;
    out->k[LST__K_KEEP] = (float)hyper->momentum;
    out->k[LST__K_BETA2] = (float)hyper->alpha;
    out->k[LST__K_BETA2C] = (float)(1.0 - hyper->alpha);
    out->k[LST__K_EPS] = (float)hyper->eps;
}

const lst__rule lst__rule_rmsprop = {
    .defaults = {.lr = 1e-2, .alpha = 0.99, .eps = 1e-8},
    .fields = LST__FIELD_LR | LST__FIELD_ALPHA | LST__FIELD_EPS | LST__FIELD_MOMENTUM | LST__FIELD_WEIGHT_DECAY |
              LST__FIELD_CENTERED | LST__FIELD_MAXIMIZE,
    .slots = slots,
    .prepare = prepare,
};
