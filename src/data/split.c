/* SPDX-License-Identifier: MIT */
#include "data/split.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"

/* Streams of random numbers that this room draws from; another number is another stream. */
#define STREAM_SPLIT 0x5011u

typedef struct ranked {
    uint64_t rank;
    size_t document;
    bool valid;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->document < y->document ? -1 : x->document > y->document;
}

static int by_document(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->document < y->document ? -1 : x->document > y->document;
}

uint64_t data_split_draw(uint64_t seed, uint64_t rank)
{
    return lst__random_u64(seed, STREAM_SPLIT, rank);
}

static uint64_t size_of(const data_documents *documents, size_t i)
{
    return documents->tokens(documents->context, i);
}

/* Tokens that stand behind each document. */
static uint64_t ends(const data_documents *documents)
{
    return documents->end >= 0;
}

static uint64_t total_tokens(const data_documents *documents)
{
    uint64_t n = documents->n * ends(documents);
    for (size_t i = 0; i < documents->n; i++)
        n += size_of(documents, i);
    return n;
}

/* Marks documents for validation and returns their tokens; passes over one that would overshoot by half. */
static uint64_t choose(const data_documents *documents, ranked *docs, uint64_t target)
{
    uint64_t tokens = 0;
    for (size_t i = 0; i < documents->n && tokens < target; i++) {
        uint64_t n = size_of(documents, docs[i].document) + ends(documents);
        docs[i].valid = tokens + n <= target + target / 2;
        tokens += docs[i].valid ? n : 0;
    }
    return tokens;
}

static void append(data_stream *stream, size_t document, uint64_t offset, uint64_t n_tokens)
{
    stream->segments[stream->n_segments++] = (data_segment){document, offset, n_tokens, stream->n_tokens};
    stream->n_tokens += n_tokens + ends(stream->documents);
}

static size_t longest_document(const data_documents *documents)
{
    size_t longest = 0;
    for (size_t i = 1; i < documents->n; i++)
        if (size_of(documents, i) > size_of(documents, longest))
            longest = i;
    return longest;
}

static lst_status refuse_short(const data_documents *documents, size_t seq, lst_error *err)
{
    const uint64_t tokens = total_tokens(documents), longest = size_of(documents, longest_document(documents));
    /* Cutting the longest document leaves it a token; both streams need seq + 1 tokens, and the cut adds an end
     * token where documents have one. */
    const uint64_t by_longest = longest + ends(documents), by_total = tokens + ends(documents);
    uint64_t works = by_longest < 2 ? 0 : by_longest - 2;
    if (works > (by_total < 2 ? 0 : (by_total - 2) / 2))
        works = (by_total - 2) / 2;
    if (works < 1)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "%s: the text is too short to train on: %llu tokens%s cannot be split into training and validation.",
            documents->name, (unsigned long long)tokens, documents->unit);
    return lst__fail(err, LST_ERR_ARGUMENT,
                     "%s: the text is too short for --seq %zu: it has %llu tokens%s, too few "
                     "for one sequence of %zu + 1 each in training and validation. Use --seq %llu or less, or more "
                     "text.",
                     documents->name, seq, (unsigned long long)tokens, documents->unit, seq, (unsigned long long)works);
}

/* All documents train; the end of the longest is cut off for validation. */
static lst_status cut_longest(data_split *out, const data_documents *documents, uint64_t target, size_t seq,
                              lst_error *err)
{
    const size_t longest = longest_document(documents);
    const uint64_t n = size_of(documents, longest), least_cut = seq + 1 - ends(documents);
    uint64_t train_rest = total_tokens(documents) - n; /* what trains even if this document gave all its tokens */
    uint64_t keep_at_least = train_rest > seq ? 1 : (uint64_t)seq + 1 - train_rest;
    if (n < least_cut + keep_at_least)
        return refuse_short(documents, seq, err);
    uint64_t cut = target > least_cut ? target : least_cut;
    if (cut > n - keep_at_least)
        cut = n - keep_at_least;
    for (size_t i = 0; i < documents->n; i++)
        append(&out->train, i, 0, i == longest ? n - cut : size_of(documents, i));
    append(&out->valid, longest, n - cut, cut);
    out->n_shared = 1;
    return LST_OK;
}

static lst_status all_to_training(data_split *out, const data_documents *documents, size_t seq, lst_error *err)
{
    for (size_t i = 0; i < documents->n; i++)
        append(&out->train, i, 0, size_of(documents, i));
    if (out->train.n_tokens > seq)
        return LST_OK;
    return lst__fail(
        err, LST_ERR_ARGUMENT,
        "%s: the text is too short for --seq %zu: it has %llu tokens%s, too few for one sequence of %zu + 1",
        documents->name, seq, (unsigned long long)out->train.n_tokens, documents->unit, seq);
}

static lst_status split_documents(data_split *out, const data_documents *documents, ranked *docs, uint64_t seed,
                                  double fraction, size_t seq, lst_error *err)
{
    if (fraction == 0)
        return all_to_training(out, documents, seq, err);
    for (size_t i = 0; i < documents->n; i++)
        docs[i] = (ranked){data_split_draw(seed, documents->rank(documents->context, i)), i, false};
    qsort(docs, documents->n, sizeof *docs, by_rank);
    uint64_t total = total_tokens(documents);
    uint64_t target = (uint64_t)((double)total * fraction);
    if (target < (uint64_t)seq + 1)
        target = (uint64_t)seq + 1;
    uint64_t valid = choose(documents, docs, target);
    if (valid < (uint64_t)seq + 1 || total - valid < (uint64_t)seq + 1)
        return cut_longest(out, documents, target, seq, err);
    qsort(docs, documents->n, sizeof *docs, by_document);
    for (size_t i = 0; i < documents->n; i++)
        append(docs[i].valid ? &out->valid : &out->train, docs[i].document, 0, size_of(documents, docs[i].document));
    return LST_OK;
}

lst_status data_split_make(data_split *out, const data_documents *documents, uint64_t seed, double fraction, size_t seq,
                           lst_error *err)
{
    data_split split = {.train = {.documents = documents}, .valid = {.documents = documents}};
    ranked *docs = lst__alloc(documents->n, sizeof *docs);
    split.train.segments = lst__alloc(documents->n, sizeof(data_segment));
    split.valid.segments = lst__alloc(documents->n, sizeof(data_segment));
    lst_status status;
    if (!docs || !split.train.segments || !split.valid.segments)
        status =
            lst__fail_memory(err, "the lists of documents", documents->n * (sizeof *docs + 2 * sizeof(data_segment)));
    else
        status = split_documents(&split, documents, docs, seed, fraction, seq, err);
    lst__free(docs);
    if (status != LST_OK) {
        data_split_free(&split);
        return status;
    }
    *out = split;
    return LST_OK;
}

void data_split_free(data_split *split)
{
    lst__free(split->train.segments);
    lst__free(split->valid.segments);
    memset(split, 0, sizeof *split);
}

static size_t segment_of(const data_stream *stream, uint64_t token)
{
    size_t low = 0, high = stream->n_segments;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (stream->segments[middle].first_token <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

lst_status data_stream_read(const data_stream *stream, uint64_t first, size_t n, int32_t *out, lst_error *err)
{
    if (first > stream->n_tokens || n > stream->n_tokens - first)
        return lst__fail(err, LST_ERR_ARGUMENT, "tokens %llu to %llu of a text that has %llu",
                         (unsigned long long)first, (unsigned long long)(first + n),
                         (unsigned long long)stream->n_tokens);
    const data_documents *documents = stream->documents;
    size_t at = n ? segment_of(stream, first) : 0;
    while (n > 0) {
        const data_segment *segment = &stream->segments[at++];
        uint64_t inside = first - segment->first_token;
        size_t run = segment->n_tokens - inside < n ? (size_t)(segment->n_tokens - inside) : n;
        lst_status status = LST_OK;
        if (run)
            status = documents->read(documents->context, segment->document, segment->offset + inside, run, out, err);
        if (status != LST_OK)
            return status;
        if (run < n && documents->end >= 0)
            out[run++] = documents->end;
        out += run;
        first += run;
        n -= run;
    }
    return LST_OK;
}
