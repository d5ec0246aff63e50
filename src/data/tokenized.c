/* SPDX-License-Identifier: MIT */
#include "data/tokenized.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/scan.h"

/* A file on its way: bytes not encoded yet, and the ids of one piece. */
typedef struct work {
    data_corpus *corpus;
    data_encoder *encoder;
    data_store *store;
    size_t piece;
    char *bytes;
    size_t held, room;
    data_ids ids;
} work;

static lst_status make_room(work *w, size_t n, lst_error *err)
{
    if (w->room >= n)
        return LST_OK;
    char *grown = lst__realloc(w->bytes, n, 1);
    if (!grown)
        return lst__fail_memory(err, "a piece of text", n);
    w->bytes = grown;
    w->room = n;
    return LST_OK;
}

/* Ids are below 2^31, so they are tokens of the store as they are. */
static lst_status put(work *w, size_t n, data_place place, lst_error *err)
{
    w->ids.n = 0;
    lst_status status = data_encoder_text(w->encoder, w->bytes, n, place, &w->ids, err);
    if (status == LST_OK)
        status = data_store_add(w->store, (const uint32_t *)w->ids.ids, w->ids.n, err);
    w->held -= n;
    memmove(w->bytes, w->bytes + n, w->held);
    return status;
}

static lst_status encode_file(work *w, size_t file, lst_error *err)
{
    const uint64_t n_bytes = w->corpus->files[file].n_bytes;
    size_t want = w->piece; /* grows where no place to cut is found */
    int place = DATA_FIRST;
    for (uint64_t offset = 0; offset < n_bytes;) {
        const size_t n = n_bytes - offset < want ? (size_t)(n_bytes - offset) : want;
        lst_status status = make_room(w, w->held + n, err);
        if (status == LST_OK)
            status = data_corpus_read(w->corpus, file, offset, w->bytes + w->held, n, err);
        if (status != LST_OK)
            return status;
        w->held += n;
        offset += n;
        const bool last = offset == n_bytes;
        const size_t cut = last ? w->held : data_encoder_cut(w->encoder, w->bytes, w->held);
        want = w->piece;
        if (!last && cut == w->held) {
            want = w->held;
            continue;
        }
        status = put(w, cut, (data_place)(place | (last ? DATA_LAST : 0)), err);
        if (status != LST_OK)
            return status;
        place = 0;
    }
    return LST_OK;
}

lst_status data_tokenize(data_tokenized *out, data_corpus *corpus, data_encoder *encoder, data_store *store,
                         size_t piece_bytes, lst_error *err)
{
    data_tokenized made = {corpus, store, lst__alloc(corpus->n_files + 1, sizeof(uint64_t))};
    work w = {.corpus = corpus, .encoder = encoder, .store = store, .piece = piece_bytes};
    lst_status status = made.starts ? LST_OK : lst__fail_memory(err, "the list of documents", corpus->n_files * 8);
    for (size_t i = 0; i < corpus->n_files && status == LST_OK; i++) {
        w.held = 0;
        status = encode_file(&w, i, err);
        made.starts[i + 1] = store->n;
    }
    if (status == LST_OK)
        status = data_store_flush(store, err);
    lst__free(w.bytes);
    lst__free(w.ids.ids);
    if (status == LST_OK)
        *out = made;
    else
        data_tokenized_free(&made);
    return status;
}

void data_tokenized_free(data_tokenized *tokenized)
{
    lst__free(tokenized->starts);
    *tokenized = (data_tokenized){0};
}

static uint64_t tokens_of(const void *context, size_t document)
{
    const data_tokenized *t = context;
    return t->starts[document + 1] - t->starts[document];
}

static uint64_t rank_of(const void *context, size_t document)
{
    const char *key = ((const data_tokenized *)context)->corpus->files[document].key;
    return data__hash(0, key, strlen(key));
}

static lst_status read_tokens(void *context, size_t document, uint64_t first, size_t n, int32_t *out, lst_error *err)
{
    const data_tokenized *t = context;
    return data_store_read(t->store, t->starts[document] + first, n, (uint32_t *)out, err);
}

data_documents data_tokenized_documents(data_tokenized *tokenized, const data_encoder *encoder)
{
    return (data_documents){.n = tokenized->corpus->n_files,
                            .end = encoder->end,
                            .name = tokenized->corpus->root,
                            .unit = " (one end token a document among them)",
                            .context = tokenized,
                            .tokens = tokens_of,
                            .rank = rank_of,
                            .read = read_tokens};
}
