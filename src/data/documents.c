/* SPDX-License-Identifier: MIT */
#include "data/documents.h"

#include <string.h>

#include "data/bytes.h"
#include "data/scan.h"

static uint64_t corpus_tokens(const void *context, size_t document)
{
    return ((const data_corpus *)context)->files[document].n_bytes;
}

static uint64_t corpus_rank(const void *context, size_t document)
{
    const char *key = ((const data_corpus *)context)->files[document].key;
    return data__hash(0, key, strlen(key));
}

/* Bytes are read into the last quarter of their place and widened from the front: no second buffer. */
static lst_status corpus_read(void *context, size_t document, uint64_t first, size_t n, int32_t *out, lst_error *err)
{
    unsigned char *bytes = (unsigned char *)out + 3 * n;
    lst_status status = data_corpus_read(context, document, first, bytes, n, err);
    for (size_t i = 0; status == LST_OK && i < n; i++) {
        unsigned char byte = bytes[i];
        out[i] = byte;
    }
    return status;
}

data_documents data_corpus_documents(data_corpus *corpus)
{
    return (data_documents){.n = corpus->n_files,
                            .end = DATA_BYTES_END,
                            .name = corpus->root,
                            .unit = " (bytes, and one end token a document)",
                            .context = corpus,
                            .tokens = corpus_tokens,
                            .rank = corpus_rank,
                            .read = corpus_read};
}
