/* SPDX-License-Identifier: MIT
 *
 * AdamW (torch.optim.AdamW): p = p*(1 - lr*weight_decay) before anything else, then the step of adam.c on the bare
 * gradient. The order matters at large lr*weight_decay: decay after the step would shrink the step too.
 */
#include "optim/adam.h"

static void prepare(const lst_hyper *hyper, int64_t t, lst__rule_call *out)
{
    static const enum lst__rule_loop_id loops[4] = {LST__LOOP_adamw, LST__LOOP_adamw_late, LST__LOOP_adamw_amsgrad,
                                                    LST__LOOP_adamw_amsgrad_late};
    out->loop = loops[lst__adam_scalars(hyper, t, out->k)];
    out->k[LST__K_L2] = 0.0f;
    out->k[LST__K_DECAY] = (float)(1.0 - hyper->lr * hyper->weight_decay);
}

const lst__rule lst__rule_adamw = {
    .defaults = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-2},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_BETA2 | LST__FIELD_EPS | LST__FIELD_WEIGHT_DECAY |
              LST__FIELD_AMSGRAD | LST__FIELD_MAXIMIZE,
    .slots = lst__adam_slots,
    .prepare = prepare,
};
