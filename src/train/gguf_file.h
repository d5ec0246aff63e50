/* SPDX-License-Identifier: MIT
 *
 * Models in GGUF files: one file has weights, metadata and tokenizer.
 */
#ifndef LST_TRAIN_GGUF_FILE_H
#define LST_TRAIN_GGUF_FILE_H

#include "model/model.h"
#include "train/write.h"

/* The file's weights, decoded tile by tile into the model's own form. */
LST_MUST_USE lst_status train_gguf_load(const char *path, const lst_plan *plan, model *m, lst_error *err);
LST_MUST_USE lst_status train_gguf_tokenizer(data_tokenizer **out, const char *path, lst_error *err);
/* The token that ends a text, if the file names one. */
LST_MUST_USE lst_status train_gguf_stops(train_stops *stops, const char *path, lst_error *err);

#endif
