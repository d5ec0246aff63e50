/* SPDX-License-Identifier: MIT
 *
 * The engine: a plan turned into an arena, a model and an optimizer in it, and one step of training after another.
 * It knows nothing of text, files or schedules: the caller fills the micro-batches and names the rate.
 *
 * What happens to numbers that are not finite:
 *   - gradients kept: loss and every gradient are looked at before the first update. Is anything not finite, the step
 *   is
 *     skipped whole (weights, state, step counts untouched), counted, and the tensor named.
 *   - gradients released: the loss, and the first gradient, are looked at before the first update; a fault there skips
 *     the step whole. Each later gradient is looked at before it is applied; a fault there ends the run with
 *     LST_ERR_NONFINITE and the tensor's name, since other tensors have already moved. The last checkpoint is the way
 *     back.
 *   - TRAIN_MAX_SKIPS steps skipped in a row end the run with LST_ERR_NONFINITE: nothing is being learned.
 */
#ifndef LST_TRAIN_ENGINE_H
#define LST_TRAIN_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "leanstep/ledger.h"
#include "leanstep/optim.h"
#include "leanstep/plan.h"
#include "leanstep/pool.h"
#include "leanstep/status.h"
#include "model/model.h"

#define TRAIN_MAX_SKIPS 100

typedef struct train_engine {
    const lst_plan *plan;
    lst_pool *pool;
    lst_arena arena;
    lst_ledger ledger;
    model *model;
    lst_optim *optim;
    lst_loss_scale scale; /* all ones where there is no loss scale */
    size_t n_tensors, n_groups;
    double *squares;    /* by tensor: sum of squares of its gradient in this step */
    uint64_t n_skipped; /* steps skipped since the run's start */
    uint64_t n_skipped_in_row;
} train_engine;

/* Reserves the arena of the plan and puts model and optimizer into it. Weights and state hold nothing yet: call
 * train_engine_init_random, or load them. Plan and pool must outlive the engine. */
LST_MUST_USE lst_status train_engine_create(train_engine **out, const lst_plan *plan, lst_pool *pool, uint64_t seed,
                                            lst_error *err);
void train_engine_destroy(train_engine *engine); /* NULL is allowed */
/* Random weights from the seed, state at its start. */
LST_MUST_USE lst_status train_engine_init_random(train_engine *engine, uint64_t seed, lst_error *err);

typedef struct train_step {
    double loss;         /* mean over the counted tokens */
    double grad_norm;    /* global, unscaled, before clipping; NaN where a gradient is not finite */
    float clip;          /* what gradients were multiplied with; 1 without clipping */
    size_t counted;      /* tokens that count */
    float loss_scale;    /* used in this step */
    const char *skipped; /* what was not finite: a tensor's name or "loss"; NULL: the step was made */
} train_step;

/* One optimizer step at learning rate lr on the micro-batches as filled (model_ids, model_targets). */
LST_MUST_USE lst_status train_engine_step(train_engine *engine, double lr, train_step *out, lst_error *err);

#endif
