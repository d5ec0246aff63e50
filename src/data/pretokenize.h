/* SPDX-License-Identifier: MIT
 *
 * Pre-tokenizers: how text is cut into words before byte pairs are merged inside each.
 *
 * Four are known, each the meaning of one published pattern; scanners written by hand, because the patterns need
 * Unicode classes of one exact version and a look-ahead, and because a pattern from a file can be made to run for ever.
 */
#ifndef DATA_PRETOKENIZE_H
#define DATA_PRETOKENIZE_H

#include <stddef.h>

typedef enum data_splitter {
    DATA_SPLIT_GPT2,   /* 's|'t|... | ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
    DATA_SPLIT_SMOLLM, /* each digit alone, then GPT-2's between them */
    DATA_SPLIT_LLAMA3, /* (?i:'s|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|... */
    DATA_SPLIT_QWEN2,  /* as Llama-3's, one digit at a time */
} data_splitter;

/* Bytes of the first word of text (n >= 1 bytes); at least 1. */
size_t data_first_word(data_splitter splitter, const char *text, size_t n);

/* The patterns as tokenizer.json writes them. */
extern const char *const data_llama3_pattern;
extern const char *const data_qwen2_pattern;

#endif
