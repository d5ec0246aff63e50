/* SPDX-License-Identifier: MIT
 *
 * What Adam and AdamW share: two moments (three with amsgrad), and how the scalars are made.
 */
#ifndef LST_OPTIM_ADAM_H
#define LST_OPTIM_ADAM_H

#include "optim/rule.h"

size_t lst__adam_slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out);
/* The scalars of step t, and the place of the loop in its family: 0, or 1 late, or 2 amsgrad, or 3 both. */
int lst__adam_scalars(const lst_hyper *hyper, int64_t t, float *k);

#endif
