/* SPDX-License-Identifier: MIT
 *
 * Steps, clipping and loss scaling against the golden values of a folder (tests/golden/optim and others of its make):
 *
 *     golden_optim FOLDER
 *
 * Cases are discovered from the JSON files. The comparison is that of README-optim.md.
 */
#include "optim/golden_file.h"

#include <dirent.h>

#include "leanstep/optim.h"
#include "optim/golden_hyper.h"

#define MAX_TENSORS 64

static size_t n_passed, n_failed, n_skipped;

static void verdict(bool passed, const char *file, const char *name, const char *text)
{
    printf("%s %s/%s: %s\n", passed ? "ok  " : "FAIL", file, name, text);
    if (passed)
        n_passed++;
    else
        n_failed++;
}

__attribute__((noreturn)) static void stop(const lst_error *err)
{
    fprintf(stderr, "golden_optim: %s\n", err->message);
    exit(1);
}

/* ---- worst error of a case ---- */

typedef struct worst {
    double of_tolerance; /* largest |got - want| / allowed */
    double relative;     /* largest |got - want| / scale where the scale is what counts */
    char where[256];
} worst;

static void compare_one(worst *w, double got, double want, double scale, double atol, double rtol, const char *where)
{
    double share;
    if (isnan(want) || isnan(got) || isinf(want) || isinf(got)) {
        share = (isnan(want) && isnan(got)) || want == got ? 0 : INFINITY;
    } else {
        const double allowed = fmax(atol, rtol * scale), error = fabs(got - want);
        share = error / allowed;
        if (rtol * scale > atol && error / scale > w->relative)
            w->relative = error / scale;
    }
    if (share > w->of_tolerance) {
        w->of_tolerance = share;
        snprintf(w->where, sizeof w->where, "%s (got %.9g, expected %.9g)", where, got, want);
    }
}

static void compare_array(worst *w, const golden_file *g, const float *got, const char *want_name,
                          const char *peak_name, const unsigned char *unsure, const double tolerance[2])
{
    golden_array a, p;
    float *want = golden_copy(g, want_name, &a), *peak = golden_copy(g, peak_name, &p);
    if (!want)
        golden_die("no array", want_name);
    for (size_t i = 0; i < a.n_elems; i++) {
        if (unsure && unsure[i])
            continue;
        char where[160];
        snprintf(where, sizeof where, "%.100s[%zu]", want_name, i);
        compare_one(w, (double)got[i], (double)want[i], fabs((double)(peak ? peak : want)[i]), tolerance[0],
                    tolerance[1], where);
    }
    free(want);
    free(peak);
}

/* ---- a case of a rule ---- */

typedef struct trial {
    const golden_file *file, *inputs;
    const json_t *spec;
    const char *name, *set;
    lst_optim *optim;
    bool bf16; /* bf16 weights and gradients, float32 master */
    size_t n;
    golden_array shapes[MAX_TENSORS];
    float *init[MAX_TENSORS];
    void *weights[MAX_TENSORS];
    void *grads[MAX_TENSORS];
    void *block, *scratch;
    double param_tolerance[2], state_tolerance[2]; /* atol, rtol */
    worst param, state;
} trial;

static bool formula_case(const trial *t)
{
    return strcmp(t->set, "formula") == 0;
}

/* The tensors of a formula set: shapes from the JSON, values p[i] = ((i*29) mod 97 - 48) / 64. */
static void formula_init(trial *t)
{
    const json_t *shapes = json_object_get(json_object_get(t->file->about, "input_formula"), "shapes");
    size_t index = 0;
    for (t->n = 0; t->n < json_array_size(shapes); t->n++) {
        const json_t *shape = json_array_get(shapes, t->n);
        golden_array *a = &t->shapes[t->n];
        *a = (golden_array){.n_dims = json_array_size(shape), .n_elems = 1};
        for (size_t k = 0; k < a->n_dims; k++)
            a->n_elems *= a->dims[k] = (size_t)json_integer_value(json_array_get(shape, k));
        t->init[t->n] = malloc(a->n_elems * sizeof(float));
        for (size_t i = 0; i < a->n_elems; i++, index++)
            t->init[t->n][i] = ((float)((index * 29) % 97) - 48.0f) / 64.0f;
    }
}

/* g_t[i] = ((t*131 + i*17 + offset) mod 257 - 128) / 1024 */
static void formula_grads(trial *t, size_t step)
{
    const json_t *about = json_object_get(t->file->about, "input_formula");
    const size_t offset = (size_t)json_integer_value(json_object_get(about, "formula_offset"));
    size_t index = 0;
    for (size_t k = 0; k < t->n; k++)
        for (size_t i = 0; i < t->shapes[k].n_elems; i++, index++)
            ((float *)t->grads[k])[i] = ((float)((step * 131 + index * 17 + offset) % 257) - 128.0f) / 1024.0f;
}

static void load_init(trial *t)
{
    if (formula_case(t)) {
        formula_init(t);
        return;
    }
    for (t->n = 0; t->n < MAX_TENSORS; t->n++) {
        char name[128];
        snprintf(name, sizeof name, "%s/init/p%zu", t->set, t->n);
        t->init[t->n] = golden_copy(t->inputs, name, &t->shapes[t->n]);
        if (!t->init[t->n])
            break;
    }
    if (t->n == 0)
        golden_die("no inputs for the set", t->set);
}

static void load_grads(trial *t, size_t step)
{
    if (formula_case(t)) {
        formula_grads(t, step);
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        char name[128];
        golden_array a;
        snprintf(name, sizeof name, "%s/step%zu/g%zu", t->set, step, i);
        free(t->grads[i]);
        t->grads[i] = golden_copy(t->bf16 ? t->file : t->inputs, name, &a);
        if (!t->grads[i] || a.n_elems != t->shapes[i].n_elems)
            golden_die("no gradient", name);
    }
}

static void create(trial *t, lst_rule rule)
{
    lst_tensor tensors[MAX_TENSORS];
    lst_hyper groups[MAX_TENSORS]; /* a group each: simple, and it tests them */
    char names[MAX_TENSORS][32];
    lst_error err;
    for (size_t i = 0; i < t->n; i++) {
        snprintf(names[i], sizeof names[i], "p%zu", i);
        tensors[i] = (lst_tensor){.name = names[i], .n_dims = t->shapes[i].n_dims, .group = i};
        memcpy(tensors[i].dims, t->shapes[i].dims, sizeof tensors[i].dims);
        golden_hyper_of(rule, t->spec, i, &groups[i]);
    }
    const lst_optim_options options = {.struct_size = sizeof options,
                                       .rule = rule,
                                       .weights = t->bf16 ? LST_WEIGHT_BF16_MASTER : LST_WEIGHT_F32,
                                       .grads = t->bf16 ? LST_CODEC_BF16 : LST_CODEC_F32,
                                       .state = LST_CODEC_F32,
                                       .n_groups = t->n,
                                       .groups = groups};
    if (lst_optim_create(&t->optim, &options, tensors, t->n, &err) != LST_OK)
        stop(&err);
}

static void bind(trial *t)
{
    lst_error err;
    const size_t bytes = lst_optim_block_bytes(t->optim), scratch = lst_optim_scratch_bytes(t->optim);
    t->block = aligned_alloc(64, (bytes + 64) / 64 * 64);
    t->scratch = aligned_alloc(64, (scratch + 64) / 64 * 64);
    if (lst_optim_bind(t->optim, t->block, bytes, &err) != LST_OK ||
        lst_optim_bind_scratch(t->optim, t->scratch, scratch, &err) != LST_OK)
        stop(&err);
    for (size_t i = 0; i < t->n; i++) {
        t->weights[i] = calloc(t->shapes[i].n_elems, sizeof(float));
        t->grads[i] = calloc(t->shapes[i].n_elems, sizeof(float));
        memcpy(t->weights[i], t->init[i], t->bf16 ? 0 : t->shapes[i].n_elems * sizeof(float));
        if (lst_optim_bind_weights(t->optim, i, t->weights[i], &err) != LST_OK)
            stop(&err);
    }
    if (lst_optim_reset(t->optim, &err) != LST_OK)
        stop(&err);
    for (size_t i = 0; i < t->n && t->bf16; i++)
        if (lst_optim_set_weights_f32(t->optim, i, t->init[i], &err) != LST_OK)
            stop(&err);
}

static bool is_absent(const json_t *spec, size_t tensor, size_t step)
{
    char key[32];
    snprintf(key, sizeof key, "%zu", tensor);
    const json_t *steps = json_object_get(json_object_get(spec, "absent"), key);
    for (size_t i = 0; i < json_array_size(steps); i++)
        if ((size_t)json_integer_value(json_array_get(steps, i)) == step)
            return true;
    return false;
}

static void one_step(trial *t, size_t step)
{
    lst_error err;
    const void *grads[MAX_TENSORS];
    const json_t *lrs = json_object_get(t->spec, "lrs");
    for (size_t i = 0; i < t->n && lrs; i++)
        if (lst_optim_set_lr(t->optim, i, golden_number(json_array_get(lrs, step - 1), 0), &err) != LST_OK)
            stop(&err);
    load_grads(t, step);
    for (size_t i = 0; i < t->n; i++)
        grads[i] = is_absent(t->spec, i, step) ? NULL : t->grads[i];
    if (lst_optim_step(t->optim, grads, (lst_grad_scale){1, 1}, &err) != LST_OK)
        stop(&err);
}

/* bf16 weights: exactly the rounding of our master, and the stored bits wherever the stored master is farther than
 * the tolerance from a boundary of rounding. */
static bool weights_right(const trial *t, size_t i, size_t step, const float *master)
{
    char name[160];
    golden_array a = {0}, b = {0};
    snprintf(name, sizeof name, "%s/step%zu/weight%zu", t->name, step, i);
    uint16_t *want = golden_copy(t->file, name, &a);
    snprintf(name, sizeof name, "%s/step%zu/p%zu", t->name, step, i);
    float *stored = golden_copy(t->file, name, &b);
    bool right = want && stored;
    const uint16_t *got = t->weights[i];
    for (size_t k = 0; k < a.n_elems && right; k++) {
        uint32_t bits, stored_bits;
        memcpy(&bits, &master[k], 4);
        memcpy(&stored_bits, &stored[k], 4);
        right = got[k] == (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
        const bool near_boundary = abs((int)(stored_bits & 0xffff) - 0x8000) < 64; /* 64 ulp of float32 > rtol 2e-6 */
        right = right && (near_boundary || got[k] == want[k]);
    }
    free(want);
    free(stored);
    return right;
}

static void compare_params(trial *t, size_t step)
{
    lst_error err;
    for (size_t i = 0; i < t->n; i++) {
        char want[160], peak[160], unsure_name[160];
        golden_array a;
        float *got = malloc(t->shapes[i].n_elems * sizeof *got);
        if (lst_optim_get_weights_f32(t->optim, i, got, &err) != LST_OK)
            stop(&err);
        snprintf(want, sizeof want, "%s/step%zu/p%zu", t->name, step, i);
        snprintf(peak, sizeof peak, "%s/peak/p%zu/param", t->name, i);
        snprintf(unsure_name, sizeof unsure_name, "%s/unsure/p%zu", t->name, i);
        unsigned char *unsure = golden_copy(t->file, unsure_name, &a);
        compare_array(&t->param, t->file, got, want, peak, unsure, t->param_tolerance);
        if (t->bf16 && !weights_right(t, i, step, got)) {
            t->param.of_tolerance = INFINITY;
            snprintf(t->param.where, sizeof t->param.where, "bf16 weights of p%zu after step %zu", i, step);
        }
        free(unsure);
        free(got);
    }
}

static const lst_slot *slot_named(const trial *t, size_t tensor, const char *name)
{
    for (size_t k = 0; k < lst_optim_slot_count(t->optim, tensor); k++)
        if (strcmp(lst_optim_slot(t->optim, tensor, k)->name, name) == 0)
            return lst_optim_slot(t->optim, tensor, k);
    return NULL;
}

static void compare_step_count(trial *t, size_t tensor, const char *key)
{
    golden_array a;
    float *want = golden_copy(t->file, key, &a);
    compare_one(&t->state, (double)lst_optim_steps(t->optim, tensor), (double)want[0], 0, 0.5, 0, key);
    free(want);
}

static void compare_average(trial *t, size_t tensor, const char *key)
{
    lst_error err;
    char peak[160];
    float *got = malloc(t->shapes[tensor].n_elems * sizeof *got);
    if (lst_optim_get_eval_weights_f32(t->optim, tensor, got, &err) != LST_OK)
        stop(&err);
    snprintf(peak, sizeof peak, "%s/peak/p%zu/x", t->name, tensor);
    compare_array(&t->state, t->file, got, key, peak, NULL, t->state_tolerance);
    free(got);
}

/* Every state array of the case in the file: <case>/state/p<i>/<name>. */
static void compare_state(trial *t)
{
    const char *key;
    json_t *entry;
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s/state/p", t->name);
    json_object_foreach(t->file->header, key, entry)
    {
        if (strncmp(key, prefix, strlen(prefix)) != 0)
            continue;
        char *rest;
        const size_t tensor = strtoul(key + strlen(prefix), &rest, 10);
        const char *name = golden_slot_name(rest + 1);
        if (!name)
            continue; /* for information: nothing we keep */
        if (strcmp(name, "step") == 0) {
            compare_step_count(t, tensor, key);
            continue;
        }
        if (strcmp(name, "x") == 0) {
            compare_average(t, tensor, key);
            continue;
        }
        const lst_slot *slot = slot_named(t, tensor, name);
        if (!slot)
            golden_die("the rule keeps no such state", key);
        char peak[160];
        snprintf(peak, sizeof peak, "%s/peak/p%zu/%s", t->name, tensor, rest + 1);
        compare_array(&t->state, t->file, slot->memory, key, peak, NULL, t->state_tolerance);
    }
}

static void finish(trial *t)
{
    lst_optim_destroy(t->optim);
    for (size_t i = 0; i < t->n; i++) {
        free(t->init[i]);
        free(t->weights[i]);
        free(t->grads[i]);
    }
    free(t->block);
    free(t->scratch);
}

static void run_case(const golden_file *file, const golden_file *inputs, const char *file_name, const json_t *spec)
{
    const char *name = json_string_value(json_object_get(spec, "name"));
    lst_rule rule;
    if (!golden_rule_of(spec, &rule)) {
        printf("skip %s/%s: the rule %s is not implemented\n", file_name, name,
               json_string_value(json_object_get(spec, "rule")));
        n_skipped++;
        return;
    }
    const json_t *atol = json_object_get(file->about, "atol"), *rtol = json_object_get(spec, "rtol");
    trial t = {.file = file,
               .inputs = inputs,
               .spec = spec,
               .name = name,
               .set = json_string_value(json_object_get(spec, "inputs")),
               .bf16 = json_integer_value(json_array_get(json_object_get(spec, "bf16_weights_that_changed"), 1)) > 0,
               .param_tolerance = {golden_member(atol, "param", 0), golden_member(rtol, "param", 0)},
               .state_tolerance = {golden_member(atol, "state", 0), golden_member(rtol, "state", 0)}};
    load_init(&t);
    create(&t, rule);
    bind(&t);
    const json_t *stored = json_object_get(spec, "stored_steps");
    const size_t steps = (size_t)json_integer_value(json_object_get(spec, "steps"));
    for (size_t step = 1, next = 0; step <= steps; step++) {
        one_step(&t, step);
        if ((size_t)json_integer_value(json_array_get(stored, next)) != step)
            continue;
        compare_params(&t, step);
        next++;
    }
    compare_state(&t);
    char text[512];
    const bool passed = t.param.of_tolerance <= 1 && t.state.of_tolerance <= 1;
    snprintf(text, sizeof text, "param %.1e (rtol %.0e), state %.1e (rtol %.0e)%s%s%s", t.param.relative,
             t.param_tolerance[1], t.state.relative, t.state_tolerance[1], passed ? "" : "; worst at ",
             passed                     ? ""
             : t.param.of_tolerance > 1 ? t.param.where
                                        : t.state.where,
             passed ? "" : "");
    verdict(passed, file_name, name, text);
    finish(&t);
}

/* ---- clipping ---- */

static double total_norm(const golden_file *file, const char *name, bool infinity_norm)
{
    double total = 0;
    for (size_t i = 0;; i++) {
        char key[128];
        golden_array a;
        snprintf(key, sizeof key, "%s/in/g%zu", name, i);
        float *g = golden_copy(file, key, &a);
        if (!g)
            break;
        double here;
        bool finite;
        if (infinity_norm) {
            here = lst_grad_max_abs(g, LST_CODEC_F32, a.n_elems, 1, NULL);
            total = isnan(here) || isnan(total) ? NAN : fmax(total, here);
        } else {
            lst_grad_sum_squares(g, LST_CODEC_F32, a.n_elems, 1, NULL, &here, &finite);
            total += here;
        }
        free(g);
    }
    return infinity_norm ? total : sqrt(total);
}

static void run_clip(const golden_file *file, const char *file_name, const json_t *spec)
{
    const char *name = json_string_value(json_object_get(spec, "name"));
    const double rtol = golden_member(file->about, "rtol", 0), max_norm = golden_member(spec, "max_norm", 0);
    const bool trusted = json_is_true(json_object_get(spec, "trust_torch"));
    const double total = total_norm(file, name, json_is_string(json_object_get(spec, "norm_type")));
    const float coef = lst_clip_coef(total, max_norm);
    worst w = {0};
    compare_one(&w, total, golden_member(spec, "total_float64", 0), fabs(total), 0, rtol, "total");
    if (!trusted) /* torch's own coefficient is wrong there: hold ours to the formula on the true norm */
        compare_one(&w, (double)coef, fmin(1, max_norm / (golden_member(spec, "total_float64", 0) + 1e-6)),
                    (double)coef, 0, rtol, "coef");
    for (size_t i = 0; trusted; i++) {
        char key[128];
        golden_array a;
        snprintf(key, sizeof key, "%s/in/g%zu", name, i);
        float *g = golden_copy(file, key, &a);
        if (!g)
            break;
        for (size_t k = 0; k < a.n_elems; k++)
            g[k] *= coef;
        snprintf(key, sizeof key, "%s/out/g%zu", name, i);
        compare_array(&w, file, g, key, "", NULL, (double[2]){1e-44, rtol});
        free(g);
    }
    char text[512];
    snprintf(text, sizeof text, "worst %.1e (rtol %.0e)%s%s", w.relative, rtol, w.of_tolerance > 1 ? " at " : "",
             w.of_tolerance > 1 ? w.where : "");
    verdict(w.of_tolerance <= 1, file_name, name, text);
}

/* ---- loss scaling ---- */

static bool listed(const json_t *steps, int64_t step)
{
    for (size_t i = 0; i < json_array_size(steps); i++)
        if (json_integer_value(json_array_get(steps, i)) == step)
            return true;
    return false;
}

static void run_scaler(const char *file_name, const json_t *spec)
{
    lst_loss_scale s;
    lst_loss_scale_default(&s);
    s.scale = (float)golden_member(spec, "init_scale", 0);
    s.growth_factor = golden_member(spec, "growth_factor", 0);
    s.backoff_factor = golden_member(spec, "backoff_factor", 0);
    s.growth_interval = json_integer_value(json_object_get(spec, "growth_interval"));
    const json_t *rows = json_object_get(spec, "rows"), *overflows = json_object_get(spec, "found_inf_steps");
    size_t row = 0, wrong = 0;
    for (int64_t step = 1; row < json_array_size(rows); step++) {
        const json_t *r = json_array_get(rows, row);
        lst_loss_scale_update(&s, listed(overflows, step));
        if (json_integer_value(json_array_get(r, 0)) != step)
            continue;
        row++;
        wrong += (double)s.scale != golden_number(json_array_get(r, 3), 0) ||
                 s.growth_tracker != json_integer_value(json_array_get(r, 4));
    }
    char text[128];
    snprintf(text, sizeof text, "%zu rows, %zu differ (must be equal)", row, wrong);
    verdict(wrong == 0 && row > 0, file_name, json_string_value(json_object_get(spec, "name")), text);
}

/* ---- the folder ---- */

static void run_file(const char *folder, const char *name, const golden_file *inputs)
{
    golden_file file = golden_open(folder, name);
    const json_t *cases = json_object_get(file.about, "cases"), *traces = json_object_get(file.about, "traces");
    for (size_t i = 0; i < json_array_size(traces); i++)
        run_scaler(name, json_array_get(traces, i));
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *spec = json_array_get(cases, i);
        if (json_object_get(spec, "max_norm"))
            run_clip(&file, name, spec);
        else if (json_object_get(spec, "rule"))
            run_case(&file, inputs, name, spec);
    }
    golden_close(&file);
}

static int is_json(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".json") == 0 && strcmp(entry->d_name, "inputs.json") != 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: golden_optim FOLDER\n");
        return 2;
    }
    struct dirent **entries;
    const int n = scandir(argv[1], &entries, is_json, alphasort);
    if (n <= 0)
        golden_die("no JSON files in", argv[1]);
    golden_file inputs = golden_open(argv[1], "inputs");
    for (int i = 0; i < n; i++) {
        *strrchr(entries[i]->d_name, '.') = 0;
        run_file(argv[1], entries[i]->d_name, &inputs);
        free(entries[i]);
    }
    free(entries);
    golden_close(&inputs);
    printf("%zu passed, %zu failed", n_passed, n_failed);
    if (n_skipped)
        printf(", %zu skipped", n_skipped);
    printf("\n");
    return n_failed ? 1 : 0;
}
