/* SPDX-License-Identifier: MIT
 *
 * Nesterov momentum (torch.optim.SGD, nesterov=True): g and b as in momentum.c, without dampening (which PyTorch
 * refuses too); p = p - lr*(g + momentum*b) with the buffer as just updated.
 */
#include "optim/momentum.h"

static void prepare(const lst_hyper *hyper, int64_t t, lst__rule_call *out)
{
    out->loop = t == 1 ? LST__LOOP_nesterov_first : LST__LOOP_nesterov;
    lst__momentum_scalars(hyper, out);
}

const lst__rule lst__rule_nesterov = {
    .defaults = {.lr = 1e-3, .momentum = 0.9},
    .fields = LST__FIELD_LR | LST__FIELD_MOMENTUM | LST__FIELD_WEIGHT_DECAY | LST__FIELD_MAXIMIZE,
    .check = lst__momentum_check,
    .slots = lst__momentum_slots,
    .prepare = prepare,
};
