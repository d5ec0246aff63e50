/* SPDX-License-Identifier: MIT */
#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/files.h"
#include "train/carry.h"
#include "train/checkpoint.h"
#include "train/hf_folder.h"
#include "train/plan_json.h"
#include "train/run_private.h"

_Static_assert(DATA_IGNORE == MODEL_IGNORE, "targets that are not counted have one name in data and in model");

/* The folder that is nearest to where the run's will be: on the disk that the run writes to. */
static lst_status choose_store(train_run *run, lst_error *err)
{
    char *at = run->store;
    if (strlen(run->folder) >= sizeof run->store)
        return lst__fail(err, LST_ERR_ARGUMENT, "the name of the run's folder is too long");
    strcpy(at, run->folder);
    while (!lst__is_dir(at)) {
        char *slash = strrchr(at, '/');
        if (!slash)
            strcpy(at, ".");
        else
            slash[slash == at] = '\0';
        if (slash == at)
            break;
    }
    return LST_OK;
}

/* A run that exists uses the tokenizer that it carries. */
static lst_status open_encoder(train_run *run, lst_error *err)
{
    train_settings *s = &run->settings;
    const char *from = s->tokenizer[0] ? s->tokenizer : NULL;
    if (data_has_tokenizer(run->folder))
        from = run->folder;
    lst_status status = data_encoder_open(&run->encoder, from, s->arch.vocab, s->chat, err);
    if (status == LST_OK && run->encoder.has_chat)
        snprintf(s->chat, sizeof s->chat, "%s", data_chat_name(run->encoder.chat));
    return status;
}

static lst_status open_data(train_run *run, lst_error *err)
{
    const train_settings *s = &run->settings;
    lst_status status = open_encoder(run, err);
    if (status == LST_OK)
        status = choose_store(run, err);
    const data_request request = {.path = s->data,
                                  .seq = s->recipe.seq,
                                  .seed = s->seed,
                                  .valid_fraction = s->valid_fraction,
                                  .pack = s->pack,
                                  .loss_all = s->loss_all,
                                  .store = run->store};
    return status == LST_OK ? data_set_open(&run->data, &request, &run->encoder, err) : status;
}

/* The length of the run in steps, and its warm-up, from what was asked and the text there is. */
static lst_status resolve_length(train_run *run, lst_error *err)
{
    lst_schedule *schedule = &run->settings.schedule;
    if (schedule->total_steps == 0)
        schedule->total_steps = (int64_t)ceil(run->settings.epochs * (double)run->data.train.n_sequences /
                                              (double)train_run_sequences(run));
    if (schedule->warmup_steps < 0)
        schedule->warmup_steps = schedule->total_steps / 10 < 100 ? schedule->total_steps / 10 : 100;
    return train_settings_check(&run->settings, err);
}

static lst_status check_limit(const train_run *run, lst_error *err)
{
    uint64_t limit = run->settings.memory_limit, need = run->plan->arena_bytes;
    if (limit == 0 || need <= limit)
        return LST_OK;
    return lst__fail(err, LST_ERR_MEMORY,
                     "the run needs %llu bytes (%.2f GiB) and --memory allows %llu (%.2f GiB). `leanstep plan` "
                     "with the same options lists what would make it fit.",
                     (unsigned long long)need, (double)need / 1073741824, (unsigned long long)limit,
                     (double)limit / 1073741824);
}

lst_status train__run_build(train_run **out, const train_settings *settings, const char *folder, lst_error *err)
{
    train_run *run = lst__alloc(1, sizeof *run);
    if (!run)
        return lst__fail_memory(err, "the run's handle", sizeof *run);
    run->settings = *settings;
    run->saved_step = -1;
    run->last_valid = NAN;
    lst_status status = LST_OK;
    if (strlen(folder) >= sizeof run->folder)
        status = lst__fail(err, LST_ERR_ARGUMENT, "the name of the run's folder is longer than %zu bytes",
                           sizeof run->folder - 1);
    else
        strcpy(run->folder, folder);
    if (status == LST_OK)
        status = train_settings_check(settings, err);
    if (status == LST_OK)
        status = open_data(run, err);
    if (status == LST_OK)
        status = resolve_length(run, err);
    if (status == LST_OK)
        status = lst_plan_create(&run->plan, &settings->arch, &settings->recipe, err);
    if (status == LST_OK)
        status = check_limit(run, err);
    if (status == LST_OK)
        status = lst_pool_create(&run->pool, settings->recipe.threads, err);
    if (status == LST_OK)
        status = train_engine_create(&run->engine, run->plan, run->pool, settings->seed, err);
    if (status != LST_OK) {
        train_run_close(run);
        return status;
    }
    *out = run;
    return LST_OK;
}

void train_run_close(train_run *run)
{
    if (!run)
        return;
    train_log_close(run->log);
    train_engine_destroy(run->engine);
    lst_pool_destroy(run->pool);
    lst_plan_destroy(run->plan);
    data_set_close(&run->data);
    data_encoder_close(&run->encoder);
    lst__free(run);
}

lst_status train__write_text(const char *path, const char *text, lst_error *err)
{
    lst_writer *writer;
    lst_status status = lst__writer_open(&writer, path, err);
    if (status != LST_OK)
        return status;
    status = lst__writer_write(writer, text, strlen(text), err);
    if (status == LST_OK)
        return lst__writer_commit(writer, err);
    lst__writer_abort(writer);
    return status;
}

static lst_status write_named(const train_run *run, const char *name, const char *text, lst_error *err)
{
    char *path = lst__path_join(run->folder, name);
    if (!path)
        return lst__fail_memory(err, name, strlen(run->folder) + strlen(name) + 2);
    lst_status status = train__write_text(path, text, err);
    lst__free(path);
    return status;
}

lst_status train__run_open_log(train_run *run, lst_error *err)
{
    char *path = lst__path_join(run->folder, "metrics.jsonl");
    if (!path)
        return lst__fail_memory(err, "metrics.jsonl", strlen(run->folder) + 16);
    lst_status status = train_log_open(&run->log, path, run->step, err);
    lst__free(path);
    return status;
}

lst_status train__run_write_settings(const train_run *run, lst_error *err)
{
    char *text;
    lst_status status = train_settings_write(&run->settings, &text, err);
    if (status == LST_OK) {
        status = write_named(run, "settings.json", text, err);
        free(text);
    }
    if (status == LST_OK)
        status = train__plan_json(run->plan, &text, err);
    if (status == LST_OK) {
        status = write_named(run, "plan.json", text, err);
        free(text);
    }
    return status;
}

static lst_status refuse_folder(const char *folder, lst_error *err)
{
    struct stat st;
    if (lstat(folder, &st) != 0)
        return LST_OK;
    char *settings = lst__path_join(folder, "settings.json");
    bool is_run = settings && lst__is_file(settings);
    lst__free(settings);
    if (is_run)
        return lst__fail(err, LST_ERR_STATE,
                         "%s holds a run already, and nothing is overwritten. Go on with it: `leanstep resume %s`; or "
                         "name another folder with --out.",
                         folder, folder);
    return lst__fail(err, LST_ERR_STATE,
                     "%s exists already, and nothing is overwritten. Name another folder with --out.", folder);
}

static lst_status first_weights(train_run *run, lst_error *err)
{
    if (run->settings.from_weights) {
        lst_status status = train_hf_check_weights(run->settings.model, &run->settings.arch, err);
        return status == LST_OK ? train__load_weights(run, run->settings.model, err) : status;
    }
    return train_engine_init_random(run->engine, run->settings.seed, err);
}

lst_status train_run_start(train_run **out, const train_settings *settings, const char *folder, lst_error *err)
{
    train_run *run;
    const uint64_t start = lst__clock_ns();
    lst_status status = refuse_folder(folder, err);
    if (status == LST_OK)
        status = train__run_build(&run, settings, folder, err);
    if (status != LST_OK)
        return status;
    run->settings.data_hash = run->data.hash;
    const uint64_t loading = lst__clock_ns();
    status = first_weights(run, err);
    run->load_seconds = (double)(lst__clock_ns() - loading) * 1e-9;
    if (status == LST_OK)
        status = lst__make_dirs(folder, err);
    if (status == LST_OK) {
        status = train__run_write_settings(run, err);
        if (status == LST_OK && run->settings.tokenizer[0])
            status = train__carry_tokenizer(run, err);
        if (status == LST_OK)
            status = train__run_open_log(run, err);
        if (status != LST_OK)
            (void)!lst__remove_tree(folder, NULL);
    }
    if (status != LST_OK) {
        train_run_close(run);
        return status;
    }
    run->ready_seconds = (double)(lst__clock_ns() - start) * 1e-9;
    *out = run;
    return LST_OK;
}

size_t train_run_sequences(const train_run *run)
{
    return run->settings.recipe.batch * run->settings.recipe.accumulation;
}

double train_run_epochs(const train_run *run)
{
    return (double)run->step * (double)train_run_sequences(run) / (double)run->data.train.n_sequences;
}

uint64_t train_run_outside(const train_run *run, const lst_memory_use *use)
{
    return use->anon_peak_bytes > run->plan->arena_bytes ? use->anon_peak_bytes - run->plan->arena_bytes : 0;
}

static lst_status fill(train_run *run, lst_error *err)
{
    const lst_recipe *recipe = &run->settings.recipe;
    uint64_t position = (uint64_t)run->step * train_run_sequences(run);
    lst_status status = LST_OK;
    for (size_t micro = 0; status == LST_OK && micro < recipe->accumulation; micro++)
        status = data_batches_read(&run->data.train, position + micro * recipe->batch, recipe->batch,
                                   model_ids(run->engine->model, micro), model_targets(run->engine->model, micro), err);
    return status;
}

lst_status train_run_step(train_run *run, train_step *out, lst_error *err)
{
    uint64_t start = lst__clock_ns();
    double lr = run->settings.recipe.hyper.lr * lst_schedule_rate(&run->settings.schedule, run->step);
    lst_status status = fill(run, err);
    if (status == LST_OK)
        status = train_engine_step(run->engine, lr, out, err);
    if (status != LST_OK)
        return status;
    run->step++;
    run->tokens += out->counted;
    double seconds = (double)(lst__clock_ns() - start) * 1e-9;
    run->seconds += seconds;
    train_metric metric = {.step = run->step,
                           .loss = out->loss,
                           .grad_norm = out->grad_norm,
                           .lr = lr,
                           .tokens = run->tokens,
                           .tokens_per_s = (double)out->counted / seconds,
                           .seconds = run->seconds,
                           .loss_scale = out->loss_scale,
                           .skipped = out->skipped};
    return train_log_step(run->log, &metric, err);
}

/* Sequences [from, from + n) of `count` spread evenly over the validation text into micro-batch 0; rows beyond n count
 * for nothing. */
static lst_status fill_valid(train_run *run, size_t from, size_t n, size_t count, lst_error *err)
{
    const size_t seq = run->settings.recipe.seq, batch = run->settings.recipe.batch;
    int32_t *ids = model_ids(run->engine->model, 0), *targets = model_targets(run->engine->model, 0);
    for (size_t row = 0; row < batch; row++) {
        size_t which = row < n ? from + row : from;
        uint64_t position = (uint64_t)which * run->data.valid.n_sequences / count;
        lst_status status = data_batches_read(&run->data.valid, position, 1, ids + row * seq, targets + row * seq, err);
        if (status != LST_OK)
            return status;
        for (size_t t = 0; row >= n && t < seq; t++)
            targets[row * seq + t] = MODEL_IGNORE;
    }
    return LST_OK;
}

lst_status train_run_validate(train_run *run, double *loss, lst_error *err)
{
    const size_t batch = run->settings.recipe.batch;
    size_t count = run->settings.eval_sequences;
    if (count > run->data.valid.n_sequences)
        count = (size_t)run->data.valid.n_sequences;
    double sum = 0;
    size_t counted = 0;
    for (size_t from = 0; from < count; from += batch) {
        double part;
        size_t n;
        lst_status status = fill_valid(run, from, count - from < batch ? count - from : batch, count, err);
        if (status == LST_OK)
            status = model_evaluate(run->engine->model, &part, &n, err);
        if (status != LST_OK)
            return status;
        sum += part;
        counted += n;
    }
    *loss = run->last_valid = sum / (double)counted;
    return train_log_valid(run->log, run->step, *loss, err);
}
