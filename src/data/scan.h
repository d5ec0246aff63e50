/* SPDX-License-Identifier: MIT
 *
 * The scan behind data_corpus_open: walks the folders, tells text from binary, counts and hashes.
 */
#ifndef LST_DATA_SCAN_H
#define LST_DATA_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "data/corpus.h"

/* Fills files, n_bytes, hash and skipped of a corpus whose root is set. On failure the corpus can still be closed. */
LST_MUST_USE lst_status data__scan(data_corpus *corpus, lst_error *err);
/* Continues a hash over more bytes. Any cut into pieces of a multiple of 8 bytes gives the same result. */
uint64_t data__hash(uint64_t hash, const void *bytes, size_t n_bytes);

#endif
