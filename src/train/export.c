/* SPDX-License-Identifier: MIT */
#include "train/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"
#include "ckpt/source.h"
#include "io/safetensors.h"
#include "leanstep/ckpt.h"
#include "optim/optimizer.h"
#include "optim/schedule_free.h"
#include "train/carry.h"
#include "train/checkpoint.h"
#include "train/engine.h"
#include "train/hf_folder.h"
#include "train/new_folder.h"
#include "train/run_private.h"
#include "train/trainer_state.h"

#define MAX_CONFIG ((size_t)4 << 20)

typedef struct exporting {
    const train_export *job;
    train_settings settings;
    char *run, *checkpoint; /* folders */
    char *config;           /* the model's own config.json, or NULL */
    lst_plan *plan;
    train_engine *engine; /* where values come from the optimizer */
    lst_st_set *set;      /* where they come from the file */
    const lst_st_tensor **found;
    lst_codec codec;
    const char *temporary; /* the folder that is filled */
    int64_t step;
} exporting;

/* ---- where the run and its checkpoint are ---- */

static char *parent_of(const char *path)
{
    char *whole = realpath(path, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash && slash != whole)
        *slash = 0;
    char *copy = slash ? lst__strdup(whole) : NULL;
    free(whole);
    return copy;
}

static bool holds(const char *folder, const char *name)
{
    char *path = lst__path_join(folder, name);
    bool found = path && lst__is_file(path);
    lst__free(path);
    return found;
}

static lst_status find_run(exporting *e, train_exported *done, lst_error *err)
{
    const char *from = e->job->from;
    if (!lst__is_dir(from))
        return lst__fail(err, LST_ERR_IO, "%s is not a folder: expected a run, or a checkpoint in one", from);
    const bool is_run = holds(from, "settings.json");
    e->run = is_run ? lst__strdup(from) : parent_of(from);
    if (!e->run || !holds(e->run, "settings.json"))
        return lst__fail(err, LST_ERR_STATE,
                         "%s is neither a folder that `leanstep train` made nor a checkpoint in one", from);
    lst_status status = train_read_settings(e->run, &e->settings, err);
    if (status != LST_OK)
        return status;
    if (is_run)
        return lst_ckpt_latest(e->run, &e->checkpoint, &done->step, err);
    const char *mark = strstr(from, "checkpoint-");
    for (const char *next = mark; next; next = strstr(next + 1, "checkpoint-"))
        mark = next;
    e->checkpoint = lst__strdup(from);
    done->step = mark ? strtoll(mark + strlen("checkpoint-"), NULL, 10) : 0;
    return e->checkpoint ? LST_OK : lst__fail_memory(err, "a path", strlen(from) + 1);
}

/* The config.json that the run began from, if it still describes the run's model. */
static lst_status read_config(exporting *e, lst_error *err)
{
    lst_arch arch;
    size_t n;
    char *own = NULL, *theirs = NULL;
    const char *from = e->settings.model;
    char *path = lst__is_dir(from) ? lst__path_join(from, "config.json") : lst__strdup(from);
    if (!path)
        return lst__fail_memory(err, "a path", strlen(from) + 16);
    bool same = lst__is_file(path) && lst__file_read(path, MAX_CONFIG, &e->config, &n, NULL) == LST_OK &&
                lst_arch_from_config(e->config, n, path, &arch, NULL) == LST_OK &&
                lst_arch_to_config(&arch, "float32", &theirs, NULL) == LST_OK &&
                lst_arch_to_config(&e->settings.arch, "float32", &own, NULL) == LST_OK && !strcmp(own, theirs);
    free(own);
    free(theirs);
    lst__free(path);
    if (!same) {
        lst__free(e->config);
        e->config = NULL;
    }
    return LST_OK;
}

static void choose_codec(exporting *e)
{
    e->codec = e->job->codec;
    if (e->codec == LST_N_CODECS && e->settings.from_weights && e->config)
        e->codec = train_hf_dtype(e->config, strlen(e->config));
    if (e->codec == LST_N_CODECS)
        e->codec = lst_weight_form_codec(e->settings.recipe.weights);
}

/* ---- values ---- */

static lst_status values_of_file(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err)
{
    const exporting *e = context;
    (void)err;
    for (size_t at = 0; at < n; at += LST__CKPT_TILE) {
        size_t part = n - at < LST__CKPT_TILE ? n - at : LST__CKPT_TILE;
        lst__source_tile(e->found[tensor], first + at, part, out + at);
        lst__source_done(e->found[tensor], first + at + part);
    }
    return LST_OK;
}

static lst_status values_of_optimizer(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err)
{
    const exporting *e = context;
    const lst_optim *optim = e->engine->optim;
    const lst__param *param = &optim->params[tensor];
    lst__weights weights = lst__param_weights(optim, tensor);
    (void)err;
    lst__weights_decode(&weights, first, n, out);
    if (optim->options.rule == LST_RULE_SCHEDULE_FREE && param->steps > 0)
        lst__schedule_free_average(&optim->groups[param->tensor.group],
                                   (const float *)param->slots[lst__has_master(optim) + 1].memory + first, out, n);
    return LST_OK;
}

static bool has_master(lst_weight_form form)
{
    return form == LST_WEIGHT_BF16_MASTER || form == LST_WEIGHT_F16_MASTER || form == LST_WEIGHT_SPLIT32 ||
           form == LST_WEIGHT_SPLIT24;
}

static lst_status load_optimizer(exporting *e, lst_error *err)
{
    lst_recipe *recipe = &e->settings.recipe;
    recipe->threads =
        lst_pool_threads(e->job->pool) > recipe->threads ? lst_pool_threads(e->job->pool) : recipe->threads;
    char *path = lst__path_join(e->checkpoint, LST_CKPT_OPTIM);
    lst_status status = path ? lst_plan_create(&e->plan, &e->settings.arch, recipe, err)
                             : lst__fail_memory(err, "a path", strlen(e->checkpoint) + 32);
    if (status == LST_OK)
        status = train_engine_create(&e->engine, e->plan, e->job->pool, e->settings.seed, err);
    if (status == LST_OK)
        status = train_load_model(e->checkpoint, e->plan, e->engine->model, err);
    if (status == LST_OK)
        status = lst_ckpt_load_optim(path, e->engine->optim, err);
    lst__free(path);
    return status;
}

static lst_status open_file(exporting *e, lst_error *err)
{
    size_t n = lst_arch_tensor_count(&e->settings.arch);
    lst_status status = lst__st_set_open(&e->set, e->checkpoint, err);
    if (status != LST_OK)
        return status;
    e->found = lst__alloc(n, sizeof *e->found);
    if (!e->found)
        return lst__fail_memory(err, "the list of tensors", n * sizeof *e->found);
    for (size_t i = 0; status == LST_OK && i < n; i++) {
        lst_arch_tensor t;
        lst_arch_tensor_at(&e->settings.arch, i, &t);
        status = lst__source_find(e->set, e->checkpoint, t.name, t.n_dims, t.dims, &e->found[i], err);
    }
    return status;
}

static lst_status open_values(exporting *e, train_exported *done, lst_error *err)
{
    const lst_recipe *r = &e->settings.recipe;
    done->averaged = r->rule == LST_RULE_SCHEDULE_FREE;
    done->masters = has_master(r->weights) && e->codec != lst_weight_form_codec(r->weights);
    return done->averaged || done->masters ? load_optimizer(e, err) : open_file(e, err);
}

/* ---- files ---- */

static lst_status in_folder(const exporting *e, const char *name, char **path, lst_error *err)
{
    *path = lst__path_join(e->temporary, name);
    return *path ? LST_OK : lst__fail_memory(err, name, strlen(e->temporary) + strlen(name) + 2);
}

static lst_status write_config(const exporting *e, lst_error *err)
{
    char *text = NULL, *fresh = NULL, *path;
    lst_status status = in_folder(e, "config.json", &path, err);
    if (status == LST_OK && e->config)
        status = train_hf_set_dtype(e->config, e->codec, &text, err);
    else if (status == LST_OK)
        status = lst_arch_to_config(&e->settings.arch, train_hf_dtype_name(e->codec), &fresh, err);
    if (status == LST_OK)
        status = train__write_text(path, text ? text : fresh, err);
    free(fresh);
    lst__free(text);
    lst__free(path);
    return status;
}

/* From the checkpoint, the run, or the model it began from: the first that has it. */
static lst_status carry(const exporting *e, const char *name, lst_error *err)
{
    const char *const folders[] = {e->checkpoint, e->run, e->settings.model};
    for (size_t i = 0; i < 3; i++) {
        if (!holds(folders[i], name))
            continue;
        char *from = lst__path_join(folders[i], name), *to;
        lst_status status = in_folder(e, name, &to, err);
        if (status == LST_OK)
            status = from ? train__copy_file(from, to, err) : lst__fail_memory(err, name, strlen(folders[i]));
        lst__free(from);
        lst__free(to);
        return status;
    }
    return LST_OK;
}

static lst_status write_state(const exporting *e, int64_t step, lst_error *err)
{
    char *metrics = lst__path_join(e->run, "metrics.jsonl"), *path;
    lst_status status = in_folder(e, "trainer_state.json", &path, err);
    const double total = (double)e->settings.schedule.total_steps;
    const train_state_source from = {.settings = &e->settings,
                                     .metrics = metrics,
                                     .step = step,
                                     .steps_per_epoch = e->settings.epochs > 0 ? total / e->settings.epochs : 0};
    if (status == LST_OK && metrics && lst__is_file(metrics))
        status = train_write_trainer_state(path, &from, err);
    lst__free(metrics);
    lst__free(path);
    return status;
}

static lst_status write_all(void *context, const char *folder, lst_error *err)
{
    exporting *e = context;
    e->temporary = folder;
    const train_hf_weights weights = {.arch = &e->settings.arch,
                                      .codec = e->codec,
                                      .shard_bytes = e->job->shard_bytes,
                                      .values = e->engine ? values_of_optimizer : values_of_file,
                                      .context = e};
    lst_status status = write_config(e, err);
    if (status == LST_OK)
        status = train_hf_write_weights(e->temporary, &weights, err);
    for (size_t i = 0; status == LST_OK && i < DATA_N_TOKENIZER_FILES; i++)
        status = carry(e, data_tokenizer_files[i], err);
    return status == LST_OK ? write_state(e, e->step, err) : status;
}

static void close_all(exporting *e)
{
    train_engine_destroy(e->engine);
    lst_plan_destroy(e->plan);
    lst__st_set_close(e->set);
    lst__free(e->found);
    lst__free(e->config);
    lst__free(e->run);
    lst__free(e->checkpoint);
    lst__free(e);
}

lst_status train_export_run(const train_export *job, train_exported *done, lst_error *err)
{
    if (train_refuse_existing(job->out, err) != LST_OK)
        return LST_ERR_STATE;
    exporting *e = lst__alloc(1, sizeof *e);
    if (!e)
        return lst__fail_memory(err, "the export's handle", sizeof *e);
    memset(done, 0, sizeof *done);
    e->job = job;
    lst_status status = find_run(e, done, err);
    if (status == LST_OK)
        status = read_config(e, err);
    if (status == LST_OK) {
        choose_codec(e);
        status = open_values(e, done, err);
    }
    e->step = done->step;
    if (status == LST_OK)
        status = train_new_folder(job->out, write_all, e, err);
    done->codec = e->codec;
    done->n_params = lst_arch_params(&e->settings.arch);
    close_all(e);
    return status;
}
