/* SPDX-License-Identifier: MIT
 *
 * golden_models DIR: every model folder below DIR: logits, loss, every gradient and a greedy continuation, against
 * values that PyTorch computed in float64. Each model runs under several recipes; the worst error counts.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "fixture.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "numeric/bf16.h"
#include "numeric/f16.h"

typedef struct golden {
    const char *folder;
    json_t *json;
    lst_arch arch;
    lst_weight_form form;
    lst_st_set *weights;
    lst_st *expected;
    double logits_error, loss_error, gradient_error; /* worst so far */
    char worst_gradient[96];
    char failure[1200]; /* empty: none yet */
    fixture *f;
} golden;

static int passed, failed, skipped;

static void fail(golden *g, const char *what, const char *detail)
{
    if (!g->failure[0])
        snprintf(g->failure, sizeof g->failure, "%s: %s", what, detail);
}

/* ---- reading ---- */

static double number(const json_t *json, const char *object, const char *key)
{
    return json_number_value(json_object_get(object ? json_object_get(json, object) : json, key));
}

/* Files differ in the prefix "transformer." only. */
static const char *other_name(const char *name, char *room, size_t n)
{
    static const char prefix[] = "transformer.";
    if (!strncmp(name, prefix, sizeof prefix - 1))
        return name + sizeof prefix - 1;
    snprintf(room, n, "%s%s", prefix, name);
    return room;
}

static float value_of(const lst_st_tensor *t, size_t i)
{
    float x;
    uint16_t h;
    if (t->dtype == LST_ST_F32) {
        memcpy(&x, t->data + 4 * i, 4);
        return x;
    }
    memcpy(&h, t->data + 2 * i, 2);
    return t->dtype == LST_ST_BF16 ? lst__bf16_to_f32(h) : lst__f16_to_f32(h);
}

static int load_weights(golden *g, model *m)
{
    lst_codec codec = lst_weight_form_codec(g->form);
    for (size_t t = 0; t < lst_arch_tensor_count(&g->arch); t++) {
        lst_arch_tensor tensor;
        char room[128];
        lst_arch_tensor_at(&g->arch, t, &tensor);
        const lst_st_tensor *file = lst__st_set_find(g->weights, tensor.name);
        if (!file)
            file = lst__st_set_find(g->weights, other_name(tensor.name, room, sizeof room));
        if (!file || file->n_elems != tensor.n_elems) {
            fail(g, "no such weight in the file", tensor.name);
            return 1;
        }
        for (size_t i = 0; i < tensor.n_elems; i++) {
            float x = value_of(file, i);
            if (codec == LST_CODEC_F32)
                ((float *)model_weight(m, t))[i] = x;
            else
                ((uint16_t *)model_weight(m, t))[i] =
                    codec == LST_CODEC_BF16 ? lst__bf16_from_f32(x) : lst__f16_from_f32(x);
        }
    }
    return 0;
}

static int64_t integer_at(const lst_st_tensor *t, size_t i)
{
    int64_t x;
    memcpy(&x, t->data + 8 * i, 8);
    return x;
}

/* Row r of the golden batch into sequence r of the run, counted over micro-batches; labels move one to the left. */
static void load_batch(golden *g)
{
    const lst_st_tensor *ids = lst__st_find(g->expected, "input_ids"), *labels = lst__st_find(g->expected, "labels");
    size_t n_rows = ids->dims[0], seq = ids->dims[1], batch = g->f->plan->recipe.batch;
    for (size_t r = 0; r < n_rows; r++)
        for (size_t t = 0; t < seq; t++) {
            model_ids(g->f->m, r / batch)[r % batch * seq + t] = (int32_t)integer_at(ids, r * seq + t);
            model_targets(g->f->m, r / batch)[r % batch * seq + t] =
                t + 1 < seq ? (int32_t)integer_at(labels, r * seq + t + 1) : MODEL_IGNORE;
        }
}

/* ---- comparing ---- */

static double error_of(const lst_st_tensor *want, const float *got)
{
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < want->n_elems; i++) {
        double w = (double)value_of(want, i), d = fabs((double)got[i] - w);
        largest = fmax(largest, fabs(w));
        worst = d > worst || isnan(d) ? d : worst;
    }
    return isnan(worst) ? INFINITY : worst / largest;
}

static lst_status compare_gradient(void *user, size_t tensor, const void *grad, lst_codec codec, lst_error *err)
{
    golden *g = user;
    lst_arch_tensor t;
    char key[160], room[128];
    (void)codec;
    (void)err;
    lst_arch_tensor_at(&g->arch, tensor, &t);
    snprintf(key, sizeof key, "grad.%s", t.name);
    const lst_st_tensor *want = lst__st_find(g->expected, key);
    if (!want) {
        snprintf(key, sizeof key, "grad.%s", other_name(t.name, room, sizeof room));
        want = lst__st_find(g->expected, key);
    }
    if (!want || want->n_elems != t.n_elems) {
        fail(g, "no expected gradient", t.name);
        return LST_OK;
    }
    double error = error_of(want, grad);
    if (error > g->gradient_error) {
        g->gradient_error = error;
        memcpy(g->worst_gradient, t.name, sizeof g->worst_gradient);
    }
    return LST_OK;
}

static void check_logits(golden *g)
{
    const lst_st_tensor *want = lst__st_find(g->expected, "logits");
    size_t n = g->f->plan->recipe.batch * g->f->plan->recipe.seq * g->arch.vocab;
    if (n != want->n_elems) /* the batch is spread over micro-batches: another recipe covers it */
        return;
    float *logits = malloc(n * sizeof *logits);
    if (model_logits(g->f->m, logits, &g->f->err) != LST_OK)
        fail(g, "logits", g->f->err.message);
    else
        g->logits_error = fmax(g->logits_error, error_of(want, logits));
    free(logits);
}

static void run_recipe(golden *g, const lst_recipe *recipe, size_t threads)
{
    fixture f;
    double loss, want = number(g->json, NULL, "loss");
    if (fixture_open(&f, &g->arch, recipe, threads)) {
        fail(g, "plan or model", f.err.message);
        return;
    }
    g->f = &f;
    if (!load_weights(g, f.m)) {
        load_batch(g);
        check_logits(g);
        model_hooks hooks = {.user = g, .on_gradient = compare_gradient};
        if (model_step(f.m, 1.0f, &hooks, &loss, &f.err) != LST_OK)
            fail(g, "step", f.err.message);
        else
            g->loss_error = fmax(g->loss_error, fabs(loss - want) / fabs(want));
    }
    fixture_close(&f);
}

typedef struct written {
    const json_t *want;
    size_t n, wrong;
} written;

static lst_status take_token(void *user, int32_t id, lst_error *err)
{
    written *w = user;
    (void)err;
    w->wrong += json_integer_value(json_array_get(w->want, w->n++)) != id;
    return LST_OK;
}

static void check_greedy(golden *g)
{
    const json_t *greedy = json_object_get(g->json, "greedy"), *prompt = json_object_get(greedy, "prompt");
    written w = {.want = json_object_get(greedy, "tokens")};
    size_t n = json_array_size(prompt), n_tokens = json_array_size(w.want);
    int32_t *ids = calloc(n, sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(prompt, i));
    fixture f;
    if (fixture_open_generator(&f, &g->arch, g->form, n + n_tokens, 2)) {
        fail(g, "generation plan", f.err.message);
    } else {
        model_sampling s = {.max_tokens = n_tokens, .stop = -1};
        if (!load_weights(g, f.m) && model_generate(f.m, ids, n, &s, take_token, &w, &f.err) != LST_OK)
            fail(g, "generation", f.err.message);
        if (w.n != n_tokens || w.wrong)
            fail(g, "greedy continuation", "differs");
        fixture_close(&f);
    }
    free(ids);
}

/* ---- a case ---- */

static lst_weight_form form_of_file(const lst_st_set *weights)
{
    lst_st_dtype dtype = weights->tensors[0]->dtype;
    return dtype == LST_ST_BF16 ? LST_WEIGHT_SPLIT32 : dtype == LST_ST_F16 ? LST_WEIGHT_F16_MASTER : LST_WEIGHT_F32;
}

static int open_case(golden *g)
{
    char *config = lst__path_join(g->folder, "config.json"),
         *expected = lst__path_join(g->folder, "expected.safetensors"), *text;
    size_t n;
    lst_error err = {0};
    int bad = lst__file_read(config, 1 << 20, &text, &n, &err) != LST_OK;
    if (!bad) {
        bad = lst_arch_from_config(text, n, config, &g->arch, &err) != LST_OK;
        lst__free(text);
    }
    bad = bad || lst__st_set_open(&g->weights, g->folder, &err) != LST_OK ||
          lst__st_open(&g->expected, expected, &err) != LST_OK;
    if (bad)
        fail(g, "reading", err.message);
    lst__free(config);
    lst__free(expected);
    return bad;
}

static void run_recipes(golden *g)
{
    const lst_st_tensor *ids = lst__st_find(g->expected, "input_ids");
    lst_recipe r;
    lst_recipe_default(&r);
    g->form = form_of_file(g->weights);
    r.weights = g->form;
    r.batch = ids->dims[0];
    r.seq = ids->dims[1];
    run_recipe(g, &r, 1);
    r.activations = LST_ACT_POINTWISE;
    r.grad_mode = LST_GRAD_RELEASE;
    r.clip_norm = 0.0;
    r.loss_chunk = 5;
    run_recipe(g, &r, 2);
    r.accumulation = r.batch;
    r.batch = 1;
    r.activations = LST_ACT_INPUTS;
    run_recipe(g, &r, 3);
}

static void run_model(const char *folder, json_t *json)
{
    golden g = {.folder = folder, .json = json};
    if (!open_case(&g)) {
        run_recipes(&g);
        check_greedy(&g);
    }
    double logits = number(json, "tolerance", "logits"), loss = number(json, "tolerance", "loss");
    double gradients = number(json, "tolerance", "gradients");
    if (!(g.logits_error <= logits && g.loss_error <= loss && g.gradient_error <= gradients))
        fail(&g, "beyond the tolerance, worst gradient", g.worst_gradient);
    printf("%-4s %s: logits %.1e (%.1e), loss %.1e (%.1e), gradients %.1e (%.1e) %s\n", g.failure[0] ? "FAIL" : "ok",
           folder, g.logits_error, logits, g.loss_error, loss, g.gradient_error, gradients, g.failure);
    *(g.failure[0] ? &failed : &passed) += 1;
    lst__st_set_close(g.weights);
    lst__st_close(g.expected);
}

static void run_folder(const char *folder);

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void run_subfolders(const char *folder)
{
    char *names[4096];
    size_t n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && n < 4096 && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            names[n++] = lst__path_join(folder, e->d_name);
    if (dir)
        closedir(dir);
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n; i++) {
        if (lst__is_dir(names[i]))
            run_folder(names[i]);
        lst__free(names[i]);
    }
}

static void run_folder(const char *folder)
{
    char *path = lst__path_join(folder, "expected.json");
    json_t *json = json_load_file(path, 0, NULL);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    if (kind && !strcmp(kind, "model")) {
        run_model(folder, json);
    } else if (kind && !strcmp(kind, "lora")) {
        printf("skip %s: adapters are not implemented\n", folder);
        skipped++;
    }
    json_decref(json);
    lst__free(path);
    run_subfolders(folder);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: golden_models DIR\n");
        return 2;
    }
    run_folder(argv[1]);
    printf("%d passed, %d failed", passed, failed);
    printf(skipped ? ", %d skipped\n" : "\n", skipped);
    return failed || !passed;
}
