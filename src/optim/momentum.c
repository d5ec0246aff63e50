/* SPDX-License-Identifier: MIT
 *
 * Momentum (torch.optim.SGD with momentum): g = -g to maximize; g = g + weight_decay*p; b = g exactly at the tensor's
 * first gradient, whatever the dampening, then b = momentum*b + (1 - dampening)*g; p = p - lr*b.
 * The rate is outside the buffer: a change of lr rescales all of it.
 */
#include "optim/rule.h"

#include "base/fail.h"
#include "optim/momentum.h"

size_t lst__momentum_slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    (void)hyper;
    out[0] = (lst__slot_spec){LST_BUCKET_MOMENTUM_BUFFER, lst__tensor_n(tensor), false, false};
    return 1;
}

void lst__momentum_scalars(const lst_hyper *hyper, lst__rule_call *out)
{
    out->k[LST__K_SIGN] = hyper->maximize ? -1.0f : 1.0f;
    out->k[LST__K_L2] = (float)hyper->weight_decay;
    out->k[LST__K_RATE] = (float)-hyper->lr;
    out->k[LST__K_KEEP] = (float)hyper->momentum;
    out->k[LST__K_TAKE] = (float)(1.0 - hyper->dampening);
}

lst_status lst__momentum_check(const lst_hyper *hyper, const char *where, lst_error *err)
{
    if (hyper->momentum > 0)
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT, "%s: momentum is 0, so the buffer would have no effect; use the rule sgd",
                     where);
}

static void prepare(const lst_hyper *hyper, int64_t t, lst__rule_call *out)
{
    out->loop = t == 1 ? LST__LOOP_momentum_first : LST__LOOP_momentum;
    lst__momentum_scalars(hyper, out);
}

const lst__rule lst__rule_momentum = {
    .defaults = {.lr = 1e-3, .momentum = 0.9},
    .fields =
        LST__FIELD_LR | LST__FIELD_MOMENTUM | LST__FIELD_DAMPENING | LST__FIELD_WEIGHT_DECAY | LST__FIELD_MAXIMIZE,
    .check = lst__momentum_check,
    .slots = lst__momentum_slots,
    .prepare = prepare,
};
