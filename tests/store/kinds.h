/* SPDX-License-Identifier: MIT
 *
 * Kinds of golden files of codecs: one function each, found by the beginning of the file's name.
 */
#ifndef TESTS_STORE_KINDS_H
#define TESTS_STORE_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "optim/golden_file.h"

/* Prints one line for a case, and counts it. `text` says the worst difference found and what is allowed. */
void kind_verdict(bool passed, const char *file, const char *name, const char *text);
/* A case or array that is not compared, and why. */
void kind_skip(const char *file, const char *name, const char *why);
/* Prints the closing line; returns the program's exit status. */
int kind_summary(const char *folder);

/* An array in fresh memory of its own element size (free it); ends the program if it is absent or of another type. */
void *kind_array(const golden_file *g, const char *name, const char *dtype, size_t *n_elems);

typedef void kind_fn(const golden_file *g, const char *folder, const char *file);
kind_fn kind_bnb_adamw8bit, kind_dynamic, kind_flashoptim, kind_tables;
kind_fn kind_float_formats;
kind_fn kind_gguf_blocks;
kind_fn kind_torchao_4bit;
void kind_four_bit_tables(const golden_file *g, const char *file); /* those of kind_tables with 16 levels */

#endif
