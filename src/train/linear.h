/* SPDX-License-Identifier: MIT
 *
 * One linear layer trained for a step: y = x W^T, loss = mean(y^2) / 2. The smallest thing with a weight, a gradient
 * and a state, to show what an optimizer takes.
 */
#ifndef LST_TRAIN_LINEAR_H
#define LST_TRAIN_LINEAR_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/ledger.h"
#include "leanstep/plan.h"
#include "leanstep/pool.h"
#include "leanstep/status.h"

typedef struct train_linear {
    uint64_t n_params;
    uint64_t planned_state, state_before,
        state_after; /* bytes of optimizer state: planned, and in the ledger around the first step */
    double loss_before, loss_after;
    uint64_t planned_peak, measured_peak, arena_bytes;
    lst_ledger ledger;
    uint64_t planned[LST_N_BUCKETS];
} train_linear;

/* Rows of x: enough for a gradient of full bulk, few enough to be quick. */
#define TRAIN_LINEAR_ROWS 16

/* Makes one step with recipe (rule, hyper, weights form f32, gradients kept in f32) on a layer of out x in. */
LST_MUST_USE lst_status train_linear_measure(train_linear *result, size_t out, size_t in, const lst_recipe *recipe,
                                             lst_pool *pool, lst_error *err);

#endif
