/* SPDX-License-Identifier: MIT
 *
 * A comparison carried out: trials one after another, each finished one a line of compare.jsonl.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"
#include "train/compare.h"
#include "train/run.h"

enum { FORMAT = 1 };
#define MAX_FILE ((size_t)16 << 20)

/* ---- the first line: what is compared ---- */

static json_t *rates_json(const train_compare *c)
{
    json_t *rates = json_array();
    for (size_t i = 0; rates && i < c->n_rates; i++)
        json_array_append_new(rates, json_real(c->rates[i]));
    return rates;
}

/* Everything that decides a trial's numbers, apart from recipe, rate and seed; recipes and seeds may be added later. */
static json_t *head_json(const train_compare *c)
{
    const train_settings *s = &c->base;
    const lst_recipe *r = &s->recipe;
    json_t *head =
        json_pack("{s:i, s:s, s:s, s:I, s:s, s:I, s:f, s:I, s:I, s:I, s:I}", "compare", FORMAT, "model", s->model,
                  "data", s->data, "steps", (json_int_t)s->schedule.total_steps, "schedule",
                  lst_schedule_name(s->schedule.kind), "warmup", (json_int_t)s->schedule.warmup_steps, "valid_fraction",
                  s->valid_fraction, "eval_sequences", (json_int_t)s->eval_sequences, "batch", (json_int_t)r->batch,
                  "seq", (json_int_t)r->seq, "accumulation", (json_int_t)r->accumulation);
    json_t *rest = json_pack("{s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:o}", "seed", (json_int_t)s->seed, "grads",
                             (int)r->grad_mode, "clip", r->clip_norm, "weight_decay", r->hyper.weight_decay, "beta1",
                             r->hyper.beta1, "beta2", r->hyper.beta2, "eps", r->hyper.eps, "lrs", rates_json(c));
    if (head && rest)
        json_object_update(head, rest);
    json_decref(rest);
    return head;
}

/* ---- lines ---- */

static lst_status append_line(const train_compare *c, json_t *object, lst_error *err)
{
    char *text = NULL, *path = lst__path_join(c->folder, "compare.jsonl");
    FILE *file = path ? fopen(path, "ab") : NULL;
    lst_status status = file ? lst__json_text(object, &text, err)
                             : lst__fail(err, LST_ERR_IO, "%s/compare.jsonl cannot be written to", c->folder);
    json_decref(object);
    if (status == LST_OK && (fprintf(file, "%s\n", text) < 0 || fflush(file) != 0 || fsync(fileno(file)) != 0))
        status = lst__fail(err, LST_ERR_IO, "%s could not be written: is the disk full?", path);
    if (file && fclose(file) != 0 && status == LST_OK)
        status = lst__fail(err, LST_ERR_IO, "%s could not be written: is the disk full?", path);
    lst__free(text);
    lst__free(path);
    return status;
}

static json_t *trial_json(const train_compare *c, const train_trial *t)
{
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, c->data_hash);
    return json_pack("{s:s, s:f, s:I, s:o, s:f, s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "recipe",
                     c->contenders[t->contender].name, "lr", t->lr, "seed", (json_int_t)t->seed, "valid_loss",
                     isnan(t->valid_loss) ? json_null() : json_real(t->valid_loss), "step_ms", t->step_ms, "skipped",
                     (json_int_t)t->n_skipped, "params", (json_int_t)t->params, "state_bytes",
                     (json_int_t)t->state_bytes, "fixed_bytes", (json_int_t)t->fixed_bytes, "arena_bytes",
                     (json_int_t)t->arena_bytes, "as_planned", (int)t->as_planned, "data_hash", hash);
}

static lst_status read_numbers(const json_t *line, const char *where, train_trial *t, lst_error *err)
{
    const struct {
        const char *key;
        uint64_t *value;
    } counts[] = {{"seed", &t->seed},
                  {"skipped", &t->n_skipped},
                  {"params", &t->params},
                  {"state_bytes", &t->state_bytes},
                  {"fixed_bytes", &t->fixed_bytes},
                  {"arena_bytes", &t->arena_bytes}};
    lst_status status = lst__json_get_real(line, where, "lr", &t->lr, err);
    if (status == LST_OK)
        status = lst__json_get_real(line, where, "step_ms", &t->step_ms, err);
    if (status == LST_OK)
        status = lst__json_get_bool(line, where, "as_planned", &t->as_planned, err);
    t->valid_loss = NAN;
    if (status == LST_OK && lst__json_has(line, "valid_loss"))
        status = lst__json_get_real(line, where, "valid_loss", &t->valid_loss, err);
    for (size_t i = 0; status == LST_OK && i < sizeof counts / sizeof *counts; i++) {
        size_t value = 0;
        status = lst__json_get_size(line, where, counts[i].key, &value, err);
        *counts[i].value = value;
    }
    return status;
}

/* One finished trial; one of a recipe that does not take part this time is passed over. */
static lst_status read_trial(train_compare *c, const json_t *line, const char *where, lst_error *err)
{
    const char *name, *hash;
    train_trial t = {0};
    lst_status status = lst__json_get_string(line, where, "recipe", &name, err);
    if (status == LST_OK)
        status = lst__json_get_string(line, where, "data_hash", &hash, err);
    if (status == LST_OK)
        status = read_numbers(line, where, &t, err);
    if (status != LST_OK)
        return status;
    c->data_hash = strtoull(hash, NULL, 16);
    for (t.contender = 0; t.contender < c->n_contenders; t.contender++)
        if (strcmp(c->contenders[t.contender].name, name) == 0)
            break;
    if (t.contender == c->n_contenders)
        return LST_OK;
    if (c->n_trials == TRAIN_MAX_TRIALS)
        return lst__fail(err, LST_ERR_FORMAT, "%s: more than %d trials", where, (int)TRAIN_MAX_TRIALS);
    c->trials[c->n_trials++] = t;
    return LST_OK;
}

static lst_status check_head(const train_compare *c, const json_t *line, lst_error *err)
{
    json_t *wanted = head_json(c);
    const char *key;
    json_t *value;
    lst_status status = wanted ? LST_OK : lst__fail_memory(err, "the comparison's head", 0);
    json_object_foreach(wanted, key, value)
    {
        if (status == LST_OK && !json_equal(value, json_object_get(line, key))) {
            char *ours = json_dumps(value, JSON_ENCODE_ANY),
                 *theirs = json_dumps(json_object_get(line, key), JSON_ENCODE_ANY);
            status = lst__fail(err, LST_ERR_STATE,
                               "%s holds a comparison with \"%s\" %s, and now it is %s. Trials of both cannot stand in "
                               "one table: repeat its options to go on with it, or give another --out",
                               c->folder, key, theirs ? theirs : "absent", ours ? ours : "?");
            free(ours);
            free(theirs);
        }
    }
    json_decref(wanted);
    return status;
}

static lst_status read_lines(train_compare *c, const char *path, const char *text, lst_error *err)
{
    lst_status status = LST_OK;
    size_t number = 0;
    for (const char *line = text, *end; status == LST_OK && (end = strchr(line, '\n')); line = end + 1) {
        char where[TRAIN_MAX_PATH + 40];
        json_t *object;
        snprintf(where, sizeof where, "%s line %zu", path, ++number);
        status = lst__json_parse(&object, where, line, (size_t)(end - line), err);
        if (status != LST_OK)
            break;
        status = number == 1 ? check_head(c, object, err) : read_trial(c, object, where, err);
        json_decref(object);
    }
    return status;
}

/* A line that a kill cut short is dropped: its trial is made again. */
static lst_status drop_half_line(const char *path, const char *text, size_t n_bytes, lst_error *err)
{
    while (n_bytes > 0 && text[n_bytes - 1] != '\n')
        n_bytes--;
    if (text[n_bytes] != '\0' && truncate(path, (off_t)n_bytes) != 0)
        return lst__fail(err, LST_ERR_IO, "%s ends in half a line and cannot be cut", path);
    return LST_OK;
}

lst_status train_compare_open(train_compare *c, lst_error *err)
{
    char *text = NULL, *path = lst__path_join(c->folder, "compare.jsonl");
    size_t n_bytes = 0;
    c->n_trials = 0;
    lst_status status = path ? lst__make_dirs(c->folder, err) : lst__fail_memory(err, "compare.jsonl", 0);
    if (status == LST_OK && lst__is_file(path)) {
        status = lst__file_read(path, MAX_FILE, &text, &n_bytes, err);
        if (status == LST_OK)
            status = read_lines(c, path, text, err);
        if (status == LST_OK)
            status = drop_half_line(path, text, n_bytes, err);
    }
    if (status == LST_OK && (!text || !strchr(text, '\n')))
        status = append_line(c, head_json(c), err);
    lst__free(text);
    lst__free(path);
    return status;
}

/* ---- one trial ---- */

/* "adamw split24+q8", 0.002, 1: "adamw-split24+q8-lr0.002-seed1" in the folder of trials. */
static lst_status trial_folder(const train_compare *c, const train_job *job, char *out, size_t n, lst_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "%s", c->contenders[job->contender].name);
    for (char *at = name; *at; at++)
        *at = *at == ' ' ? '-' : *at;
    const int length = snprintf(out, n, "%s/trials/%s-lr%.4g-seed%" PRIu64, c->folder, name, job->lr, job->seed);
    if (length < 0 || (size_t)length >= n)
        return lst__fail(err, LST_ERR_ARGUMENT, "the name of the comparison's folder is too long");
    return lst__is_dir(out) ? lst__remove_tree(out, err) : LST_OK; /* one that was interrupted */
}

static train_settings settings_of(const train_compare *c, const train_job *job)
{
    train_settings s = c->base;
    s.recipe = c->contenders[job->contender].recipe;
    s.recipe.hyper.lr = job->lr;
    s.seed = job->seed;
    if (s.recipe.rule == LST_RULE_SCHEDULE_FREE) { /* its own schedule, with the warm-up of the others */
        s.recipe.hyper.warmup_steps = (double)s.schedule.warmup_steps;
        s.schedule = (lst_schedule){.kind = LST_SCHEDULE_CONSTANT, .total_steps = s.schedule.total_steps};
    }
    return s;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Steps to the end. *broke: numbers were not finite. */
static lst_status make_steps(train_run *run, const train_job *job, const train_compare_observer *o, double *times,
                             bool *broke, lst_error *err)
{
    const int64_t total = run->settings.schedule.total_steps;
    lst_status status = LST_OK;
    while (status == LST_OK && run->step < total) {
        train_step step;
        const uint64_t start = lst__clock_ns();
        status = train_run_step(run, &step, err);
        times[run->step - 1] = (double)(lst__clock_ns() - start) * 1e-6;
        *broke = status == LST_ERR_NONFINITE;
        if (*broke)
            return LST_OK;
        o->on_step(o->user, job, run->step, total);
        if (status == LST_OK && o->stop(o->user))
            status = lst__fail(err, LST_ERR_INTERRUPTED,
                               "stopped in the middle of a trial; the same command goes on with that trial from its "
                               "first step");
    }
    return status;
}

static void account(const train_run *run, train_trial *t)
{
    const lst_plan *plan = run->plan;
    t->n_skipped = run->engine->n_skipped;
    t->params = plan->n_params;
    t->state_bytes = plan->optimizer_state_bytes;
    t->fixed_bytes = plan->fixed_bytes;
    t->arena_bytes = plan->arena_bytes;
    t->as_planned = run->engine->ledger.peak_total == plan->peak_bytes;
    for (int b = 0; b < LST_N_BUCKETS; b++)
        t->as_planned = t->as_planned && run->engine->ledger.peak[b] == plan->bucket_bytes[b];
}

static lst_status finish(train_run *run, const train_job *job, const train_compare_observer *o, train_trial *t,
                         lst_error *err)
{
    const size_t n = (size_t)run->settings.schedule.total_steps;
    double *times = lst__alloc(n, sizeof *times);
    bool broke = false;
    if (!times)
        return lst__fail_memory(err, "the times of the steps", n * sizeof *times);
    lst_status status = make_steps(run, job, o, times, &broke, err);
    t->valid_loss = NAN;
    if (status == LST_OK && !broke)
        status = train_run_validate(run, &t->valid_loss, err);
    if (status == LST_OK) {
        qsort(times, (size_t)run->step, sizeof *times, compare_doubles);
        t->step_ms = run->step > 0 ? times[run->step / 2] : 0;
        if (!isfinite(t->valid_loss))
            t->valid_loss = NAN;
        model_enter(run->engine->model, lst_phase_save(run->plan->n_layers));
        account(run, t);
    }
    lst__free(times);
    return status;
}

static lst_status make_trial(train_compare *c, const train_job *job, const train_compare_observer *o, lst_error *err)
{
    static train_settings settings;
    char folder[TRAIN_MAX_PATH];
    train_run *run = NULL;
    train_trial trial = {.contender = job->contender, .lr = job->lr, .seed = job->seed};
    settings = settings_of(c, job);
    lst_status status = trial_folder(c, job, folder, sizeof folder, err);
    if (status == LST_OK)
        status = train_run_start(&run, &settings, folder, err);
    if (status == LST_OK && c->data_hash && c->data_hash != run->data.hash)
        status = lst__fail(err, LST_ERR_STATE,
                           "%s has changed since the first trials of %s: give a copy that stays as it is, and another "
                           "--out",
                           settings.data, c->folder);
    if (status == LST_OK)
        status = finish(run, job, o, &trial, err);
    if (status == LST_OK) {
        c->data_hash = run->data.hash;
        status = append_line(c, trial_json(c, &trial), err);
    }
    train_run_close(run);
    if (status != LST_OK)
        return status;
    c->trials[c->n_trials++] = trial;
    o->on_trial(o->user, c, &trial);
    return LST_OK;
}

lst_status train_compare_run(train_compare *c, const train_compare_observer *observer, lst_error *err)
{
    train_job job;
    lst_status status = LST_OK;
    while (status == LST_OK && train_compare_next(c, &job)) {
        if (c->n_trials == TRAIN_MAX_TRIALS)
            return lst__fail(err, LST_ERR_STATE, "%s holds %zu trials, and there is room for no more", c->folder,
                             c->n_trials);
        status = make_trial(c, &job, observer, err);
    }
    return status;
}

/* ---- compare.json ---- */

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *standing_json(const train_compare *c, const train_standing *s)
{
    json_t *o =
        json_pack("{s:s, s:o, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "recipe", c->contenders[s->contender].name,
                  "lr", real_or_null(s->lr), "lr_at_end", (int)s->at_end, "lrs_tried", (json_int_t)s->n_tried, "seeds",
                  (json_int_t)s->n_seeds, "valid_loss", real_or_null(s->loss), "valid_loss_spread",
                  real_or_null(s->loss_spread), "percent", real_or_null(s->percent), "percent_spread",
                  real_or_null(s->percent_spread), "step_ms", real_or_null(s->step_ms));
    if (!o || !s->trial)
        return o;
    const double n = (double)s->trial->params;
    json_t *bytes =
        json_pack("{s:f, s:f, s:I, s:I, s:I, s:b}", "bytes_per_param", (double)s->trial->fixed_bytes / n,
                  "state_bytes_per_param", (double)s->trial->state_bytes / n, "fixed_bytes",
                  (json_int_t)s->trial->fixed_bytes, "state_bytes", (json_int_t)s->trial->state_bytes, "arena_bytes",
                  (json_int_t)s->trial->arena_bytes, "as_planned", (int)s->trial->as_planned);
    if (bytes)
        json_object_update(o, bytes);
    json_decref(bytes);
    return o;
}

lst_status train_compare_write(const train_compare *c, lst_error *err)
{
    train_standing standings[TRAIN_MAX_CONTENDERS];
    char *json_path = lst__path_join(c->folder, "compare.json"), *page = lst__path_join(c->folder, "compare.html");
    json_t *root = head_json(c), *rows = json_array();
    train_compare_standings(c, standings);
    for (size_t i = 0; rows && i < c->n_contenders; i++)
        json_array_append_new(rows, standing_json(c, &standings[i]));
    lst_status status = root && rows && json_path && page && json_object_set_new(root, "rows", rows) == 0
                            ? lst__json_save(root, json_path, err)
                            : lst__fail_memory(err, "compare.json", 0);
    json_decref(root);
    if (status == LST_OK)
        status = train__compare_page(c, standings, page, err);
    lst__free(json_path);
    lst__free(page);
    return status;
}
