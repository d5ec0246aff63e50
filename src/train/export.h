/* SPDX-License-Identifier: MIT
 *
 * A run's weights as a folder that Hugging Face's tools load.
 */
#ifndef LST_TRAIN_EXPORT_H
#define LST_TRAIN_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "leanstep/codec.h"
#include "leanstep/pool.h"
#include "leanstep/status.h"

typedef struct train_export {
    const char *from; /* a run's folder (its newest checkpoint) or a checkpoint's */
    const char *out;  /* must not exist */
    lst_codec codec;  /* f32, bf16, f16; LST_N_CODECS: as the model came, or as the run kept it */
    uint64_t shard_bytes;
    lst_pool *pool;
} train_export;

/* What was written. */
typedef struct train_exported {
    lst_codec codec;
    int64_t step;
    uint64_t n_params;
    bool averaged; /* schedule-free's average, not the weights that gradients are taken at */
    bool masters;  /* values came from the optimizer's float32 weights */
} train_exported;

/* Writes config.json (the model's own, with the dtype set), the weights, tokenizer files and generation_config.json
 * where the run or its model has them, and trainer_state.json. The folder appears whole or not at all. Where values of
 * more bits than the checkpoint's weights are asked for, or an average, memory for the run's plan is taken; otherwise
 * nothing that grows with the model. */
LST_MUST_USE lst_status train_export_run(const train_export *job, train_exported *done, lst_error *err);

#endif
