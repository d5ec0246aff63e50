/* SPDX-License-Identifier: MIT
 *
 * The documents of a corpus as a tokenizer's ids, in a store.
 */
#ifndef LST_DATA_TOKENIZED_H
#define LST_DATA_TOKENIZED_H

#include "data/documents.h"
#include "data/encoder.h"
#include "data/store.h"

typedef struct data_tokenized {
    const data_corpus *corpus;
    data_store *store;
    uint64_t *starts; /* [n_files + 1], in the store */
} data_tokenized;

/* Encodes every file. Long ones go in pieces of about `piece_bytes`, cut where that changes no id. */
LST_MUST_USE lst_status data_tokenize(data_tokenized *out, data_corpus *corpus, data_encoder *encoder,
                                      data_store *store, size_t piece_bytes, lst_error *err);
void data_tokenized_free(data_tokenized *tokenized);
/* With the encoder's end behind each. `tokenized` must outlive it. */
data_documents data_tokenized_documents(data_tokenized *tokenized, const data_encoder *encoder);

#endif
