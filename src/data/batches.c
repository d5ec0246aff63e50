/* SPDX-License-Identifier: MIT */
#include "data/batches.h"

#include <string.h>

#include "base/fail.h"
#include "base/random.h"

#define STREAM_SHUFFLE 0x5012u
#define STREAM_OFFSET 0x5013u

/* Four rounds of a balanced Feistel network over the next even power of two, walked until it lands inside: a
 * permutation for any round function, in O(1) memory, and computed for one index without the others. */
#define ROUNDS 4

uint64_t data_permute(uint64_t seed, uint64_t epoch, uint64_t index, uint64_t n)
{
    unsigned half = 1;
    while (half < 32 && n > (uint64_t)1 << (2 * half))
        half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    const uint64_t key = lst__random_u64(seed, STREAM_SHUFFLE, epoch);
    do {
        uint64_t left = index >> half, right = index & mask;
        for (unsigned round = 0; round < ROUNDS; round++) {
            uint64_t next = left ^ (lst__random_u64(key, round, right) & mask);
            left = right;
            right = next;
        }
        index = left << half | right;
    } while (index >= n);
    return index;
}

lst_status data_batches_make(data_batches *out, const data_stream *stream, size_t seq, uint64_t seed, bool shuffled,
                             lst_error *err)
{
    if (seq == 0 || stream->n_tokens < (uint64_t)seq + 1)
        return lst__fail(err, LST_ERR_ARGUMENT, "a text of %llu tokens holds no sequence of %zu tokens and a label",
                         (unsigned long long)stream->n_tokens, seq);
    *out = (data_batches){
        .stream = stream, .seq = seq, .n_sequences = (stream->n_tokens - 1) / seq, .seed = seed, .shuffled = shuffled};
    return LST_OK;
}

data_batches data_batches_of_rows(const data_rows *rows, uint64_t seed, bool shuffled)
{
    return (data_batches){
        .rows = rows, .seq = rows->seq, .n_sequences = rows->packed.n_rows, .seed = seed, .shuffled = shuffled};
}

static uint64_t first_token(const data_batches *batches, uint64_t position)
{
    uint64_t n = batches->n_sequences, seq = batches->seq;
    if (!batches->shuffled)
        return position % n * seq;
    uint64_t epoch = position / n;
    uint64_t spare = batches->stream->n_tokens - 1 - n * seq;
    uint64_t first = lst__random_below(batches->seed, STREAM_OFFSET, epoch, spare + 1);
    return first + data_permute(batches->seed, epoch, position % n, n) * seq;
}

static lst_status read_stream(const data_batches *batches, uint64_t position, int32_t *ids, int32_t *labels,
                              lst_error *err)
{
    const size_t seq = batches->seq;
    const uint64_t first = first_token(batches, position);
    lst_status status = data_stream_read(batches->stream, first, 1, ids, err);
    if (status == LST_OK)
        status = data_stream_read(batches->stream, first + 1, seq, labels, err);
    if (status == LST_OK)
        memcpy(ids + 1, labels, (seq - 1) * sizeof *ids);
    return status;
}

static lst_status read_row(const data_batches *batches, uint64_t position, int32_t *ids, int32_t *labels,
                           lst_error *err)
{
    const uint64_t n = batches->n_sequences;
    uint64_t row = position % n;
    if (batches->shuffled)
        row = data_permute(batches->seed, position / n, row, n);
    return data_rows_read(batches->rows, row, ids, labels, err);
}

lst_status data_batches_read(const data_batches *batches, uint64_t position, size_t n, int32_t *ids, int32_t *labels,
                             lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK; i++, ids += batches->seq, labels += batches->seq)
        status = (batches->stream ? read_stream : read_row)(batches, position + i, ids, labels, err);
    return status;
}
