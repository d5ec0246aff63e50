/* SPDX-License-Identifier: MIT
 *
 * The average that schedule-free AdamW publishes.
 */
#ifndef LST_OPTIM_SCHEDULE_FREE_H
#define LST_OPTIM_SCHEDULE_FREE_H

#include "optim/pass.h"

/* y, the weights that gradients are taken at, become x = y + (1 - 1/beta1)*(z - y). */
void lst__schedule_free_average(const lst_hyper *hyper, const float *z, float *y, size_t n);

#endif
