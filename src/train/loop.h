/* SPDX-License-Identifier: MIT
 *
 * The loop: steps, validation, checkpoints, until the run is complete or somebody asks to stop.
 */
#ifndef LST_TRAIN_LOOP_H
#define LST_TRAIN_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "leanstep/status.h"
#include "train/run.h"

/* What a progress line needs. */
typedef struct train_progress {
    int64_t step, total_steps;
    double loss;       /* of this step */
    double valid_loss; /* the latest; NaN before the first */
    double lr, grad_norm;
    double tokens_per_s;   /* over the last steps */
    double seconds_left;   /* validation and checkpoints included; negative while it is not known */
    uint64_t memory_bytes; /* anonymous memory of the process, at most so far */
    const char *skipped;
} train_progress;

typedef struct train_observer {
    void *user;
    void (*on_step)(void *user, const train_progress *progress);
    void (*on_valid)(void *user, int64_t step, double valid_loss);
    void (*on_save)(void *user, int64_t step);
    /* Asked after each step; true: save and stop with LST_ERR_INTERRUPTED. */
    bool (*stop)(void *user);
} train_observer;

/* Trains to settings.schedule.total_steps. A checkpoint stands at the end, also when stopped. */
LST_MUST_USE lst_status train_loop(train_run *run, const train_observer *observer, lst_error *err);

#endif
