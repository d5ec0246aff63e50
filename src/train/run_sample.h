/* SPDX-License-Identifier: MIT
 *
 * Text that a run's model writes after settings.prompt, when the run is done.
 */
#ifndef LST_TRAIN_RUN_SAMPLE_H
#define LST_TRAIN_RUN_SAMPLE_H

#include "data/unicode.h"
#include "train/run.h"

/* Whether the run's examples are chats, so that the prompt is what a user says. */
bool train_run_chats(const train_run *run);
/* Appends at most settings.sample_tokens tokens. */
LST_MUST_USE lst_status train_run_sample(train_run *run, data_text *out, lst_error *err);

#endif
