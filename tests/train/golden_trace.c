/* SPDX-License-Identifier: MIT
 *
 * Whole training runs against the golden traces of a folder (tests/golden/trace and others of its make):
 *
 *     golden_trace FOLDER
 *
 * 30 steps with accumulation, clipping and a schedule; losses, norms, rates, and the weights at the end. Cases are
 * discovered: every JSON file below the folder whose "kind" is "trace". The comparison is that of README-models.md.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "leanstep/ckpt.h"
#include "train/engine.h"

static size_t n_passed, n_failed, n_skipped;

typedef struct trace {
    const char *folder;
    char name[512];
    json_t *json;
    int64_t steps, micro_batches, warmup;
    lst_arch arch;
    lst_recipe recipe;
    lst_st *batches;
    lst_plan *plan;
    train_engine *engine;
    double worst_loss, worst_norm, worst_lr, worst_weight;
    char worst_tensor[96];
} trace;

__attribute__((noreturn)) static void stop(const trace *t, const lst_error *err)
{
    fprintf(stderr, "golden_trace: %s: %s\n", t->name, err->message);
    exit(1);
}

static void must(const trace *t, lst_status status, const lst_error *err)
{
    if (status != LST_OK)
        stop(t, err);
}

static const char *path_in(const char *folder, const char *name)
{
    static char path[2][4096];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static double number(const trace *t, const char *section, const char *key)
{
    json_t *object = section ? json_object_get(t->json, section) : t->json, *value = json_object_get(object, key);
    if (!json_is_number(value) && !json_is_boolean(value)) {
        fprintf(stderr, "golden_trace: %s: no number \"%s\"\n", t->name, key);
        exit(1);
    }
    return json_is_boolean(value) ? (double)json_is_true(value) : json_number_value(value);
}

static double list_number(const trace *t, const char *key, int64_t index)
{
    json_t *value = json_array_get(json_object_get(t->json, key), (size_t)index);
    if (!json_is_number(value)) {
        fprintf(stderr, "golden_trace: %s: \"%s\" has no number at %lld\n", t->name, key, (long long)index);
        exit(1);
    }
    return json_number_value(value);
}

static const lst_st_tensor *array(const trace *t, const lst_st *st, const char *name)
{
    const lst_st_tensor *tensor = lst__st_find(st, name);
    if (!tensor) {
        fprintf(stderr, "golden_trace: %s: no array %s\n", t->name, name);
        exit(1);
    }
    return tensor;
}

/* False for an optimizer that is not there: the case counts as skipped. */
static bool choose_rule(trace *t, const char *optimizer)
{
    lst_hyper *h = &t->recipe.hyper;
    const json_t *hyper = json_object_get(t->json, "hyper");
    if (strcmp(optimizer, "adamw") == 0) {
        t->recipe.rule = LST_RULE_ADAMW;
        lst_hyper_default(t->recipe.rule, h);
        h->beta1 = json_number_value(json_array_get(json_object_get(hyper, "betas"), 0));
        h->beta2 = json_number_value(json_array_get(json_object_get(hyper, "betas"), 1));
        h->eps = number(t, "hyper", "eps");
    } else if (strcmp(optimizer, "sgd_momentum") == 0) {
        t->recipe.rule = number(t, "hyper", "nesterov") != 0 ? LST_RULE_NESTEROV : LST_RULE_MOMENTUM;
        lst_hyper_default(t->recipe.rule, h);
        h->momentum = number(t, "hyper", "momentum");
        h->dampening = number(t, "hyper", "dampening");
    } else if (strcmp(optimizer, "adafactor") == 0) {
        t->recipe.rule = LST_RULE_ADAFACTOR_TORCH;
        lst_hyper_default(t->recipe.rule, h);
        h->beta2_decay = number(t, "hyper", "beta2_decay");
        h->eps = json_number_value(json_array_get(json_object_get(hyper, "eps"), 0));
        h->eps2 = json_number_value(json_array_get(json_object_get(hyper, "eps"), 1));
        h->clip_threshold = number(t, "hyper", "d");
    } else {
        return false;
    }
    h->lr = number(t, "hyper", "lr");
    h->weight_decay = number(t, NULL, "weight_decay_2d");
    return true;
}

static void prepare(trace *t, lst_pool *pool)
{
    lst_error err;
    char *config;
    size_t n;
    must(t, lst__file_read(path_in(t->folder, "config.json"), SIZE_MAX, &config, &n, &err), &err);
    must(t, lst_arch_from_config(config, n, t->name, &t->arch, &err), &err);
    free(config);
    must(t, lst__st_open(&t->batches, path_in(t->folder, "batches.safetensors"), &err), &err);
    const lst_st_tensor *ids = array(t, t->batches, "input_ids");
    t->steps = (int64_t)number(t, NULL, "steps");
    t->warmup = (int64_t)number(t, NULL, "warmup_steps");
    t->recipe.accumulation = ids->dims[1];
    t->recipe.batch = ids->dims[2];
    t->recipe.seq = ids->dims[3];
    t->recipe.clip_norm = number(t, NULL, "max_norm");
    t->recipe.threads = lst_pool_threads(pool);
    must(t, lst_plan_create(&t->plan, &t->arch, &t->recipe, &err), &err);
    must(t, train_engine_create(&t->engine, t->plan, pool, 1, &err), &err);
    must(t, lst_optim_reset(t->engine->optim, &err), &err);
    must(t, lst_ckpt_load_weights_exact(t->folder, t->engine->optim, NULL, &err), &err);
}

/* Labels of the trace stand at the token itself; the model wants at each position the token that follows. */
static void fill_step(const trace *t, int64_t step)
{
    const lst_recipe *r = &t->recipe;
    const int32_t *ids = (const void *)array(t, t->batches, "input_ids")->data;
    const int32_t *labels = (const void *)array(t, t->batches, "labels")->data;
    size_t tokens = r->batch * r->seq;
    for (size_t micro = 0; micro < r->accumulation; micro++) {
        size_t from = ((size_t)step * r->accumulation + micro) * tokens;
        int32_t *targets = model_targets(t->engine->model, micro);
        memcpy(model_ids(t->engine->model, micro), ids + from, tokens * sizeof *ids);
        for (size_t i = 0; i < tokens; i++)
            targets[i] = (i + 1) % r->seq ? labels[from + i + 1] : MODEL_IGNORE;
    }
}

static void keep_worst(double *worst, double got, double want)
{
    double error = fabs(got - want) / fmax(fabs(want), 1e-300);
    if (!(error <= *worst))
        *worst = error;
}

static void run_steps(trace *t)
{
    lst_schedule schedule = {.kind = LST_SCHEDULE_COSINE, .warmup_steps = t->warmup, .total_steps = t->steps};
    for (int64_t i = 0; i < t->steps; i++) {
        lst_error err;
        train_step step;
        double lr = t->recipe.hyper.lr * lst_schedule_rate(&schedule, i), want = list_number(t, "lr", i);
        if (lr != 0 || want != 0)
            keep_worst(&t->worst_lr, lr, want);
        fill_step(t, i);
        must(t, train_engine_step(t->engine, lr, &step, &err), &err);
        keep_worst(&t->worst_loss, step.loss, list_number(t, "loss", i));
        keep_worst(&t->worst_norm, step.grad_norm, list_number(t, "grad_norm", i));
    }
}

/* GPT-2's key bias has no gradient but rounding noise, which Adam turns into steps: left out (README-models.md). */
static bool is_noise(const trace *t, const char *name, size_t element, size_t n)
{
    return t->arch.fused_qkv && strstr(name, "c_attn.bias") && element >= n / 3 && element < 2 * (n / 3);
}

static void compare_weights(trace *t)
{
    lst_error err;
    lst_st *want;
    must(t, lst__st_open(&want, path_in(t->folder, json_string_value(json_object_get(t->json, "file"))), &err), &err);
    for (size_t i = 0; i < t->engine->n_tensors; i++) {
        const char *name = lst_optim_tensor(t->engine->optim, i)->name;
        const lst_st_tensor *tensor = array(t, want, name);
        const float *w = (const void *)tensor->data, *got = model_weight(t->engine->model, i);
        double largest = 0, error = 0;
        for (size_t k = 0; k < tensor->n_elems; k++) {
            largest = fmax(largest, fabs((double)w[k]));
            if (!is_noise(t, name, k, tensor->n_elems) && !(fabs((double)got[k] - (double)w[k]) <= error))
                error = fabs((double)got[k] - (double)w[k]);
        }
        if (!(error / largest <= t->worst_weight)) {
            t->worst_weight = error / largest;
            snprintf(t->worst_tensor, sizeof t->worst_tensor, "%s", name);
        }
    }
    lst__st_close(want);
}

static bool verdict(const trace *t)
{
    double loss = number(t, "tolerance", "loss"), norm = number(t, "tolerance", "grad_norm"),
           weights = number(t, "tolerance", "weights");
    bool ok = t->worst_loss <= loss && t->worst_norm <= norm && t->worst_weight <= weights && t->worst_lr <= 1e-15;
    printf("%s %s: loss %.2g of %.2g, norm %.2g of %.2g, lr %.2g of 1e-15, weights %.2g of %.2g (%s)\n",
           ok ? "ok  " : "FAIL", t->name, t->worst_loss, loss, t->worst_norm, norm, t->worst_lr, t->worst_weight,
           weights, t->worst_tensor);
    return ok;
}

static void run_case(const char *folder, const char *file, json_t *json, lst_pool *pool)
{
    trace t = {.folder = folder, .json = json};
    const char *optimizer = json_string_value(json_object_get(json, "optimizer"));
    snprintf(t.name, sizeof t.name, "%s", path_in(folder, file));
    lst_recipe_default(&t.recipe);
    if (!optimizer || !choose_rule(&t, optimizer)) {
        printf("skip %s: no optimizer \"%s\"\n", t.name, optimizer ? optimizer : "?");
        n_skipped++;
        return;
    }
    prepare(&t, pool);
    run_steps(&t);
    compare_weights(&t);
    *(verdict(&t) ? &n_passed : &n_failed) += 1;
    train_engine_destroy(t.engine);
    lst_plan_destroy(t.plan);
    lst__st_close(t.batches);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void walk(const char *folder, lst_pool *pool)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        size_t length = strlen(name);
        if (name[0] != '.' && lst__is_dir(path)) {
            walk(path, pool);
        } else if (length > 5 && strcmp(name + length - 5, ".json") == 0) {
            json_t *json = json_load_file(path, 0, NULL);
            const char *kind = json_string_value(json_object_get(json, "kind"));
            if (kind && strcmp(kind, "trace") == 0)
                run_case(folder, name, json, pool);
            json_decref(json);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: golden_trace FOLDER\n");
        return 2;
    }
    lst_pool *pool;
    if (lst_pool_create(&pool, 2, NULL) != LST_OK)
        return 1;
    walk(argv[1], pool);
    lst_pool_destroy(pool);
    printf("%zu passed, %zu failed", n_passed, n_failed);
    if (n_skipped)
        printf(", %zu skipped", n_skipped);
    printf("\n");
    return n_failed || !n_passed ? 1 : 0;
}
