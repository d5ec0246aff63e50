/* SPDX-License-Identifier: MIT
 *
 * Training text and validation text: two streams of tokens over the same documents, never overlapping.
 */
#ifndef LST_DATA_SPLIT_H
#define LST_DATA_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "data/documents.h"
#include "leanstep/status.h"

/* A document, or a part of one, and then the documents' end. */
typedef struct data_segment {
    size_t document;
    uint64_t offset, n_tokens; /* in the document */
    uint64_t first_token;      /* in the stream */
} data_segment;

typedef struct data_stream {
    const data_documents *documents;
    size_t n_segments;
    data_segment *segments;
    uint64_t n_tokens; /* ends included */
} data_stream;

typedef struct data_split {
    data_stream train, valid;
    size_t n_shared; /* 1 where a document had to be cut in two to get both streams */
} data_split;

/* About `fraction` of the tokens go to validation: documents in the order of hash(seed, key), passing over one that is
 * too large, until there are enough; at least one sequence of seq + 1 tokens each. Where whole documents do not give
 * that, the last part of the longest is cut off for validation. Fails if the text is too short for both, saying
 * how long it is and which seq would do. With fraction 0 all is training text. The documents must outlive the split. */
LST_MUST_USE lst_status data_split_make(data_split *out, const data_documents *documents, uint64_t seed,
                                        double fraction, size_t seq, lst_error *err);
void data_split_free(data_split *split);
/* Tokens [first, first + n) of a stream. */
LST_MUST_USE lst_status data_stream_read(const data_stream *stream, uint64_t first, size_t n, int32_t *out,
                                         lst_error *err);
/* A number from 0 on, the same for the same seed and rank: who comes first goes to validation. */
uint64_t data_split_draw(uint64_t seed, uint64_t rank);

#endif
