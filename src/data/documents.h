/* SPDX-License-Identifier: MIT
 *
 * Documents of tokens, wherever they lie: the bytes of a corpus, tokens in a store, a token file.
 */
#ifndef LST_DATA_DOCUMENTS_H
#define LST_DATA_DOCUMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "data/corpus.h"
#include "leanstep/status.h"

typedef struct data_documents {
    size_t n;
    int32_t end;      /* the token behind each document; -1: there is none */
    const char *name; /* where the text is, for messages */
    const char *unit; /* what a token is, for messages: " (bytes, and one end token a document)" */
    void *context;
    uint64_t (*tokens)(const void *context, size_t document); /* without the end */
    uint64_t (*rank)(const void *context, size_t document);   /* a hash of what the document is called */
    lst_status (*read)(void *context, size_t document, uint64_t first, size_t n, int32_t *out, lst_error *err);
} data_documents;

/* A corpus byte by byte, with DATA_BYTES_END. */
data_documents data_corpus_documents(data_corpus *corpus);

#endif
