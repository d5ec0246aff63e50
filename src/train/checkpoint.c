/* SPDX-License-Identifier: MIT */
#include "train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"
#include "leanstep/ckpt.h"
#include "plan/gguf_arch.h"
#include "train/carry.h"
#include "train/gguf_file.h"
#include "train/run_private.h"

/* Far above any settings or config; a file beyond it is not one. */
#define MAX_SMALL_FILE ((size_t)1 << 20)

/* ---- weights ---- */

/* The model's tensors as the checkpoint room wants them described; names stay in `described`. */
static lst_status list_weights(const lst_plan *plan, model *m, lst_ckpt_tensor **tensors, lst_arch_tensor **described,
                               lst_error *err)
{
    size_t n = lst_arch_tensor_count(&plan->arch);
    *tensors = lst__alloc(n, sizeof **tensors);
    *described = lst__alloc(n, sizeof **described);
    if (!*tensors || !*described)
        return lst__fail_memory(err, "the list of tensors", n * (sizeof **tensors + sizeof **described));
    for (size_t i = 0; i < n; i++) {
        lst_arch_tensor *d = &(*described)[i];
        lst_arch_tensor_at(&plan->arch, i, d);
        (*tensors)[i] = (lst_ckpt_tensor){.name = d->name,
                                          .codec = lst_weight_form_codec(plan->recipe.weights),
                                          .n_dims = d->n_dims,
                                          .memory = model_weight(m, i)};
        memcpy((*tensors)[i].dims, d->dims, sizeof d->dims);
    }
    return LST_OK;
}

/* Saves to or loads from `path` all weights of the model. */
static lst_status move_weights(const lst_plan *plan, model *m, const char *path, bool save, lst_error *err)
{
    lst_ckpt_tensor *tensors = NULL;
    lst_arch_tensor *described = NULL;
    size_t n = lst_arch_tensor_count(&plan->arch);
    lst_status status = list_weights(plan, m, &tensors, &described, err);
    if (status == LST_OK && save)
        status = lst_ckpt_save_weights(path, tensors, n, err);
    else if (status == LST_OK)
        status = lst_ckpt_load_weights(path, tensors, n, NULL, err);
    lst__free(tensors);
    lst__free(described);
    return status;
}

lst_status train_load_model(const char *dir, const lst_plan *plan, model *m, lst_error *err)
{
    return lst__is_gguf(dir) ? train_gguf_load(dir, plan, m, err) : move_weights(plan, m, dir, false, err);
}

lst_status train__load_weights(train_run *run, const char *source, lst_error *err)
{
    lst_status status = lst_optim_reset(run->engine->optim, err);
    if (status == LST_OK)
        status = lst_ckpt_load_weights_exact(source, run->engine->optim, NULL, err);
    return status;
}

/* ---- small files ---- */

static lst_status read_small(const char *dir, const char *name, char **path, char **text, size_t *n_bytes,
                             lst_error *err)
{
    *text = NULL;
    *path = lst__path_join(dir, name);
    if (!*path)
        return lst__fail_memory(err, name, strlen(dir) + strlen(name) + 2);
    return lst__file_read(*path, MAX_SMALL_FILE, text, n_bytes, err);
}

lst_status train_read_config(const char *dir, lst_arch *out, lst_error *err)
{
    char *path, *text;
    size_t n_bytes;
    lst_status status = read_small(dir, "config.json", &path, &text, &n_bytes, err);
    if (status == LST_OK)
        status = lst_arch_from_config(text, n_bytes, path, out, err);
    lst__free(text);
    lst__free(path);
    return status;
}

lst_status train_read_settings(const char *folder, train_settings *out, lst_error *err)
{
    if (!lst__is_dir(folder))
        return lst__fail(err, LST_ERR_IO, "%s is not a folder: expected one that `leanstep train` has made", folder);
    char *path, *text;
    size_t n_bytes;
    lst_status status = read_small(folder, "settings.json", &path, &text, &n_bytes, err);
    if (status == LST_OK)
        status = train_settings_read(out, text, n_bytes, path, err);
    lst__free(text);
    lst__free(path);
    return status;
}

/* ---- the trainer's own state, as text in optimizer.safetensors ---- */

static lst_status write_state(const train_run *run, char **text, lst_error *err)
{
    const train_engine *engine = run->engine;
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, run->settings.data_hash);
    json_t *state = json_pack("{s:I, s:I, s:s, s:I, s:I, s:f, s:I}", "step", (json_int_t)run->step, "tokens",
                              (json_int_t)run->tokens, "data_hash", hash, "skipped", (json_int_t)engine->n_skipped,
                              "skipped_in_row", (json_int_t)engine->n_skipped_in_row, "loss_scale",
                              (double)engine->scale.scale, "growth_tracker", (json_int_t)engine->scale.growth_tracker);
    if (!state)
        return lst__fail_memory(err, "the trainer's state", 0);
    lst_status status = lst__json_text(state, text, err);
    json_decref(state);
    return status;
}

static lst_status parse_state(train_run *run, const json_t *state, const char *where, lst_error *err)
{
    train_engine *engine = run->engine;
    int64_t tokens = 0, skipped = 0, in_row = 0;
    double scale = 1;
    const char *hash = "";
    char want[20];
    lst_status status = lst__json_get_int(state, where, "step", &run->step, err);
    if (status == LST_OK)
        status = lst__json_get_int(state, where, "tokens", &tokens, err);
    if (status == LST_OK)
        status = lst__json_get_string(state, where, "data_hash", &hash, err);
    if (status == LST_OK)
        status = lst__json_get_int(state, where, "skipped", &skipped, err);
    if (status == LST_OK)
        status = lst__json_get_int(state, where, "skipped_in_row", &in_row, err);
    if (status == LST_OK)
        status = lst__json_get_real(state, where, "loss_scale", &scale, err);
    if (status == LST_OK)
        status = lst__json_get_int(state, where, "growth_tracker", &engine->scale.growth_tracker, err);
    snprintf(want, sizeof want, "%016" PRIx64, run->settings.data_hash);
    if (status == LST_OK && strcmp(hash, want) != 0)
        return lst__fail(err, LST_ERR_STATE, "%s is of a run on other data (hash %s) than settings.json names (%s)",
                         where, hash, want);
    run->tokens = (uint64_t)tokens;
    engine->n_skipped = (uint64_t)skipped;
    engine->n_skipped_in_row = (uint64_t)in_row;
    engine->scale.scale = (float)scale;
    return status;
}

static lst_status read_state(train_run *run, const char *path, lst_error *err)
{
    char *text;
    json_t *state;
    lst_status status = lst_ckpt_read_trainer(path, &text, err);
    if (status != LST_OK)
        return status;
    status = lst__json_parse(&state, path, text, strlen(text), err);
    lst_ckpt_free(text);
    if (status == LST_OK) {
        status = parse_state(run, state, path, err);
        json_decref(state);
    }
    return status;
}

/* ---- save ---- */

static lst_status save_config(const train_run *run, const char *dir, lst_error *err)
{
    static const char *const dtypes[LST_N_CODECS] = {
        [LST_CODEC_F32] = "float32", [LST_CODEC_BF16] = "bfloat16", [LST_CODEC_F16] = "float16"};
    char *text, *path = lst__path_join(dir, "config.json");
    if (!path)
        return lst__fail_memory(err, "config.json", strlen(dir) + 16);
    lst_status status = lst_arch_to_config(&run->settings.arch,
                                           dtypes[lst_weight_form_codec(run->settings.recipe.weights)], &text, err);
    if (status == LST_OK) {
        status = train__write_text(path, text, err);
        free(text);
    }
    lst__free(path);
    return status;
}

static lst_status save_files(train_run *run, const char *dir, lst_error *err)
{
    char *weights = lst__path_join(dir, LST_CKPT_WEIGHTS), *optim = lst__path_join(dir, LST_CKPT_OPTIM), *state = NULL;
    lst_status status = weights && optim ? LST_OK : lst__fail_memory(err, "a checkpoint's names", 2 * strlen(dir));
    if (status == LST_OK)
        status = save_config(run, dir, err);
    if (status == LST_OK && run->encoder.tokenizer)
        status = train__copy_tokenizer(run->folder, dir, err);
    if (status == LST_OK)
        status = move_weights(run->plan, run->engine->model, weights, true, err);
    if (status == LST_OK)
        status = write_state(run, &state, err);
    if (status == LST_OK)
        status = lst_ckpt_save_optim(optim, run->engine->optim, state, err);
    lst__free(weights);
    lst__free(optim);
    lst__free(state);
    return status;
}

lst_status train_run_save(train_run *run, lst_error *err)
{
    lst_ckpt *ckpt;
    model_enter(run->engine->model, lst_phase_save(run->plan->n_layers));
    lst_status status = lst_ckpt_begin(&ckpt, run->folder, run->step, err);
    if (status != LST_OK)
        return status;
    status = save_files(run, lst_ckpt_folder(ckpt), err);
    if (status != LST_OK) {
        lst_ckpt_abort(ckpt);
        return status;
    }
    status = lst_ckpt_commit(ckpt, run->settings.keep, err);
    if (status == LST_OK)
        run->saved_step = run->step;
    return status;
}

/* ---- resume ---- */

static lst_status check_model(const train_run *run, const char *checkpoint, lst_error *err)
{
    lst_arch arch;
    char *saved = NULL, *own = NULL;
    lst_status status = train_read_config(checkpoint, &arch, err);
    if (status == LST_OK)
        status = lst_arch_to_config(&arch, "float32", &saved, err);
    if (status == LST_OK)
        status = lst_arch_to_config(&run->settings.arch, "float32", &own, err);
    if (status == LST_OK && strcmp(saved, own) != 0)
        status =
            lst__fail(err, LST_ERR_STATE,
                      "%s is a checkpoint of another model: its config.json differs from the model in %s/settings.json",
                      checkpoint, run->folder);
    free(saved);
    free(own);
    return status;
}

static lst_status load_checkpoint(train_run *run, const char *checkpoint, int64_t step, lst_error *err)
{
    char *optim = lst__path_join(checkpoint, LST_CKPT_OPTIM);
    if (!optim)
        return lst__fail_memory(err, "a checkpoint's name", strlen(checkpoint) + 32);
    lst_status status = check_model(run, checkpoint, err);
    if (status == LST_OK)
        status = read_state(run, optim, err);
    if (status == LST_OK && run->step != step)
        status = lst__fail(err, LST_ERR_STATE, "%s is of step %lld, not of the step its folder names", optim,
                           (long long)run->step);
    if (status == LST_OK)
        status = move_weights(run->plan, run->engine->model, checkpoint, false, err);
    if (status == LST_OK)
        status = lst_ckpt_load_optim(optim, run->engine->optim, err);
    lst__free(optim);
    run->saved_step = step;
    return status;
}

static lst_status apply_changes(train_settings *s, const train_changes *changes, lst_error *err)
{
    if (changes->total_steps > 0)
        s->schedule.total_steps = changes->total_steps;
    if (changes->threads > 0)
        s->recipe.threads = changes->threads;
    if (changes->data && strlen(changes->data) >= sizeof s->data)
        return lst__fail(err, LST_ERR_ARGUMENT, "the path of the data is longer than %zu bytes", sizeof s->data - 1);
    if (changes->data)
        strcpy(s->data, changes->data);
    return LST_OK;
}

static lst_status check_resumable(const train_run *run, int64_t step, lst_error *err)
{
    if (run->data.hash != run->settings.data_hash)
        return lst__fail(
            err, LST_ERR_STATE,
            "the data in %s have changed since this run began: going on would not be the same run. Put them back "
            "as they were, or name where they are now with --data.",
            run->settings.data);
    if (step >= run->settings.schedule.total_steps)
        return lst__fail(err, LST_ERR_STATE,
                         "the run in %s is complete: step %lld of %lld. `leanstep resume %s --steps %lld` would go on.",
                         run->folder, (long long)step, (long long)run->settings.schedule.total_steps, run->folder,
                         2 * (long long)step);
    return LST_OK;
}

/* The last validation loss before the checkpoint, for the progress line. */
static void recall_validation(train_run *run)
{
    char *path = lst__path_join(run->folder, "metrics.jsonl");
    train_metrics *metrics = lst__alloc(1, sizeof *metrics);
    if (path && metrics && train_metrics_read(metrics, path, NULL) == LST_OK)
        run->last_valid = metrics->last_valid;
    lst__free(metrics);
    lst__free(path);
}

static lst_status continue_run(train_run *run, const char *checkpoint, int64_t step, lst_error *err)
{
    lst_status status = check_resumable(run, step, err);
    if (status == LST_OK)
        status = load_checkpoint(run, checkpoint, step, err);
    if (status == LST_OK)
        status = lst_ckpt_clean(run->folder, err);
    if (status == LST_OK)
        status = train__run_write_settings(run, err);
    if (status == LST_OK)
        status = train__run_open_log(run, err);
    if (status == LST_OK)
        recall_validation(run);
    return status;
}

lst_status train_run_resume(train_run **out, const char *folder, const train_changes *changes, lst_error *err)
{
    train_settings settings;
    char *checkpoint;
    int64_t step;
    const uint64_t start = lst__clock_ns();
    lst_status status = train_read_settings(folder, &settings, err);
    if (status == LST_OK)
        status = apply_changes(&settings, changes, err);
    if (status == LST_OK)
        status = lst_ckpt_latest(folder, &checkpoint, &step, err);
    if (status != LST_OK)
        return status;
    train_run *run = NULL;
    status = train__run_build(&run, &settings, folder, err);
    const uint64_t loading = lst__clock_ns();
    if (status == LST_OK)
        status = continue_run(run, checkpoint, step, err);
    lst_ckpt_free(checkpoint);
    if (status != LST_OK) {
        train_run_close(run);
        return status;
    }
    run->load_seconds = (double)(lst__clock_ns() - loading) * 1e-9;
    run->ready_seconds = (double)(lst__clock_ns() - start) * 1e-9;
    *out = run;
    return LST_OK;
}
