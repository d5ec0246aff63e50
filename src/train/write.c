/* SPDX-License-Identifier: MIT */
#include "train/write.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"

#define MAX_CONFIG ((size_t)4 << 20)

void train_stops_add(train_stops *stops, int32_t id)
{
    for (size_t i = 0; i < stops->n; i++)
        if (stops->ids[i] == id)
            return;
    if (id >= 0 && stops->n < TRAIN_MAX_STOPS)
        stops->ids[stops->n++] = id;
}

static void add_value(train_stops *stops, const json_t *value)
{
    json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    if (id >= 0 && id <= INT32_MAX)
        train_stops_add(stops, (int32_t)id);
}

static lst_status read_stops(train_stops *stops, const char *path, lst_error *err)
{
    json_t *config;
    if (!lst__is_file(path))
        return LST_OK;
    lst_status status = lst__json_load(&config, path, MAX_CONFIG, err);
    if (status != LST_OK)
        return status;
    const json_t *eos = json_object_get(config, "eos_token_id");
    add_value(stops, eos);
    for (size_t i = 0; i < json_array_size(eos); i++)
        add_value(stops, json_array_get(eos, i));
    json_decref(config);
    return LST_OK;
}

lst_status train_stops_read(train_stops *stops, const char *dir, lst_error *err)
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < 2; i++) {
        char *path = lst__path_join(dir, names[i]);
        status = path ? read_stops(stops, path, err) : lst__fail_memory(err, names[i], strlen(dir) + 32);
        lst__free(path);
    }
    return status;
}

typedef struct writing {
    const train_writer *writer;
    data_text pending, valid;
    bool stopped;
} writing;

/* How many bytes at the end may yet become a character: a lead byte with fewer bytes behind it than it wants. */
static size_t unfinished(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char byte = (unsigned char)text[n - back];
        if ((byte & 0xc0) == 0x80)
            continue;
        size_t wants = byte >= 0xf0 && byte < 0xf5   ? 4
                       : byte >= 0xe0 && byte < 0xf0 ? 3
                       : byte >= 0xc2 && byte < 0xe0 ? 2
                                                     : 1;
        return wants > back ? back : 0;
    }
    return 0;
}

static lst_status flush(writing *w, bool all, lst_error *err)
{
    size_t keep = all ? 0 : unfinished(w->pending.data, w->pending.n), n = w->pending.n - keep;
    if (n == 0)
        return LST_OK;
    w->valid.n = 0;
    lst_status status = data_utf8_lossy(&w->valid, w->pending.data, n, err);
    if (status != LST_OK)
        return status;
    w->writer->on_text(w->writer->user, w->valid.data, w->valid.n);
    memmove(w->pending.data, w->pending.data + n, keep);
    w->pending.n = keep;
    return LST_OK;
}

/* A stop ends generation with LST_ERR_INTERRUPTED, which train_write takes up. */
static lst_status on_token(void *user, int32_t id, lst_error *err)
{
    writing *w = user;
    const train_stops *stops = &w->writer->stops;
    for (size_t i = 0; i < stops->n; i++)
        w->stopped = w->stopped || stops->ids[i] == id;
    if (w->stopped)
        return lst__fail(err, LST_ERR_INTERRUPTED, "the text has ended");
    if (data_tokenizer_token_bytes(w->writer->tokenizer, id) == 0)
        return LST_OK; /* a row of the model that no token has */
    lst_status status = data_tokenizer_decode(w->writer->tokenizer, &id, 1, true, &w->pending, err);
    return status == LST_OK ? flush(w, false, err) : status;
}

lst_status train_write(model *m, const int32_t *ids, size_t n, const model_sampling *sampling,
                       const train_writer *writer, lst_error *err)
{
    writing w = {.writer = writer};
    model_sampling endless = *sampling;
    lst_error why;
    endless.stop = -1;
    lst_status status = model_generate(m, ids, n, &endless, on_token, &w, &why);
    if (w.stopped)
        status = LST_OK;
    else if (status != LST_OK && err)
        *err = why;
    if (status == LST_OK)
        status = flush(&w, true, err);
    lst__free(w.pending.data);
    lst__free(w.valid.data);
    return status;
}
