/* SPDX-License-Identifier: MIT
 *
 * A model and a LoRA adapter as PEFT saves them, made into one model.
 */
#ifndef LST_TRAIN_MERGE_H
#define LST_TRAIN_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/codec.h"
#include "leanstep/status.h"

typedef struct train_merge {
    const char *base;    /* a Hugging Face folder */
    const char *adapter; /* a folder with adapter_config.json and adapter_model.safetensors */
    const char *out;     /* must not exist */
    lst_codec codec;     /* f32, bf16, f16; LST_N_CODECS: as the base says */
    uint64_t shard_bytes;
} train_merge;

/* What was written. */
typedef struct train_merged {
    lst_codec codec;
    size_t n_changed; /* matrices with an adapter */
    size_t rank;
    double scale; /* of B A: alpha / r, or alpha / sqrt(r) for rsLoRA */
} train_merged;

/* Writes W + scale B A, computed in double and rounded once, for every matrix that has an adapter, and every other
 * tensor as it is; config.json and tokenizer files are the base's. What an adapter may hold beside plain LoRA of linear
 * layers (DoRA, biases, whole modules, embeddings, patterns of rank or alpha, a head that is the embedding) is refused
 * by name. The folder appears whole or not at all; nothing is held that grows with the model. */
LST_MUST_USE lst_status train_merge_adapter(const train_merge *job, train_merged *done, lst_error *err);

#endif
