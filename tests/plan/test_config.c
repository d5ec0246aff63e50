/* SPDX-License-Identifier: MIT
 *
 * config.json in and out: every golden model loads with the tensors its weights file has; every hostile config does
 * what bad.json says; what is written reads back the same.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/files.h"
#include "leanstep/arch.h"

#define GOLDEN LEANSTEP_SOURCE_DIR "/tests/golden/"

static lst_status load(const char *path, lst_arch *out, lst_error *err)
{
    char *text;
    size_t n;
    lst_status status = lst__file_read(path, 1 << 20, &text, &n, err);
    if (status != LST_OK)
        return status;
    status = lst_arch_from_config(text, n, path, out, err);
    lst__free(text);
    return status;
}

static lst_status parse(const char *text, lst_arch *out, lst_error *err)
{
    return lst_arch_from_config(text, strlen(text), "test.json", out, err);
}

/* The JSON header of a safetensors file, or NULL. */
static json_t *read_header(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint64_t n = 0;
    if (!file)
        return NULL;
    assert_int_equal(fread(&n, 1, 8, file), 8);
    assert_true(n < 1 << 20);
    char *text = malloc(n);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, n, file), n);
    fclose(file);
    json_t *header = json_loadb(text, n, 0, NULL);
    free(text);
    assert_non_null(header);
    return header;
}

/* Hub files of GPT-2 leave "transformer." out. */
static const json_t *find_entry(const json_t *header, const char *name)
{
    const json_t *entry = json_object_get(header, name);
    return entry || strncmp(name, "transformer.", 12) != 0 ? entry : json_object_get(header, name + 12);
}

static void check_tensors(const lst_arch *arch, const json_t *header, const char *folder)
{
    uint64_t total = 0;
    for (size_t i = 0; i < lst_arch_tensor_count(arch); i++) {
        lst_arch_tensor t;
        lst_arch_tensor_at(arch, i, &t);
        const json_t *entry = find_entry(header, t.name);
        if (!entry)
            fail_msg("%s: no tensor %s in the file", folder, t.name);
        const json_t *shape = json_object_get(entry, "shape");
        assert_int_equal(json_array_size(shape), t.n_dims);
        for (size_t d = 0; d < t.n_dims; d++)
            assert_int_equal(json_integer_value(json_array_get(shape, d)), t.dims[d]);
        total += t.n_elems;
        assert_int_equal(lst_arch_tensor_find(arch, t.role, t.layer), i);
    }
    assert_int_equal(total, lst_arch_params(arch));
}

static void golden_models_load(void **state)
{
    (void)state;
    DIR *dir = opendir(GOLDEN "models");
    assert_non_null(dir);
    int n_loaded = 0, n_compared = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[600];
        lst_arch arch;
        lst_error err;
        snprintf(path, sizeof path, GOLDEN "models/%s/config.json", entry->d_name);
        if (!lst__is_file(path))
            continue;
        if (load(path, &arch, &err) != LST_OK)
            fail_msg("%s", err.message);
        n_loaded++;
        snprintf(path, sizeof path, GOLDEN "models/%s/model.safetensors", entry->d_name);
        json_t *header = read_header(path);
        if (header) {
            check_tensors(&arch, header, entry->d_name);
            n_compared++;
        }
        json_decref(header);
    }
    closedir(dir);
    assert_true(n_loaded >= 20);
    assert_true(n_compared >= 19);
}

static void hostile_configs(void **state)
{
    (void)state;
    int n = 0;
    json_t *bad = json_load_file(GOLDEN "bad/bad.json", 0, NULL);
    assert_non_null(bad);
    const json_t *cases = json_object_get(bad, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const char *file = json_string_value(json_object_get(c, "file")),
                   *expect = json_string_value(json_object_get(c, "expect"));
        if (strncmp(file, "config_", 7) != 0)
            continue;
        char path[600];
        lst_arch arch;
        lst_error err = {.message = ""};
        snprintf(path, sizeof path, GOLDEN "bad/%s", file);
        lst_status status = load(path, &arch, &err);
        if (!strcmp(expect, "refuse") && (status == LST_OK || !strstr(err.message, file)))
            fail_msg("%s: %s, message \"%s\"", file, status == LST_OK ? "accepted" : "refused", err.message);
        if (!strcmp(expect, "accept") && status != LST_OK)
            fail_msg("%s", err.message);
        n++;
    }
    json_decref(bad);
    assert_true(n >= 20);
}

static void refuse(const char *text, const char *word)
{
    lst_arch arch;
    lst_error err = {.message = ""};
    if (parse(text, &arch, &err) == LST_OK)
        fail_msg("accepted: %s", text);
    if (!strstr(err.message, word))
        fail_msg("the message \"%s\" does not say \"%s\"", err.message, word);
}

static void accept(const char *text, lst_arch *out)
{
    lst_error err;
    if (parse(text, out, &err) != LST_OK)
        fail_msg("%s", err.message);
}

static void one_fault_one_message(void **state)
{
    (void)state;
    refuse("{\"model_type\": \"llama\", \"hiden_size\": 64}", "did you mean \"hidden_size\"");
    refuse("{\"model_type\": \"llama\", \"tie_word_embedding\": false}", "did you mean \"tie_word_embeddings\"");
    refuse("{\"model_type\": \"llama\", \"attn_logit_softcapping\": 50.0}", "attn_logit_softcapping");
    refuse("{\"model_type\": \"llama\", \"attention_dropout\": 0.1}", "attention_dropout");
    refuse("{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"]}", "LlamaForCausalLM");
    refuse("{\"model_type\": \"llama\", \"num_attention_heads\": 0}", "num_attention_heads");
    refuse("{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}}", "linear");
    refuse("{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0}}", "llama3");
    refuse("{\"model_type\": \"gpt2\", \"n_head\": 5}", "n_head");
    refuse("{\"model_type\": \"gpt2\", \"activation_function\": \"gelu\"}", "gelu_new");
    refuse("{\"model_type\": \"gpt2\", \"scale_attn_weights\": false}", "scale_attn_weights");
    refuse("{\"model_type\": \"mistral\"}", "sliding_window");
    refuse("{\"model_type\": \"mistral\", \"sliding_window\": null, \"attention_bias\": true}", "attention_bias");
    refuse("{\"vocab_size\": 64}", "model_type");
    refuse("{\"model_type\": \"llama\", \"vocab_size\": 1, \"vocab_size\": 2}", "vocab_size");
    refuse("{\"model_type\": \"qwen2\", \"layer_types\": [\"sliding_attention\"]}", "layer_types");
}

static void defaults_of_families(void **state)
{
    (void)state;
    lst_arch arch;
    accept("{\"model_type\": \"gpt2\"}", &arch);
    assert_int_equal(lst_arch_params(&arch), 124439808);
    assert_true(arch.tied);
    accept("{\"model_type\": \"llama\"}", &arch); /* Llama-2-7B */
    assert_int_equal(lst_arch_params(&arch), 6738415616);
    assert_true(arch.rope_theta == 10000 && arch.norm_eps == 1e-6);
    accept("{\"model_type\": \"llama\", \"num_attention_heads\": 16, \"head_dim\": null}", &arch);
    assert_int_equal(arch.head_dim, 256);
    assert_int_equal(arch.kv_heads, 16);
    accept(
        "{\"model_type\": \"qwen3\", \"hidden_size\": 1024, \"num_attention_heads\": 16, \"num_key_value_heads\": 8}",
        &arch);
    assert_int_equal(arch.head_dim, 128);
}

static void rotary_in_either_place(void **state)
{
    (void)state;
    lst_arch old, new;
    accept("{\"model_type\": \"llama\", \"rope_theta\": 500000, \"rope_scaling\": {\"type\": \"llama3\", \"factor\": "
           "8, \"low_freq_factor\": 1,"
           "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 32}}",
           &old);
    accept("{\"model_type\": \"llama\", \"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"llama3\", "
           "\"factor\": 8, \"low_freq_factor\": 1,"
           "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 32}}",
           &new);
    assert_true(old.rope_theta == 500000 && new.rope_theta == 500000);
    assert_true(old.rope_scaling.llama3 && new.rope_scaling.llama3);
    assert_true(old.rope_scaling.factor == 8 && new.rope_scaling.factor == 8);
    assert_int_equal(new.rope_scaling.original_positions, 32);
}

static void assert_same(const lst_arch *a, const lst_arch *b)
{
    assert_int_equal(a->family, b->family);
    assert_int_equal(lst_arch_tensor_count(a), lst_arch_tensor_count(b));
    assert_int_equal(lst_arch_params(a), lst_arch_params(b));
    assert_int_equal(a->max_positions, b->max_positions);
    assert_int_equal(a->heads, b->heads);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->kv_heads, b->kv_heads);
    assert_int_equal(a->tied, b->tied);
    assert_true(a->norm_eps == b->norm_eps && a->init_range == b->init_range);
    assert_true(a->rope_theta == b->rope_theta && a->rope_scaling.llama3 == b->rope_scaling.llama3);
    assert_true(a->rope_scaling.factor == b->rope_scaling.factor);
    assert_true(a->rope_scaling.high_freq_factor == b->rope_scaling.high_freq_factor);
}

static void round_trip(void **state)
{
    (void)state;
    DIR *dir = opendir(GOLDEN "models");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[600], *text;
        lst_arch arch, back;
        lst_error err;
        snprintf(path, sizeof path, GOLDEN "models/%s/config.json", entry->d_name);
        if (!lst__is_file(path))
            continue;
        assert_int_equal(load(path, &arch, &err), LST_OK);
        arch.norm_eps = 1.0 / 3; /* needs all 17 digits */
        assert_int_equal(lst_arch_to_config(&arch, "bfloat16", &text, &err), LST_OK);
        assert_non_null(strstr(text, "bfloat16"));
        accept(text, &back);
        assert_same(&arch, &back);
        free(text);
    }
    closedir(dir);
}

static void written_numbers_are_short(void **state)
{
    (void)state;
    char *text;
    lst_arch arch;
    lst_error err;
    accept("{\"model_type\": \"gpt2\"}", &arch);
    assert_int_equal(lst_arch_to_config(&arch, "float32", &text, &err), LST_OK);
    assert_non_null(strstr(text, "1e-5"));
    assert_null(strstr(text, "0000000001"));
    free(text);
    assert_int_equal(lst_arch_to_config(&arch, "int8", &text, &err), LST_ERR_ARGUMENT);
}

/* The next field of a CSV line, quotes removed; *at moves on. */
static char *next_field(char **at, char *out, size_t n)
{
    size_t used = 0;
    bool quoted = false;
    for (; **at && (quoted || **at != ','); (*at)++) {
        if (**at == '"')
            quoted = !quoted;
        else if (used + 1 < n)
            out[used++] = **at;
    }
    *at += **at == ',';
    out[used] = 0;
    return out;
}

enum {
    NAME,
    CLASS,
    HIDDEN,
    FFN,
    LAYERS,
    HEADS,
    KV_HEADS,
    HEAD_DIM,
    VOCAB,
    POSITIONS,
    TIED,
    QKV_BIAS,
    EXACT = 20,
    N_FIELDS
};

static bool arch_of_row(char fields[N_FIELDS][64], lst_arch *out)
{
    static const char *const classes[] = {"GPT2LMHeadModel", "LlamaForCausalLM", "MistralForCausalLM",
                                          "Qwen2ForCausalLM", "Qwen3ForCausalLM"};
    for (int f = 0; f < LST_N_FAMILIES; f++) {
        if (strcmp(fields[CLASS], classes[f]) != 0)
            continue;
        lst_arch_default((lst_family)f, out);
        size_t *const sizes[] = {&out->hidden,   &out->ffn,      &out->layers, &out->heads,
                                 &out->kv_heads, &out->head_dim, &out->vocab,  &out->max_positions};
        for (int i = 0; i < 8; i++)
            *sizes[i] = (size_t)strtoull(fields[HIDDEN + i], NULL, 10);
        out->tied = fields[TIED][0] == '1';
        return true;
    }
    return false;
}

static void totals_of_public_models(void **state)
{
    (void)state;
    char line[2000], fields[N_FIELDS][64];
    int n = 0;
    FILE *file = fopen(LEANSTEP_SOURCE_DIR "/tests/plan/data/models.csv", "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        char *at = line;
        lst_arch arch;
        lst_error err;
        for (int i = 0; i < N_FIELDS; i++)
            next_field(&at, fields[i], sizeof fields[i]);
        if (!arch_of_row(fields, &arch))
            continue;
        if (lst_arch_check(&arch, &err) != LST_OK)
            fail_msg("%s: %s", fields[NAME], err.message);
        if (lst_arch_params(&arch) != strtoull(fields[EXACT], NULL, 10))
            fail_msg("%s: %llu, expected %s", fields[NAME], (unsigned long long)lst_arch_params(&arch), fields[EXACT]);
        n++;
    }
    fclose(file);
    print_message("%d public models of the families here have their exact totals\n", n);
    assert_true(n >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_models_load),        cmocka_unit_test(hostile_configs),
        cmocka_unit_test(one_fault_one_message),     cmocka_unit_test(defaults_of_families),
        cmocka_unit_test(rotary_in_either_place),    cmocka_unit_test(round_trip),
        cmocka_unit_test(written_numbers_are_short), cmocka_unit_test(totals_of_public_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
