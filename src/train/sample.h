/* SPDX-License-Identifier: MIT
 *
 * Text written by a byte-level model.
 */
#ifndef LST_TRAIN_SAMPLE_H
#define LST_TRAIN_SAMPLE_H

#include "leanstep/status.h"
#include "model/model.h"

/* Continues `prompt` (bytes; empty: the start of a document) by at most sampling->max_tokens bytes, ending early where
 * the model ends the document. Each byte goes to on_byte as it is written. */
LST_MUST_USE lst_status train_sample(model *m, const char *prompt, const model_sampling *sampling,
                                     void (*on_byte)(void *user, char byte), void *user, lst_error *err);

#endif
