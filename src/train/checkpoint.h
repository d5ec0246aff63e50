/* SPDX-License-Identifier: MIT
 *
 * What a checkpoint's folder holds of a run, and the way back. model.safetensors has the weights as the model uses
 * them, under Hugging Face's names beside config.json; optimizer.safetensors has masters, moments and, as the trainer's
 * text, the step, the data's position and the loss scale.
 */
#ifndef LST_TRAIN_CHECKPOINT_H
#define LST_TRAIN_CHECKPOINT_H

#include "leanstep/arch.h"
#include "leanstep/status.h"
#include "train/run.h"

/* The weights of `source` (file, index or folder) into model and masters; optimizer state at its start. */
LST_MUST_USE lst_status train__load_weights(train_run *run, const char *source, lst_error *err);
/* DIR/config.json, for a folder as Hugging Face has it. */
LST_MUST_USE lst_status train_read_config(const char *dir, lst_arch *out, lst_error *err);
/* RUN/settings.json. */
LST_MUST_USE lst_status train_read_settings(const char *folder, train_settings *out, lst_error *err);
/* Weights of a folder or GGUF file into a model that was made to generate: `arch` names them. */
LST_MUST_USE lst_status train_load_model(const char *dir, const lst_plan *plan, model *m, lst_error *err);

#endif
