/* SPDX-License-Identifier: MIT
 *
 * Token files as llm.c writes them: 256 int32, little-endian (magic, version, number of tokens), then the tokens.
 *
 *     magic 20240520, version 1    uint16 (GPT-2)
 *     magic 20240801, version 7    uint32 (Llama 3)
 */
#ifndef LST_DATA_TOKEN_FILE_H
#define LST_DATA_TOKEN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/documents.h"
#include "leanstep/status.h"

typedef struct data_token_file {
    char *path;
    int fd;
    uint64_t n_tokens, n_bytes;
    size_t width;  /* bytes a token */
    uint64_t hash; /* of the whole file */
} data_token_file;

/* Whether the file begins with one of the magic numbers. */
bool data_is_token_file(const char *path);
/* Reads all of it once: the size must be exactly what the header says, and every id below vocab. */
LST_MUST_USE lst_status data_token_file_open(data_token_file *out, const char *path, size_t vocab, lst_error *err);
void data_token_file_close(data_token_file *file);
/* One document, without an end. The file must outlive it. */
data_documents data_token_file_documents(data_token_file *file);

#endif
