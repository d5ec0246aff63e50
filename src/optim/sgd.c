/* SPDX-License-Identifier: MIT
 *
 * SGD (torch.optim.SGD with momentum 0): g = -g to maximize; g = g + weight_decay*p; p = p - lr*g. No state.
 */
#include "optim/rule.h"

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    (void)hyper, (void)tensor, (void)out;
    return 0;
}

static void prepare(const lst_hyper *hyper, int64_t t, lst__rule_call *out)
{
    (void)t;
    out->loop = LST__LOOP_sgd;
    out->k[LST__K_SIGN] = hyper->maximize ? -1.0f : 1.0f;
    out->k[LST__K_L2] = (float)hyper->weight_decay;
    out->k[LST__K_RATE] = (float)-hyper->lr;
}

const lst__rule lst__rule_sgd = {
    .defaults = {.lr = 1e-3},
    .fields = LST__FIELD_LR | LST__FIELD_WEIGHT_DECAY | LST__FIELD_MAXIMIZE,
    .slots = slots,
    .prepare = prepare,
};
