/* SPDX-License-Identifier: MIT
 *
 * Examples as rows of seq tokens: one example a row, or packed. The rest of a row is filled up, and does not count.
 *
 * An example of n tokens takes n of a row's seq + 1: inputs are all but the last, targets all but the first. The first
 * token of an example never counts: in a packed row it would be predicted from another example. (Attention is not cut
 * at examples: those of a row see the ones before them.)
 */
#ifndef LST_DATA_ROWS_H
#define LST_DATA_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/pack.h"
#include "data/store.h"
#include "leanstep/status.h"

/* A target that is not counted; the model room calls it MODEL_IGNORE. */
#define DATA_IGNORE (-100)

/* Examples in a store, one after another. */
typedef struct data_examples {
    const data_store *store;
    size_t n, capacity;
    uint64_t *starts; /* [n + 1], in the store */
    uint32_t *lines;  /* [n]: which line of the files it comes from */
} data_examples;

/* Appends an example that has been added to the store and ends where the store does now. */
LST_MUST_USE lst_status data_examples_add(data_examples *examples, uint32_t line, lst_error *err);
void data_examples_free(data_examples *examples);

typedef struct data_rows {
    const data_examples *examples;
    size_t seq;
    int32_t fill; /* the id behind the last token of a row */
    size_t n_examples;
    data_packed packed;
    uint64_t n_tokens; /* in all rows, without what fills them up */
    uint32_t *buffer;  /* [seq + 1] */
} data_rows;

/* Rows of the chosen examples (indices, ascending), each of at most seq + 1 tokens. */
LST_MUST_USE lst_status data_rows_make(data_rows *out, const data_examples *examples, const uint32_t *chosen, size_t n,
                                       size_t seq, bool pack, int32_t fill, lst_error *err);
void data_rows_free(data_rows *rows);
/* One row into ids[seq] and labels[seq]. */
LST_MUST_USE lst_status data_rows_read(const data_rows *rows, uint64_t row, int32_t *ids, int32_t *labels,
                                       lst_error *err);

#endif
