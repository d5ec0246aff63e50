/* SPDX-License-Identifier: MIT
 *
 * LoRA adapters merged into their models: PEFT's own, against the merged weights computed in float64.
 */
#include "train/fixture.h"

#include <dirent.h>
#include <math.h>

#include "ckpt/source.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "train/hf_folder.h"
#include "train/merge.h"

#define MODELS LEANSTEP_SOURCE_DIR "/tests/golden/models/"
#define MERGED "merged."

static train_merge job_of(const char *base, const char *adapter, const char *out)
{
    return (train_merge){base, adapter, out, LST_N_CODECS, TRAIN_HF_SHARD_BYTES};
}

static float value_at(const lst_st_tensor *t, size_t i)
{
    float value;
    lst__source_tile(t, i, 1, &value);
    return value;
}

static void equal_tensors(const lst_st_tensor *a, const lst_st_tensor *b)
{
    assert_int_equal(a->n_elems, b->n_elems);
    for (size_t i = 0; i < a->n_elems; i++)
        assert_true(value_at(a, i) == value_at(b, i));
}

/* Every tensor is the expected one where the adapter changes it, and the base's where it does not. */
static void compare(const char *out, const char *base, const char *expected)
{
    lst_st_set *made, *from;
    lst_st *want;
    size_t n_merged = 0;
    char name[160];
    OK(lst__st_set_open(&made, out, err));
    OK(lst__st_set_open(&from, base, err));
    OK(lst__st_open(&want, expected, err));
    for (size_t i = 0; i < made->n_tensors; i++) {
        const lst_st_tensor *t = made->tensors[i], *other;
        snprintf(name, sizeof name, MERGED "%s", t->name);
        other = lst__st_find(want, name);
        n_merged += other != NULL;
        if (!other)
            OK(lst__source_find(from, base, t->name, t->n_dims, t->dims, &other, err));
        equal_tensors(t, other);
    }
    size_t n_wanted = 0;
    for (size_t i = 0; i < want->n_tensors; i++)
        n_wanted += strncmp(want->tensors[i].name, MERGED, strlen(MERGED)) == 0;
    assert_int_equal(n_merged, n_wanted);
    assert_true(n_merged > 0);
    lst__st_set_close(made);
    lst__st_set_close(from);
    lst__st_close(want);
}

static void merges_as_float64_does(void **state)
{
    const temp_folder *folder = *state;
    DIR *dir = opendir(MODELS);
    size_t n = 0;
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[600], adapter[400], base[600];
        json_t *json;
        const char *kind, *of;
        snprintf(adapter, sizeof adapter, MODELS "%s", entry->d_name);
        snprintf(path, sizeof path, "%s/expected.json", adapter);
        if (entry->d_name[0] == '.' || !lst__is_file(path))
            continue;
        OK(lst__json_load(&json, path, 1 << 20, err));
        OK(lst__json_get_string(json, path, "kind", &kind, err));
        if (strcmp(kind, "lora") == 0) {
            train_merged done;
            OK(lst__json_get_string(json, path, "base", &of, err));
            snprintf(base, sizeof base, MODELS "%s", of);
            train_merge job = job_of(base, adapter, temp_path(folder, entry->d_name));
            OK(train_merge_adapter(&job, &done, err));
            snprintf(path, sizeof path, "%s/expected.safetensors", adapter);
            compare(job.out, base, path);
            double scale;
            OK(lst__json_get_real(json, path, "scale", &scale, err));
            assert_true(fabs(scale - done.scale) < 1e-12);
            n++;
        }
        json_decref(json);
    }
    closedir(dir);
    assert_true(n > 0);
}

/* ---- refusals: nothing is written ---- */

static void refused(const temp_folder *folder, const char *base, const char *adapter, const char *message)
{
    lst_error err;
    train_merged done;
    train_merge job = job_of(base, adapter, temp_path(folder, "never"));
    assert_int_not_equal(train_merge_adapter(&job, &done, &err), LST_OK);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" does not say \"%s\"", err.message, message);
    assert_false(lst__is_dir(job.out));
}

/* A: a row of 1 and a row of 2^-32; B: 2^-9 everywhere. With scale 2 each value of the delta is 2^-8 + 2^-40. */
static lst_status numbers(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                          lst_error *err)
{
    static float value;
    const lst_st_content *content = context;
    const size_t per_row = content->entries[0].dims[1];
    (void)err;
    value = entry == 1 ? 0x1p-9f : offset / sizeof value < per_row ? 1.0f : 0x1p-32f;
    *data = &value;
    *n_bytes = sizeof value;
    return LST_OK;
}

static void write_adapter(const temp_folder *folder, const char *config, const char *module, size_t in, size_t out)
{
    char a[120], b[120];
    const size_t a_dims[] = {2, in}, b_dims[] = {out, 2};
    snprintf(a, sizeof a, "base_model.model.%s.lora_A.weight", module);
    snprintf(b, sizeof b, "base_model.model.%s.lora_B.weight", module);
    const lst_st_entry entries[] = {{a, LST_ST_F32, 2, a_dims}, {b, LST_ST_F32, 2, b_dims}};
    lst_st_content content = {.entries = entries, .n_entries = 2, .source = numbers};
    content.context = &content;
    temp_write(folder, "adapter/adapter_config.json", config);
    OK(lst__st_write(temp_path(folder, "adapter/adapter_model.safetensors"), &content, err));
}

#define PLAIN "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4"

static lst_status ones(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err)
{
    (void)context, (void)tensor, (void)first, (void)err;
    for (size_t i = 0; i < n; i++)
        out[i] = 1;
    return LST_OK;
}

/* 1 + 2^-8 is half-way between two bf16 numbers and rounds to the even one, 1; the 2^-40 above it, which float32 would
 * lose, decides for the other. */
static void sixteen_bits_are_rounded_once(void **state)
{
    const temp_folder *folder = *state;
    lst_arch arch = small_arch();
    train_hf_weights weights = {&arch, LST_CODEC_F32, TRAIN_HF_SHARD_BYTES, ones, NULL};
    char *text, base[128], adapter[128], out[128];
    train_merged done;
    lst_st_set *set;
    snprintf(base, sizeof base, "%s/base", folder->path);
    snprintf(adapter, sizeof adapter, "%s/adapter", folder->path);
    snprintf(out, sizeof out, "%s/out", folder->path);
    OK(lst__make_dirs(base, err));
    OK(train_hf_write_weights(base, &weights, err));
    OK(lst_arch_to_config(&arch, "float32", &text, err));
    temp_write(folder, "base/config.json", text);
    free(text);
    write_adapter(folder, PLAIN "}", "model.layers.1.mlp.up_proj", arch.hidden, arch.ffn);
    train_merge job = job_of(base, adapter, out);
    job.codec = LST_CODEC_BF16;
    OK(train_merge_adapter(&job, &done, err));
    OK(lst__st_set_open(&set, out, err));
    const lst_st_tensor *t = lst__st_set_find(set, "model.layers.1.mlp.up_proj.weight");
    assert_int_equal(t->dtype, LST_ST_BF16);
    for (size_t i = 0; i < t->n_elems; i++)
        assert_true(value_at(t, i) == 1 + 0x1p-7f);
    assert_true(value_at(lst__st_set_find(set, "model.layers.0.mlp.up_proj.weight"), 0) == 1);
    lst__st_set_close(set);
}

static void other_kinds_are_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {PLAIN ", \"use_dora\": true}", "\"use_dora\" is set"},
        {PLAIN ", \"rank_pattern\": {\"q_proj\": 8}}", "\"rank_pattern\" is set"},
        {PLAIN ", \"modules_to_save\": [\"lm_head\"]}", "\"modules_to_save\" is set"},
        {PLAIN ", \"bias\": \"all\"}", "bias is \"all\""},
        {PLAIN ", \"init_lora_weights\": \"pissa\"}", "init_lora_weights"},
        {"{\"peft_type\": \"IA3\", \"r\": 2, \"lora_alpha\": 4}", "peft_type is \"IA3\""},
        {"{\"peft_type\": \"LORA\", \"r\": 0, \"lora_alpha\": 4}", "r is 0"},
        {"{\"peft_type\": \"LORA\", \"lora_alpha\": 4}", "\"r\""},
        {"{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 4}", "has the shape"},
        {"[]", "expected an object"},
    };
    const temp_folder *folder = *state;
    const char *module = "model.layers.0.self_attn.q_proj";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_adapter(folder, cases[i][0], module, 32, 32);
        refused(folder, MODELS "llama_gqa", temp_path(folder, "adapter"), cases[i][1]);
    }
}

static void other_tensors_are_refused_by_name(void **state)
{
    const temp_folder *folder = *state;
    char adapter[128];
    snprintf(adapter, sizeof adapter, "%s/adapter", folder->path);
    write_adapter(folder, PLAIN "}", "lm_head", 32, 67);
    refused(folder, MODELS "llama_tied", adapter, "lm_head, which in this model is the embedding too");
    write_adapter(folder, PLAIN "}", "model.layers.9.self_attn.q_proj", 32, 32);
    refused(folder, MODELS "llama_gqa", adapter, "model.layers.9.self_attn.q_proj.lora_A.weight");
    write_adapter(folder, PLAIN "}", "model.embed_tokens", 32, 67);
    refused(folder, MODELS "llama_gqa", adapter, "model.embed_tokens.lora_A.weight");
    refused(folder, MODELS "llama_gqa", temp_path(folder, "nowhere"), "adapter_config.json");
    refused(folder, temp_path(folder, "nowhere"), adapter, "config.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(merges_as_float64_does),
        TEST(sixteen_bits_are_rounded_once),
        TEST(other_kinds_are_refused_by_name),
        TEST(other_tensors_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
