/* SPDX-License-Identifier: MIT
 *
 * Folders as Hugging Face's tools have them: weights in one file or in shards, a config.json that says their dtype, and
 * whether a folder's weights are those of its config.
 */
#ifndef LST_TRAIN_HF_FOLDER_H
#define LST_TRAIN_HF_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/arch.h"
#include "leanstep/codec.h"
#include "leanstep/status.h"

/* Beyond this a model is written in several files: the limit that readers of all versions are used to. */
#define TRAIN_HF_SHARD_BYTES ((uint64_t)5000000000u)
/* Values that are asked for at a time. */
#define TRAIN_HF_TILE ((size_t)1 << 16)

/* n <= TRAIN_HF_TILE values of one tensor (index as in lst_arch_tensor_at) from `first` on. */
typedef lst_status train_hf_values(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err);

typedef struct train_hf_weights {
    const lst_arch *arch;
    lst_codec codec; /* f32, bf16 or f16; values are rounded to nearest, ties to even */
    uint64_t shard_bytes;
    train_hf_values *values;
    void *context;
} train_hf_weights;

/* DIR/model.safetensors; or model-00001-of-0000N.safetensors and model.safetensors.index.json where all would be more
 * than shard_bytes. No tensor is cut, so a shard may be larger than that if one tensor is. */
LST_MUST_USE lst_status train_hf_write_weights(const char *dir, const train_hf_weights *weights, lst_error *err);

/* The text of a config.json with its dtype ("torch_dtype" or "dtype") set, otherwise byte for byte as it was
 * (lst__free). */
LST_MUST_USE lst_status train_hf_set_dtype(const char *json, lst_codec codec, char **out, lst_error *err);
/* What a config.json calls the dtype of its weights; LST_N_CODECS if it names none that is known here. */
lst_codec train_hf_dtype(const char *json, size_t n_bytes);
/* "float32", "bfloat16" or "float16". */
const char *train_hf_dtype_name(lst_codec codec);

/* Looks for tensors in `path` (file, index or folder) that the model does not have. Buffers (attention masks, rotary
 * frequencies) and a tied head that equals the embedding may be there; anything else is refused by name. */
LST_MUST_USE lst_status train_hf_check_weights(const char *path, const lst_arch *arch, lst_error *err);

#endif
