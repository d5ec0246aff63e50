/* SPDX-License-Identifier: MIT */
#include "cli/model_source.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "data/bytes.h"
#include "data/encoder.h"
#include "leanstep/ckpt.h"
#include "plan/gguf_arch.h"
#include "train/checkpoint.h"

#define MAX_POSITIONS 1024 /* of a folder that does not say how long its sequences were */

bool cli_is_run(const char *folder)
{
    char *path = lst__path_join(folder, "settings.json");
    bool found = path && lst__is_file(path);
    lst__free(path);
    return found;
}

static lst_status find_run(const char *folder, cli_model_source *out, lst_error *err)
{
    static train_settings settings;
    lst_status status = train_read_settings(folder, &settings, err);
    if (status != LST_OK)
        return status;
    out->arch = settings.arch;
    out->form = settings.recipe.weights;
    out->positions = settings.recipe.seq;
    strcpy(out->chat, settings.chat);
    out->reads_bytes = !settings.tokenizer[0];
    out->pack = settings.pack;
    out->loss_all = settings.loss_all;
    return lst_ckpt_latest(folder, &out->weights, NULL, err);
}

static lst_status find_folder(const char *folder, cli_model_source *out, lst_error *err)
{
    lst_status status = train_read_config(folder, &out->arch, err);
    if (status != LST_OK)
        return status;
    out->form = LST_WEIGHT_F32;
    out->positions = out->arch.max_positions < MAX_POSITIONS ? out->arch.max_positions : MAX_POSITIONS;
    out->weights = lst__strdup(folder);
    return out->weights ? LST_OK : lst__fail_memory(err, "a name", strlen(folder) + 1);
}

/* One file has it all. */
static lst_status find_gguf(const char *path, cli_model_source *out, lst_error *err)
{
    lst_status status = lst__arch_open_gguf(path, &out->arch, err);
    if (status != LST_OK)
        return status;
    out->form = LST_WEIGHT_F32;
    out->positions = out->arch.max_positions < MAX_POSITIONS ? out->arch.max_positions : MAX_POSITIONS;
    out->weights = lst__strdup(path);
    out->tokenizer = lst__strdup(path);
    return out->weights && out->tokenizer ? LST_OK : lst__fail_memory(err, "a name", strlen(path) + 1);
}

/* Beside the weights, or in the run's folder. */
static lst_status find_tokenizer(const char *folder, cli_model_source *out, lst_error *err)
{
    const char *const places[] = {out->weights, folder};
    for (size_t i = 0; i < 2; i++) {
        if (!data_has_tokenizer(places[i]))
            continue;
        out->tokenizer = lst__strdup(places[i]);
        return out->tokenizer ? LST_OK : lst__fail_memory(err, "a path", strlen(places[i]) + 1);
    }
    if (out->arch.vocab == DATA_BYTES_VOCAB || out->reads_bytes)
        return LST_OK;
    return lst__fail(err, LST_ERR_STATE,
                     "%s has a vocabulary of %zu tokens and no tokenizer.json: put the model's beside its weights "
                     "(without one, %d tokens are bytes)",
                     folder, out->arch.vocab, DATA_BYTES_VOCAB);
}

lst_status cli_model_source_find(const char *folder, cli_model_source *out, lst_error *err)
{
    memset(out, 0, sizeof *out);
    if (lst__is_gguf(folder))
        return find_gguf(folder, out, err);
    if (!lst__is_dir(folder))
        return lst__fail(err, LST_ERR_IO,
                         "%s is not a folder: expected one that `leanstep train` has made, one with config.json and "
                         "model.safetensors, or a .gguf file",
                         folder);
    out->is_run = cli_is_run(folder);
    lst_status status = out->is_run ? find_run(folder, out, err) : find_folder(folder, out, err);
    if (status == LST_OK)
        status = find_tokenizer(folder, out, err);
    return status;
}

void cli_model_source_free(cli_model_source *source)
{
    lst_ckpt_free(source->weights);
    lst__free(source->tokenizer);
    source->weights = source->tokenizer = NULL;
}
