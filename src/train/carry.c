/* SPDX-License-Identifier: MIT */
#include "train/carry.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"

#define MAX_CONFIG ((size_t)4 << 20)

lst_status train__copy_file(const char *from, const char *to, lst_error *err)
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

lst_status train__copy_tokenizer(const char *from, const char *to, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < DATA_N_TOKENIZER_FILES && status == LST_OK; i++) {
        char *source = lst__path_join(from, data_tokenizer_files[i]);
        char *target = lst__path_join(to, data_tokenizer_files[i]);
        if (!source || !target)
            status = lst__fail_memory(err, "a path", strlen(from) + strlen(to));
        else if (lst__is_file(source))
            status = train__copy_file(source, target, err);
        lst__free(source);
        lst__free(target);
    }
    return status;
}

/* "eos_token_id" of the model's config.json, or the encoder's end. */
static json_t *ends_of(const train_run *run)
{
    json_t *config = NULL;
    char *path = lst__path_join(run->settings.tokenizer, "config.json");
    if (path && lst__is_file(path) && lst__json_load(&config, path, MAX_CONFIG, NULL) != LST_OK)
        config = NULL;
    lst__free(path);
    json_t *ends = json_incref(json_object_get(config, "eos_token_id"));
    json_decref(config);
    if (!json_is_integer(ends) && !json_is_array(ends)) {
        json_decref(ends);
        ends = json_integer(run->encoder.end);
    }
    return ends;
}

static lst_status write_ends(const train_run *run, const char *path, lst_error *err)
{
    json_t *config = json_pack("{s:o}", "eos_token_id", ends_of(run));
    lst_status status =
        config ? lst__json_save(config, path, err) : lst__fail_memory(err, "generation_config.json", 64);
    json_decref(config);
    return status;
}

lst_status train__carry_tokenizer(const train_run *run, lst_error *err)
{
    char *path = lst__path_join(run->folder, "generation_config.json");
    if (!path)
        return lst__fail_memory(err, "a path", strlen(run->folder) + 32);
    lst_status status = train__copy_tokenizer(run->settings.tokenizer, run->folder, err);
    if (status == LST_OK && !lst__is_file(path) && run->encoder.end >= 0)
        status = write_ends(run, path, err);
    lst__free(path);
    return status;
}
