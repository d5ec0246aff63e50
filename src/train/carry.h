/* SPDX-License-Identifier: MIT
 *
 * Files that go with a model from folder to folder, byte for byte.
 */
#ifndef LST_TRAIN_CARRY_H
#define LST_TRAIN_CARRY_H

#include "leanstep/status.h"
#include "train/run.h"

/* A copy, complete or not at all. */
LST_MUST_USE lst_status train__copy_file(const char *from, const char *to, lst_error *err);
/* The tokenizer's files (data/encoder.h) that are in one folder into another. */
LST_MUST_USE lst_status train__copy_tokenizer(const char *from, const char *to, lst_error *err);
/* The tokenizer of a new run into its folder; and a generation_config.json with what ends a text, where the model has
 * that in its config.json alone. */
LST_MUST_USE lst_status train__carry_tokenizer(const train_run *run, lst_error *err);

#endif
