/* SPDX-License-Identifier: MIT
 *
 * Sequences of a stream, or rows of examples, in a shuffled order that is a function of (seed, position) alone: nothing
 * about the order is stored, and a run resumes at any step by its number.
 *
 * An epoch visits each sequence once. Sequence s of a stream is tokens [first + s * seq, first + (s + 1) * seq + 1):
 * inputs and, one to the right, labels. What does not fill a sequence shifts from epoch to epoch (`first` is drawn), so
 * that no text is left out for good.
 */
#ifndef LST_DATA_BATCHES_H
#define LST_DATA_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/rows.h"
#include "data/split.h"
#include "leanstep/status.h"

typedef struct data_batches {
    const data_stream *stream; /* NULL: rows */
    const data_rows *rows;
    size_t seq;
    uint64_t n_sequences; /* an epoch */
    uint64_t seed;
    bool shuffled; /* false: in the order of the text, every epoch the same (validation) */
} data_batches;

/* The stream must hold at least seq + 1 tokens (data_split_make sees to it) and outlive the batches. */
LST_MUST_USE lst_status data_batches_make(data_batches *out, const data_stream *stream, size_t seq, uint64_t seed,
                                          bool shuffled, lst_error *err);
/* The rows must outlive the batches. */
data_batches data_batches_of_rows(const data_rows *rows, uint64_t seed, bool shuffled);
/* Sequences position .. position + n - 1 (counted over all epochs) into ids[n * seq] and labels[n * seq]. */
LST_MUST_USE lst_status data_batches_read(const data_batches *batches, uint64_t position, size_t n, int32_t *ids,
                                          int32_t *labels, lst_error *err);
/* Which sequence stands at `index` of an epoch: a permutation of [0, n). */
uint64_t data_permute(uint64_t seed, uint64_t epoch, uint64_t index, uint64_t n);

#endif
