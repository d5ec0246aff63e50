/* SPDX-License-Identifier: MIT */
#include "data/split.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "data/scan.h"

/* Streams of random numbers that this room draws from; another number is another stream. */
#define STREAM_SPLIT 0x5011u

typedef struct ranked {
    uint64_t rank;
    size_t file;
    bool valid;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static int by_file(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->file < y->file ? -1 : x->file > y->file;
}

static uint64_t total_tokens(const data_corpus *corpus)
{
    return corpus->n_tokens + corpus->n_files;
}

/* Marks documents for validation and returns their tokens; passes over one that would overshoot by half. */
static uint64_t choose(const data_corpus *corpus, ranked *docs, uint64_t target)
{
    uint64_t tokens = 0;
    for (size_t i = 0; i < corpus->n_files && tokens < target; i++) {
        uint64_t n = corpus->files[docs[i].file].n_tokens + 1;
        docs[i].valid = tokens + n <= target + target / 2;
        tokens += docs[i].valid ? n : 0;
    }
    return tokens;
}

static void append(data_stream *stream, size_t file, uint64_t offset, uint64_t n_tokens)
{
    stream->segments[stream->n_segments++] = (data_segment){file, offset, n_tokens, stream->n_tokens};
    stream->n_tokens += n_tokens + 1;
}

static size_t longest_file(const data_corpus *corpus)
{
    size_t longest = 0;
    for (size_t i = 1; i < corpus->n_files; i++)
        if (corpus->files[i].n_tokens > corpus->files[longest].n_tokens)
            longest = i;
    return longest;
}

static lst_status refuse_short(const data_corpus *corpus, size_t seq, lst_error *err)
{
    uint64_t tokens = total_tokens(corpus);
    uint64_t longest = corpus->files[longest_file(corpus)].n_tokens;
    const char *unit = corpus->tokens ? "" : "bytes, and ";
    /* Cutting the longest document leaves it a token; both streams need seq + 1 tokens, and the cut adds an end
     * token. */
    uint64_t works = longest == 0 ? 0 : longest - 1 < (tokens - 1) / 2 ? longest - 1 : (tokens - 1) / 2;
    if (works < 1)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "%s: the text is too short to train on: %llu tokens (%sone end token a document) cannot be "
                         "split into training and validation.",
                         corpus->root, (unsigned long long)tokens, unit);
    return lst__fail(
        err, LST_ERR_ARGUMENT,
        "%s: the text is too short for --seq %zu: it has %llu tokens (%sone end token a document), too few "
        "for one sequence of %zu + 1 each in training and validation. Use --seq %llu or less, or more text.",
        corpus->root, seq, (unsigned long long)tokens, unit, seq, (unsigned long long)works);
}

/* All documents train; the end of the longest is cut off for validation. */
static lst_status cut_longest(data_split *out, const data_corpus *corpus, uint64_t target, size_t seq, lst_error *err)
{
    size_t longest = longest_file(corpus);
    uint64_t n = corpus->files[longest].n_tokens;
    uint64_t train_rest = total_tokens(corpus) - n; /* what trains even if this document gave all its tokens */
    uint64_t keep_at_least = train_rest > seq ? 1 : (uint64_t)seq + 1 - train_rest;
    if (n < seq + keep_at_least)
        return refuse_short(corpus, seq, err);
    uint64_t cut = target > seq ? target : seq;
    if (cut > n - keep_at_least)
        cut = n - keep_at_least;
    for (size_t i = 0; i < corpus->n_files; i++)
        append(&out->train, i, 0, i == longest ? n - cut : corpus->files[i].n_tokens);
    append(&out->valid, longest, n - cut, cut);
    out->n_shared = 1;
    return LST_OK;
}

static lst_status split_documents(data_split *out, const data_corpus *corpus, ranked *docs, uint64_t seed,
                                  double fraction, size_t seq, lst_error *err)
{
    for (size_t i = 0; i < corpus->n_files; i++) {
        const char *key = corpus->files[i].key;
        docs[i] = (ranked){lst__random_u64(seed, STREAM_SPLIT, data__hash(0, key, strlen(key))), i, false};
    }
    qsort(docs, corpus->n_files, sizeof *docs, by_rank);
    uint64_t total = total_tokens(corpus);
    uint64_t target = (uint64_t)((double)total * fraction);
    if (target < (uint64_t)seq + 1)
        target = (uint64_t)seq + 1;
    uint64_t valid = choose(corpus, docs, target);
    if (valid < (uint64_t)seq + 1 || total - valid < (uint64_t)seq + 1)
        return cut_longest(out, corpus, target, seq, err);
    qsort(docs, corpus->n_files, sizeof *docs, by_file);
    for (size_t i = 0; i < corpus->n_files; i++)
        append(docs[i].valid ? &out->valid : &out->train, docs[i].file, 0, corpus->files[docs[i].file].n_tokens);
    return LST_OK;
}

lst_status data_split_make(data_split *out, data_corpus *corpus, uint64_t seed, double fraction, size_t seq,
                           lst_error *err)
{
    data_split split = {.train = {.corpus = corpus}, .valid = {.corpus = corpus}};
    ranked *docs = lst__alloc(corpus->n_files, sizeof *docs);
    split.train.segments = lst__alloc(corpus->n_files, sizeof(data_segment));
    split.valid.segments = lst__alloc(corpus->n_files, sizeof(data_segment));
    lst_status status;
    if (!docs || !split.train.segments || !split.valid.segments)
        status = lst__fail_memory(err, "the lists of documents",
                                  corpus->n_files * (sizeof *docs + 2 * sizeof(data_segment)));
    else
        status = split_documents(&split, corpus, docs, seed, fraction, seq, err);
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

/* Bytes are read into the last quarter of their place and widened from the front: no second buffer. */
static lst_status read_bytes(const data_stream *stream, const data_segment *segment, uint64_t first, size_t n,
                             int32_t *out, lst_error *err)
{
    unsigned char *bytes = (unsigned char *)out + 3 * n;
    lst_status status = data_corpus_read(stream->corpus, segment->file, segment->offset + first, bytes, n, err);
    for (size_t i = 0; status == LST_OK && i < n; i++) {
        unsigned char byte = bytes[i];
        out[i] = byte;
    }
    return status;
}

static lst_status read_part(const data_stream *stream, const data_segment *segment, uint64_t first, size_t n,
                            int32_t *out, lst_error *err)
{
    if (!stream->corpus->tokens)
        return read_bytes(stream, segment, first, n, out, err);
    return data_corpus_read_tokens(stream->corpus, segment->file, segment->offset + first, out, n, err);
}

lst_status data_stream_read(const data_stream *stream, uint64_t first, size_t n, int32_t *out, lst_error *err)
{
    if (first > stream->n_tokens || n > stream->n_tokens - first)
        return lst__fail(err, LST_ERR_ARGUMENT, "tokens %llu to %llu of a text that has %llu",
                         (unsigned long long)first, (unsigned long long)(first + n),
                         (unsigned long long)stream->n_tokens);
    size_t at = n ? segment_of(stream, first) : 0;
    while (n > 0) {
        const data_segment *segment = &stream->segments[at++];
        uint64_t inside = first - segment->first_token;
        size_t run = segment->n_tokens - inside < n ? (size_t)(segment->n_tokens - inside) : n;
        lst_status status = run ? read_part(stream, segment, inside, run, out, err) : LST_OK;
        if (status != LST_OK)
            return status;
        if (run < n)
            out[run++] = stream->corpus->end_token;
        out += run;
        first += run;
        n -= run;
    }
    return LST_OK;
}
