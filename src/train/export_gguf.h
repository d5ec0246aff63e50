/* SPDX-License-Identifier: MIT */
#ifndef LST_TRAIN_EXPORT_GGUF_H
#define LST_TRAIN_EXPORT_GGUF_H

#include "train/export.h"

/* A GGUF file as a folder that Hugging Face's tools load and that training goes on from: config.json, weights,
 * tokenizer.json and generation_config.json. LST_N_CODECS: float32. The folder appears whole or not at all. */
LST_MUST_USE lst_status train_export_gguf(const train_export *job, train_exported *done, lst_error *err);

#endif
