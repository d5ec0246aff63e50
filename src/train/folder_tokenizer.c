/* SPDX-License-Identifier: MIT */
#include "train/folder_tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"
#include "train/run_private.h"
#include "train/write.h"

const char *const train_carried[TRAIN_N_CARRIED] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",     "chat_template.jinja",   "generation_config.json"};

bool train_has_tokenizer(const char *folder)
{
    char *path = lst__path_join(folder, "tokenizer.json");
    bool found = path && lst__is_file(path);
    lst__free(path);
    return found;
}

static lst_status find_end(int32_t *end, const data_tokenizer *t, const char *folder, lst_error *err)
{
    train_stops stops = {0};
    lst_status status = train_stops_read(&stops, folder, err);
    if (status != LST_OK)
        return status;
    train_stops_add(&stops, data_tokenizer_added(t, "<|endoftext|>"));
    train_stops_add(&stops, data_tokenizer_added(t, "<|end_of_text|>"));
    if (stops.n == 0)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s names no token that ends a document: expected \"eos_token_id\" in its "
                         "generation_config.json or config.json",
                         folder);
    *end = stops.ids[0];
    return LST_OK;
}

lst_status train_folder_tokenizer(data_tokenizer **out, int32_t *end, const char *folder, const lst_arch *arch,
                                  lst_error *err)
{
    char *path = lst__path_join(folder, "tokenizer.json");
    if (!path)
        return lst__fail_memory(err, "a path", strlen(folder) + 16);
    data_tokenizer *t = NULL;
    lst_status status = data_tokenizer_load(&t, path, err);
    if (status == LST_OK && data_tokenizer_vocab(t) > arch->vocab)
        status = lst__fail(err, LST_ERR_FORMAT,
                           "%s does not fit the model: its ids go up to %zu, and the model's vocabulary has %zu tokens",
                           path, data_tokenizer_vocab(t) - 1, arch->vocab);
    if (status == LST_OK)
        status = find_end(end, t, folder, err);
    if (status == LST_OK && (size_t)*end >= arch->vocab)
        status = lst__fail(err, LST_ERR_FORMAT, "%s: \"eos_token_id\" is %d, and the model's vocabulary has %zu tokens",
                           folder, *end, arch->vocab);
    lst__free(path);
    if (status != LST_OK) {
        data_tokenizer_free(t);
        return status;
    }
    *out = t;
    return LST_OK;
}

lst_status train_copy_file(const char *from, const char *to, lst_error *err)
{
    lst_map map;
    lst_writer *writer;
    lst_status status = lst__map_open(from, &map, err);
    if (status != LST_OK)
        return status;
    status = lst__writer_open(&writer, to, err);
    if (status == LST_OK) {
        status = lst__writer_write(writer, map.data, map.n_bytes, err);
        if (status == LST_OK)
            status = lst__writer_commit(writer, err);
        else
            lst__writer_abort(writer);
    }
    lst__map_close(&map);
    return status;
}

static lst_status write_end(const char *folder, int32_t end, lst_error *err)
{
    char text[64];
    char *path = lst__path_join(folder, "generation_config.json");
    if (!path)
        return lst__fail_memory(err, "a path", strlen(folder) + 32);
    snprintf(text, sizeof text, "{\"eos_token_id\": %d}\n", end);
    lst_status status = train__write_text(path, text, err);
    lst__free(path);
    return status;
}

lst_status train_carry_tokenizer(const char *from, const char *to, int32_t end, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < TRAIN_N_CARRIED; i++) {
        char *source = lst__path_join(from, train_carried[i]), *copy = lst__path_join(to, train_carried[i]);
        if (!source || !copy)
            status = lst__fail_memory(err, "a path", strlen(from) + strlen(to) + 64);
        else if (lst__is_file(source))
            status = train_copy_file(source, copy, err);
        lst__free(source);
        lst__free(copy);
    }
    train_stops stops = {0};
    if (status == LST_OK)
        status = train_stops_read(&stops, to, err);
    if (status == LST_OK && (stops.n == 0 || stops.ids[0] != end))
        status = write_end(to, end, err);
    return status;
}
