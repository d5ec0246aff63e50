/* SPDX-License-Identifier: MIT
 *
 * The tokenizer of a model's folder or of a run: found, checked against the model, and taken along.
 */
#ifndef LST_TRAIN_FOLDER_TOKENIZER_H
#define LST_TRAIN_FOLDER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "data/tokenizer.h"
#include "leanstep/arch.h"
#include "leanstep/status.h"

/* What belongs to a model beside its weights and its config. */
#define TRAIN_N_CARRIED 8
extern const char *const train_carried[TRAIN_N_CARRIED];

bool train_has_tokenizer(const char *folder);
/* The tokenizer of a folder that has one, and the id that ends a document: the first of "eos_token_id" in
 * generation_config.json or config.json, else the token <|endoftext|> or <|end_of_text|>. A tokenizer with more ids
 * than the model's vocabulary is refused. */
LST_MUST_USE lst_status train_folder_tokenizer(data_tokenizer **out, int32_t *end, const char *folder,
                                               const lst_arch *arch, lst_error *err);
/* Copies the carried files that `from` has into `to`. Where those would not name `end` as the end of a document, a
 * generation_config.json that does is written. */
LST_MUST_USE lst_status train_carry_tokenizer(const char *from, const char *to, int32_t end, lst_error *err);
/* One file, complete or not at all. */
LST_MUST_USE lst_status train_copy_file(const char *from, const char *to, lst_error *err);

#endif
