/* SPDX-License-Identifier: MIT
 *
 * Checkpoints: an optimizer and its weights <-> files.
 *
 * Everything is safetensors, with bytes exactly as stored in memory, so that a resumed run continues bit for bit.
 * docs/formats.md describes the layout. A checkpoint is a folder:
 *
 *     RUN/checkpoint-00000200/model.safetensors      weights, under the names the caller gives
 *                             optimizer.safetensors  state, step counts, and the caller's own text
 *                             ...                    whatever else the caller writes (config.json)
 *
 *     lst_ckpt_begin(&c, "RUN", 200, &err)           makes RUN/checkpoint-00000200.tmp-PID
 *     lst_ckpt_save_weights / lst_ckpt_save_optim    into lst_ckpt_folder(c)
 *     lst_ckpt_commit(c, keep, &err)                 fsync, rename, fsync; then removes older ones beyond `keep`
 *
 * A process that is killed, or a disk that fills up, at any moment leaves the previous checkpoint intact and at most a
 * folder *.tmp-PID, which lst_ckpt_clean removes. Loading checks everything before it changes anything.
 * No call here allocates memory that grows with a tensor. A file must not change while it is read.
 */
#ifndef LEANSTEP_CKPT_H
#define LEANSTEP_CKPT_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/codec.h"
#include "leanstep/optim.h"
#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the two files in a checkpoint's folder. */
#define LST_CKPT_WEIGHTS "model.safetensors"
#define LST_CKPT_OPTIM "optimizer.safetensors"

/* ---- weights ---- */

/* One tensor as it lies in memory: what is saved from there, or loaded to there. Codec f32, bf16 or f16. */
typedef struct lst_ckpt_tensor {
    const char *name;
    lst_codec codec;
    size_t n_dims;
    size_t dims[LST_MAX_DIMS];
    void *memory;
} lst_ckpt_tensor;

/* Writes path (complete or not at all), bytes as they are. Names must differ. */
LST_API LST_MUST_USE lst_status lst_ckpt_save_weights(const char *path, const lst_ckpt_tensor *tensors,
                                                      size_t n_tensors, lst_error *err);

/* Reads tensors from `path`: a .safetensors file, a model.safetensors.index.json, or a folder that holds one of them.
 * F32, BF16 and F16 are converted to the tensor's codec where they differ (to nearest, ties to even). Every tensor must
 * be there with its shape; tensors of the file that the list does not name are ignored, their number goes to *n_ignored
 * (NULL is allowed). A name "transformer.X" that is not there is also looked for as "X", as GPT-2's files have it.
 * LST_ERR_STATE if the file belongs to another model; then no memory was changed. */
LST_API LST_MUST_USE lst_status lst_ckpt_load_weights(const char *path, const lst_ckpt_tensor *tensors,
                                                      size_t n_tensors, size_t *n_ignored, lst_error *err);

/* The same into an optimizer's weights, under its tensors' names, so that a float32 file gives exact masters: each
 * value goes to weights and master together, as lst_optim_set_weights_f32 would do, without a copy of the tensor.
 * Weights and slots must be bound. Call lst_optim_reset before it, not after (reset takes masters from the rounded
 * weights). */
LST_API LST_MUST_USE lst_status lst_ckpt_load_weights_exact(const char *path, lst_optim *optim, size_t *n_ignored,
                                                            lst_error *err);

/* Writes the optimizer's float32 weights (its masters) as an F32 file: exact for fine-tuning elsewhere. */
LST_API LST_MUST_USE lst_status lst_ckpt_save_weights_f32(const char *path, const lst_optim *optim, lst_error *err);

/* ---- state ---- */

/* Writes every slot, step counts, rule, hyper-parameters, seed, and `trainer`: any text of the caller's (JSON by
 * convention: schedule, data position, loss scale), or NULL. Slots must be bound. */
LST_API LST_MUST_USE lst_status lst_ckpt_save_optim(const char *path, const lst_optim *optim, const char *trainer,
                                                    lst_error *err);

/* Fills the slots and step counts of an optimizer that was created with the same rule, forms, groups and tensors, and
 * sets its learning rates. LST_ERR_STATE names the first thing that differs ("checkpoint of another model"); then
 * nothing was changed. The weights are the caller's to load (lst_ckpt_load_weights: bytes as saved). */
LST_API LST_MUST_USE lst_status lst_ckpt_load_optim(const char *path, lst_optim *optim, lst_error *err);

/* The caller's text in an optimizer file, without an optimizer: what is needed to create one. lst_ckpt_free it.
 * Empty if none was given. */
LST_API LST_MUST_USE lst_status lst_ckpt_read_trainer(const char *path, char **trainer, lst_error *err);
LST_API void lst_ckpt_free(char *text);

/* Layouts of optimizer state in a file: our own, and the names under which others keep the same numbers.
 * X(identifier, name, what it is) */
#define LST_CKPT_LAYOUT_LIST(X)                                                                                        \
    X(LEANSTEP, "leanstep", "bytes as in memory")                                                                      \
    X(BITSANDBYTES, "bitsandbytes", "state1, absmax1, qmap1, ..., step")                                               \
    X(TORCH, "torch", "exp_avg, exp_avg_sq, ..., step, in float32")

typedef enum lst_ckpt_layout {
#define LST_X(id, name, text) LST_CKPT_##id,
    LST_CKPT_LAYOUT_LIST(LST_X)
#undef LST_X
        LST_N_CKPT_LAYOUTS
} lst_ckpt_layout;

LST_API const char *lst_ckpt_layout_name(lst_ckpt_layout layout);

/* Reads optimizer state of any layout from a file and writes it in another (docs/formats.md). `state`: the codec that
 * moments are to have, or LST_N_CODECS for what the file has (float32 for PyTorch, which knows no other). Moments whose
 * codec stays keep their bytes; slots without a name elsewhere (masters) pass as they are. Unlike the rest of this page
 * it takes memory for one tensor's moment at a time, before and after. */
LST_API LST_MUST_USE lst_status lst_ckpt_convert_optim(const char *from, const char *to, lst_ckpt_layout layout,
                                                       lst_codec state, lst_error *err);

/* ---- folders ---- */

typedef struct lst_ckpt lst_ckpt;

/* Begins the checkpoint of `step` in the folder `run` (made if absent). */
LST_API LST_MUST_USE lst_status lst_ckpt_begin(lst_ckpt **out, const char *run, int64_t step, lst_error *err);
/* Where its files are to be written. */
LST_API const char *lst_ckpt_folder(const lst_ckpt *ckpt);
/* Makes it appear under its name (replacing one of the same step at once), then removes the oldest until `keep` are
 * left; keep 0 removes none. Frees it, also on failure; a failure leaves the older ones as they were. */
LST_API LST_MUST_USE lst_status lst_ckpt_commit(lst_ckpt *ckpt, size_t keep, lst_error *err);
/* Removes what was written so far; NULL is allowed. */
LST_API void lst_ckpt_abort(lst_ckpt *ckpt);

/* The newest complete checkpoint in `run`: its path in fresh memory (lst_ckpt_free) and its step (NULL is allowed).
 * LST_ERR_STATE if there is none. */
LST_API LST_MUST_USE lst_status lst_ckpt_latest(const char *run, char **path, int64_t *step, lst_error *err);
/* Removes what killed processes left in `run` (*.tmp-PID whose process is gone). One process a run at a time. */
LST_API LST_MUST_USE lst_status lst_ckpt_clean(const char *run, lst_error *err);

#ifdef __cplusplus
}
#endif
#endif
