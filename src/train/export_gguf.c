/* SPDX-License-Identifier: MIT */
#include "train/export_gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"
#include "ckpt/gguf_weights.h"
#include "data/tokenizer.h"
#include "io/gguf.h"
#include "io/json.h"
#include "plan/gguf_arch.h"
#include "train/hf_folder.h"
#include "train/new_folder.h"

typedef struct converting {
    const lst_gguf *gguf;
    const lst_arch *arch;
} converting;

static lst_status values(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err)
{
    const converting *c = context;
    (void)err;
    lst__gguf_values(c->gguf, c->arch, tensor, first, n, out);
    return LST_OK;
}

/* `text` is jansson's: parsed again, so that what is written is what a reader reads. */
static lst_status write_json(const char *dir, const char *name, const char *text, lst_error *err)
{
    json_t *root;
    lst_status status = lst__json_parse(&root, name, text, strlen(text), err);
    if (status != LST_OK)
        return status;
    char *path = lst__path_join(dir, name);
    status = path ? lst__json_save(root, path, err) : lst__fail_memory(err, name, strlen(dir) + strlen(name) + 2);
    json_decref(root);
    lst__free(path);
    return status;
}

static lst_status write_tokenizer(const lst_gguf *g, const char *dir, lst_error *err)
{
    char *text = NULL, ids[64];
    size_t end;
    lst_status status = data_tokenizer_json_of_gguf(&text, g, err);
    if (status != LST_OK)
        return status;
    status = write_json(dir, "tokenizer.json", text, err);
    free(text);
    if (status == LST_OK && lst__gguf_get_size(g, "tokenizer.ggml.eos_token_id", &end, NULL) == LST_OK) {
        snprintf(ids, sizeof ids, "{\"eos_token_id\": %zu}", end);
        status = write_json(dir, "generation_config.json", ids, err);
    }
    return status;
}

typedef struct exporting {
    const train_export *job;
    train_exported *done;
    const lst_gguf *g;
} exporting;

static lst_status write_all(void *context, const char *dir, lst_error *err)
{
    const exporting *e = context;
    const lst_gguf *g = e->g;
    train_exported *done = e->done;
    lst_arch arch;
    char *config = NULL;
    lst_status status = lst__arch_from_gguf(g, &arch, err);
    if (status == LST_OK)
        status = lst__gguf_check_weights(g, &arch, err);
    if (status == LST_OK)
        status = lst_arch_to_config(&arch, train_hf_dtype_name(done->codec), &config, err);
    if (status == LST_OK)
        status = write_json(dir, "config.json", config, err);
    free(config);
    converting c = {g, &arch};
    const train_hf_weights weights = {&arch, done->codec, e->job->shard_bytes, values, &c};
    if (status == LST_OK)
        status = train_hf_write_weights(dir, &weights, err);
    if (status == LST_OK)
        done->n_params = lst_arch_params(&arch);
    return status == LST_OK ? write_tokenizer(g, dir, err) : status;
}

lst_status train_export_gguf(const train_export *job, train_exported *done, lst_error *err)
{
    lst_gguf g;
    memset(done, 0, sizeof *done);
    done->codec = job->codec == LST_N_CODECS ? LST_CODEC_F32 : job->codec;
    if (train_refuse_existing(job->out, err) != LST_OK)
        return LST_ERR_STATE;
    lst_status status = lst__gguf_open(job->from, &g, err);
    if (status != LST_OK)
        return status;
    exporting e = {job, done, &g};
    status = train_new_folder(job->out, write_all, &e, err);
    lst__gguf_close(&g);
    return status;
}
