/* SPDX-License-Identifier: MIT */
#include "data/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"

/* Bytes of a text that are encoded at a time. */
#define PIECE_BYTES ((size_t)1 << 20)

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool all_json_lines(const data_corpus *corpus)
{
    for (size_t i = 0; i < corpus->n_files; i++)
        if (!ends_with(corpus->files[i].key, ".jsonl"))
            return false;
    return true;
}

/* ---- text and token files: a stream ---- */

static lst_status open_stream(data_set *set, const data_request *request, lst_error *err)
{
    lst_status status =
        data_split_make(&set->split, &set->documents, request->seed, request->valid_fraction, request->seq, err);
    if (status == LST_OK)
        status = data_batches_make(&set->train, &set->split.train, request->seq, request->seed, true, err);
    if (status == LST_OK && request->valid_fraction > 0)
        status = data_batches_make(&set->valid, &set->split.valid, request->seq, request->seed, false, err);
    return status;
}

static lst_status open_text(data_set *set, const data_request *request, data_encoder *encoder, lst_error *err)
{
    lst_status status = LST_OK;
    if (!encoder->tokenizer) {
        set->documents = data_corpus_documents(&set->corpus);
        return open_stream(set, request, err);
    }
    status = data_encoder_needs_end(encoder, err);
    if (status == LST_OK)
        status = data_store_open(&set->store, request->store, err);
    if (status == LST_OK)
        status = data_tokenize(&set->tokenized, &set->corpus, encoder, &set->store, PIECE_BYTES, err);
    if (status != LST_OK)
        return status;
    set->documents = data_tokenized_documents(&set->tokenized, encoder);
    return open_stream(set, request, err);
}

static lst_status open_tokens(data_set *set, const data_request *request, data_encoder *encoder, lst_error *err)
{
    lst_status status = data_token_file_open(&set->file, request->path, encoder->vocab, err);
    if (status != LST_OK)
        return status;
    set->hash = set->file.hash;
    set->documents = data_token_file_documents(&set->file);
    return open_stream(set, request, err);
}

/* ---- examples: rows ---- */

typedef struct drawn {
    uint64_t rank;
    uint32_t line;
} drawn;

static int by_rank(const void *a, const void *b)
{
    const drawn *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Lines that have examples, each once. */
static size_t list_lines(const data_examples *examples, uint64_t seed, drawn *out)
{
    size_t n = 0;
    for (size_t i = 0; i < examples->n; i++)
        if (i == 0 || examples->lines[i] != examples->lines[i - 1])
            out[n++] = (drawn){data_split_draw(seed, examples->lines[i]), examples->lines[i]};
    return n;
}

/* Marks the lines of validation: so many of them as fraction says, at least one, and one is left to train on. */
static lst_status choose_valid(data_set *set, const data_request *request, drawn *lines, bool *valid, lst_error *err)
{
    const size_t n = list_lines(&set->examples, request->seed, lines);
    if (request->valid_fraction == 0)
        return LST_OK;
    if (n < 2)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "%s: one example cannot be split into training and validation data: give more",
                         set->corpus.root);
    size_t wanted = (size_t)(request->valid_fraction * (double)n + 0.5);
    wanted = wanted < 1 ? 1 : wanted > n - 1 ? n - 1 : wanted;
    qsort(lines, n, sizeof *lines, by_rank);
    for (size_t i = 0; i < wanted; i++)
        valid[lines[i].line] = true;
    set->counts.n_valid_lines = wanted;
    return LST_OK;
}

static lst_status make_rows(data_set *set, const data_request *request, const data_encoder *encoder, const bool *valid,
                            uint32_t *chosen, lst_error *err)
{
    const int32_t fill = encoder->end >= 0 ? encoder->end : 0;
    lst_status status = LST_OK;
    for (int part = 0; part < 2 && status == LST_OK; part++) {
        size_t n = 0;
        for (size_t i = 0; i < set->examples.n; i++)
            if (valid[set->examples.lines[i]] == (part == 1))
                chosen[n++] = (uint32_t)i;
        status = data_rows_make(part ? &set->valid_rows : &set->train_rows, &set->examples, chosen, n, request->seq,
                                request->pack, fill, err);
    }
    set->train = data_batches_of_rows(&set->train_rows, request->seed, true);
    set->valid = data_batches_of_rows(&set->valid_rows, request->seed, false);
    return status;
}

static lst_status split_examples(data_set *set, const data_request *request, const data_encoder *encoder,
                                 lst_error *err)
{
    const size_t n = set->examples.n;
    drawn *lines = lst__alloc(n, sizeof *lines);
    bool *valid = lst__alloc((size_t)set->counts.n_lines, sizeof *valid);
    uint32_t *chosen = lst__alloc(n, sizeof *chosen);
    lst_status status = lines && valid && chosen ? LST_OK : lst__fail_memory(err, "the lists of examples", n * 24);
    if (status == LST_OK)
        status = choose_valid(set, request, lines, valid, err);
    if (status == LST_OK)
        status = make_rows(set, request, encoder, valid, chosen, err);
    lst__free(lines);
    lst__free(valid);
    lst__free(chosen);
    return status;
}

static lst_status open_examples(data_set *set, const data_request *request, data_encoder *encoder, lst_error *err)
{
    lst_status status = data_store_open(&set->store, request->store, err);
    if (status == LST_OK)
        status = data__read_examples(set, request, encoder, err);
    return status == LST_OK ? split_examples(set, request, encoder, err) : status;
}

/* ---- */

/* Options of examples have no effect on other data. */
static lst_status check_options(const data_set *set, const data_request *request, lst_error *err)
{
    static const char *const kinds[] = {"a text", "", "a token file"};
    if (set->kind == DATA_KIND_EXAMPLES || (!request->pack && !request->loss_all))
        return LST_OK;
    return lst__fail(
        err, LST_ERR_ARGUMENT,
        "--%s has no effect here: %s is %s, whose tokens all count and fill every row; it is for JSON lines",
        request->pack ? "pack" : "loss all", request->path, kinds[set->kind]);
}

static lst_status open_kind(data_set *set, const data_request *request, data_encoder *encoder, lst_error *err)
{
    if (data_is_token_file(request->path)) {
        set->kind = DATA_KIND_TOKENS;
        lst_status status = check_options(set, request, err);
        return status == LST_OK ? open_tokens(set, request, encoder, err) : status;
    }
    lst_status status = data_corpus_open(&set->corpus, request->path, err);
    if (status != LST_OK)
        return status;
    set->hash = set->corpus.hash;
    set->kind = all_json_lines(&set->corpus) ? DATA_KIND_EXAMPLES : DATA_KIND_TEXT;
    status = check_options(set, request, err);
    if (status != LST_OK)
        return status;
    return set->kind == DATA_KIND_TEXT ? open_text(set, request, encoder, err)
                                       : open_examples(set, request, encoder, err);
}

lst_status data_set_open(data_set *set, const data_request *request, data_encoder *encoder, lst_error *err)
{
    *set = (data_set){.is_open = true, .corpus = {.open_fd = -1}, .store = {.fd = -1}, .file = {.fd = -1}};
    lst_status status = open_kind(set, request, encoder, err);
    if (status != LST_OK) {
        data_set_close(set);
        return status;
    }
    if (encoder->hash)
        set->hash = lst__random_mix(set->hash ^ encoder->hash);
    set->disk_bytes = set->store.n * sizeof(uint32_t);
    return LST_OK;
}

void data_set_close(data_set *set)
{
    if (!set->is_open)
        return;
    data_split_free(&set->split);
    data_rows_free(&set->train_rows);
    data_rows_free(&set->valid_rows);
    data_examples_free(&set->examples);
    data_tokenized_free(&set->tokenized);
    data_token_file_close(&set->file);
    data_store_close(&set->store);
    data_corpus_close(&set->corpus);
    set->is_open = false;
}

uint64_t data_set_tokens(const data_set *set, bool valid)
{
    if (set->kind == DATA_KIND_EXAMPLES)
        return valid ? set->valid_rows.n_tokens : set->train_rows.n_tokens;
    return valid ? set->split.valid.n_tokens : set->split.train.n_tokens;
}
