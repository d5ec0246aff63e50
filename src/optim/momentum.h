/* SPDX-License-Identifier: MIT
 *
 * What momentum and Nesterov share: one buffer, and how the scalars are made.
 */
#ifndef LST_OPTIM_MOMENTUM_H
#define LST_OPTIM_MOMENTUM_H

#include "optim/rule.h"

size_t lst__momentum_slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out);
void lst__momentum_scalars(const lst_hyper *hyper, lst__rule_call *out);
LST_MUST_USE lst_status lst__momentum_check(const lst_hyper *hyper, const char *where, lst_error *err);

#endif
