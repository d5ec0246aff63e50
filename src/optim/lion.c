/* SPDX-License-Identifier: MIT
 *
 * Lion (Chen et al. 2023; lion-pytorch): p = p*(1 - lr*weight_decay); p = p - lr*sign(beta1*m + (1 - beta1)*g) with the
 * old m and sign(0) = 0; then m = beta2*m + (1 - beta2)*g. No bias correction, no eps.
 */
#include "optim/rule.h"

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    (void)hyper;
    out[0] = (lst__slot_spec){LST_BUCKET_EXP_AVG, lst__tensor_n(tensor), false, false};
    return 1;
}

static void prepare(const lst_hyper *hyper, int64_t t, lst__rule_call *out)
{
    (void)t;
    out->loop = LST__LOOP_lion;
    out->k[LST__K_SIGN] = hyper->maximize ? -1.0f : 1.0f;
    out->k[LST__K_RATE] = (float)-hyper->lr;
    out->k[LST__K_DECAY] = (float)(1.0 - hyper->lr * hyper->weight_decay);
    out->k[LST__K_KEEP] = (float)hyper->beta1;
    out->k[LST__K_TAKE] = (float)(1.0 - hyper->beta1);
    out->k[LST__K_BETA2] = (float)hyper->beta2;
    out->k[LST__K_BETA2C] = (float)(1.0 - hyper->beta2);
}

const lst__rule lst__rule_lion = {
    .defaults = {.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_BETA2 | LST__FIELD_WEIGHT_DECAY | LST__FIELD_MAXIMIZE,
    .slots = slots,
    .prepare = prepare,
};
