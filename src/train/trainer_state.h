/* SPDX-License-Identifier: MIT
 *
 * trainer_state.json: what Hugging Face's tools plot a run from, made of our metrics.jsonl.
 */
#ifndef LST_TRAIN_TRAINER_STATE_H
#define LST_TRAIN_TRAINER_STATE_H

#include "leanstep/status.h"
#include "train/settings.h"

/* Writes `path` from the lines of `metrics` up to `step`. */
typedef struct train_state_source {
    const train_settings *settings;
    const char *metrics;
    int64_t step;
    double steps_per_epoch; /* 0: not known; epochs are 0 then */
} train_state_source;
LST_MUST_USE lst_status train_write_trainer_state(const char *path, const train_state_source *from, lst_error *err);

#endif
