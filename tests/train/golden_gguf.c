/* SPDX-License-Identifier: MIT
 *
 * golden_gguf FOLDER [BAD_FOLDER]: every file of kind "gguf" in FOLDER is read and its tensors, bytes, offsets and
 * keys compared, then its texts tokenized and its logits computed; every gguf_* case of bad.json in BAD_FOLDER (by
 * default FOLDER/bad or FOLDER/../bad) is refused or accepted as it says.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/files.h"
#include "io/gguf.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "leanstep/ledger.h"
#include "leanstep/pool.h"
#include "model/model.h"
#include "plan/gguf_arch.h"
#include "train/gguf_file.h"

static int passed, failed;

static void report(bool ok, const char *name, const char *what)
{
    ok ? passed++ : failed++;
    printf("%-4s %-34s %s\n", ok ? "ok" : "FAIL", name, what);
}

static bool same_tensor(const lst_gguf *g, size_t index, const json_t *expected)
{
    const lst_gguf_tensor *t = &g->tensor[index];
    const json_t *dims = json_object_get(expected, "dims");
    bool same = strcmp(t->name, json_string_value(json_object_get(expected, "name"))) == 0 &&
                strcmp(lst__gguf_type_name(t->type), json_string_value(json_object_get(expected, "type"))) == 0 &&
                t->n_dims == json_array_size(dims) &&
                (json_int_t)t->n_bytes == json_integer_value(json_object_get(expected, "bytes")) &&
                t->data == g->map.data + g->data_offset + json_integer_value(json_object_get(expected, "offset"));
    for (size_t i = 0; same && i < t->n_dims; i++)
        same = (json_int_t)t->dims[i] == json_integer_value(json_array_get(dims, i));
    return same && lst__gguf_find_tensor(g, t->name) == t;
}

/* A key's value against the JSON's, for the types that have a getter. */
static bool same_key(const lst_gguf *g, const char *name, const json_t *entry)
{
    lst_error err;
    const json_t *value = json_object_get(entry, "value");
    const char *text = NULL;
    size_t n = 0;
    double real = 0;
    if (json_is_string(value))
        return lst__gguf_get_text(g, name, &text, &n, &err) == LST_OK && n == json_string_length(value) &&
               memcmp(text, json_string_value(value), n) == 0;
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        return lst__gguf_get_size(g, name, &n, &err) == LST_OK && (json_int_t)n == json_integer_value(value);
    if (json_is_real(value))
        return lst__gguf_get_real(g, name, &real, &err) == LST_OK && (float)real == (float)json_real_value(value);
    return lst__gguf_find_key(g, name) != NULL;
}

/* ---- tokens ---- */

static bool same_ids(data_tokenizer *t, const json_t *text, lst_error *err)
{
    data_ids ids = {0};
    const json_t *string = json_object_get(text, "text"), *expected = json_object_get(text, "ids");
    bool same =
        data_tokenizer_encode(t, json_string_value(string), json_string_length(string), false, &ids, err) == LST_OK &&
        ids.n == json_array_size(expected);
    for (size_t i = 0; same && i < ids.n; i++)
        same = ids.ids[i] == json_integer_value(json_array_get(expected, i));
    lst__free(ids.ids);
    return same;
}

static void check_tokens(const char *path, const char *name, const json_t *texts)
{
    lst_error err = {0};
    data_tokenizer *t;
    if (train_gguf_tokenizer(&t, path, &err) != LST_OK) {
        report(false, name, err.message);
        return;
    }
    bool same = true;
    for (size_t i = 0; i < json_array_size(texts); i++)
        same = same_ids(t, json_array_get(texts, i), &err) && same;
    report(same, name, "tokens");
    data_tokenizer_free(t);
}

/* ---- logits ---- */

/* The worst difference over the largest logit. */
static double logits_error(model *m, const lst_st *expected, lst_error *err)
{
    const lst_st_tensor *ids = lst__st_find(expected, "input_ids"), *want = lst__st_find(expected, "logits");
    double worst = 0, largest = 0;
    for (size_t i = 0; i < ids->n_elems; i++) {
        int64_t id;
        memcpy(&id, ids->data + 8 * i, 8);
        model_ids(m, 0)[i] = (int32_t)id;
        model_targets(m, 0)[i] = MODEL_IGNORE;
    }
    float *got = malloc(want->n_bytes);
    if (!got || model_logits(m, got, err) != LST_OK)
        worst = INFINITY;
    for (size_t i = 0; worst < INFINITY && i < want->n_elems; i++) {
        float w;
        memcpy(&w, want->data + 4 * i, 4);
        double d = fabs((double)got[i] - (double)w);
        largest = fmax(largest, fabs((double)w));
        worst = d > worst || isnan(d) ? d : worst;
    }
    free(got);
    return isnan(worst) ? INFINITY : worst / largest;
}

static double run_file(const char *path, const lst_st *expected, lst_error *err)
{
    static lst_ledger ledger;
    lst_arch arch;
    lst_plan *plan = NULL;
    lst_pool *pool = NULL;
    lst_arena arena = {0};
    model *m = NULL;
    double error = INFINITY;
    lst_recipe recipe;
    lst_recipe_default(&recipe);
    recipe.batch = 1;
    recipe.seq = lst__st_find(expected, "input_ids")->n_elems;
    recipe.weights = LST_WEIGHT_F32;
    recipe.threads = 1;
    lst_ledger_init(&ledger);
    if (lst__arch_open_gguf(path, &arch, err) == LST_OK && lst_plan_create(&plan, &arch, &recipe, err) == LST_OK &&
        lst_pool_create(&pool, 1, err) == LST_OK &&
        lst__arena_reserve(&arena, (size_t)plan->arena_bytes, pool, err) == LST_OK &&
        model_create(&m, plan, arena.base, &ledger, pool, err) == LST_OK &&
        train_gguf_load(path, plan, m, err) == LST_OK)
        error = logits_error(m, expected, err);
    model_destroy(m);
    if (arena.base)
        lst__arena_release(&arena);
    lst_pool_destroy(pool);
    lst_plan_destroy(plan);
    return error;
}

static void check_model(const char *folder, const char *name, const json_t *root)
{
    lst_error err = {0};
    lst_st *expected = NULL;
    char said[1200];
    char *path = lst__path_join(folder, json_string_value(json_object_get(root, "gguf")));
    char *other = lst__path_join(folder, json_string_value(json_object_get(root, "file")));
    if (path && json_object_get(root, "tokens"))
        check_tokens(path, name, json_object_get(root, "tokens"));
    if (path && other && lst__st_open(&expected, other, &err) == LST_OK) {
        const double tolerance = json_number_value(json_object_get(json_object_get(root, "tolerance"), "logits"));
        const double error = run_file(path, expected, &err);
        snprintf(said, sizeof said, "logits %.1e of %.1e %s", error, tolerance, err.message);
        report(error <= tolerance, name, said);
    } else {
        report(false, name, err.message);
    }
    lst__st_close(expected);
    lst__free(path);
    lst__free(other);
}

/* ---- */

static void check_file(const char *folder, const char *name, json_t *root)
{
    lst_gguf g;
    lst_error err = {0};
    char *path = lst__path_join(folder, json_string_value(json_object_get(root, "gguf")));
    if (!path || lst__gguf_open(path, &g, &err) != LST_OK) {
        report(false, name, err.message);
        lst__free(path);
        return;
    }
    const json_t *tensors = json_object_get(root, "tensors");
    bool same = g.n_tensors == json_array_size(tensors);
    for (size_t i = 0; same && i < g.n_tensors; i++)
        same = same_tensor(&g, i, json_array_get(tensors, i));
    report(same, name, "tensors");
    const char *key = NULL;
    json_t *entry = NULL;
    json_t *metadata = json_object_get(root, "metadata");
    bool keys = true;
    json_object_foreach(metadata, key, entry) keys = keys && same_key(&g, key, entry);
    report(keys, name, "keys");
    lst__gguf_close(&g);
    lst__free(path);
}

static void check_bad(const char *folder, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "file"));
    const char *expect = json_string_value(json_object_get(entry, "expect"));
    if (!name || !expect || strncmp(name, "gguf_", 5) != 0)
        return;
    lst_gguf g;
    lst_error err = {.message = "accepted"};
    char *path = lst__path_join(folder, name);
    const lst_status status = path ? lst__gguf_open(path, &g, &err) : LST_ERR_MEMORY;
    if (status == LST_OK)
        lst__gguf_close(&g);
    const bool right = strcmp(expect, "either") == 0 || (strcmp(expect, "accept") == 0) == (status == LST_OK);
    const bool named = status == LST_OK || strstr(err.message, name) != NULL;
    report(right && named, name, err.message);
    lst__free(path);
}

static void check_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *file = NULL;
    while (dir && (file = readdir(dir))) {
        const size_t n = strlen(file->d_name);
        if (n < 5 || strcmp(file->d_name + n - 5, ".json") != 0)
            continue;
        char *path = lst__path_join(folder, file->d_name);
        json_t *root = path ? json_load_file(path, 0, NULL) : NULL;
        const char *kind = json_string_value(json_object_get(root, "kind"));
        if (kind && strcmp(kind, "gguf") == 0)
            check_file(folder, file->d_name, root);
        if (kind && strcmp(kind, "gguf") == 0)
            check_model(folder, file->d_name, root);
        json_decref(root);
        lst__free(path);
    }
    if (dir)
        closedir(dir);
}

static void check_bad_folder(const char *folder)
{
    char *path = lst__path_join(folder, "bad.json");
    json_t *root = path ? json_load_file(path, 0, NULL) : NULL;
    const json_t *cases = json_object_get(root, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_bad(folder, json_array_get(cases, i));
    json_decref(root);
    lst__free(path);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: golden_gguf FOLDER [BAD_FOLDER]\n");
        return 2;
    }
    check_folder(argv[1]);
    char *inside = lst__path_join(argv[1], "bad"), *beside = lst__path_join(argv[1], "../bad");
    check_bad_folder(argc > 2 ? argv[2] : inside && lst__is_dir(inside) ? inside : beside ? beside : argv[1]);
    lst__free(inside);
    lst__free(beside);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || passed == 0;
}
