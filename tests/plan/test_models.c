/* SPDX-License-Identifier: MIT
 *
 * Exact parameter counts of public models: every row of models.csv, by built-in name.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/csv.h"
#include "leanstep/models.h"

#define MODELS_CSV LEANSTEP_SOURCE_DIR "/tests/plan/data/models.csv"

static void all_45_totals_are_exact(void **state)
{
    (void)state;
    lst_csv csv;
    lst_error err;
    assert_int_equal(lst__csv_read(MODELS_CSV, (size_t)1 << 20, &csv, &err), LST_OK);
    assert_int_equal(csv.n_rows, 45);
    for (size_t row = 0; row < csv.n_rows; row++) {
        lst_shape shape;
        uint64_t total = 0, tensors = 0;
        const char *name = lst__csv_get(&csv, row, "name");
        if (lst_shape_by_name(name, &shape, &err) != LST_OK)
            fail_msg("%s", err.message);
        assert_int_equal(lst__csv_get_u64(&csv, row, "params_exact", &total, &err), LST_OK);
        if (lst_shape_params(&shape) != total)
            fail_msg("%s: %" PRIu64 " parameters counted, %" PRIu64 " expected", name, lst_shape_params(&shape), total);
        if (lst__csv_get_u64(&csv, row, "n_tensors_logical", &tensors, &err) == LST_OK &&
            lst_shape_tensors(&shape) != tensors)
            fail_msg("%s: %zu tensors counted, %" PRIu64 " expected", name, lst_shape_tensors(&shape), tensors);
    }
    lst__csv_free(&csv);
}

static void names_are_found_with_owner_and_in_any_case(void **state)
{
    (void)state;
    lst_shape shape;
    lst_error err;
    assert_int_equal(lst_shape_by_name("meta-llama/llama-3.1-8b", &shape, &err), LST_OK);
    assert_int_equal(lst_shape_params(&shape), 8030261248u);
    assert_int_equal(lst_shape_by_name("no-such-model", &shape, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "no-such-model"));
}

static void an_arch_counts_as_its_shape(void **state)
{
    (void)state;
    for (int family = 0; family < LST_N_FAMILIES; family++) {
        lst_arch arch;
        lst_shape shape;
        lst_arch_default((lst_family)family, &arch);
        lst_shape_from_arch(&arch, &shape);
        assert_int_equal(lst_shape_params(&shape), lst_arch_params(&arch));
        assert_int_equal(lst_shape_tensors(&shape), lst_arch_tensor_count(&arch));
    }
}

/* A row of models.csv as its config.json would have it, in the family's own words. */
static void write_config(const lst_csv *csv, size_t row, char *out, size_t n)
{
    const char *class = lst__csv_get(csv, row, "hf_class"), *h = lst__csv_get(csv, row, "hidden_size");
    const char *i = lst__csv_get(csv, row, "intermediate_size"), *l = lst__csv_get(csv, row, "num_hidden_layers");
    const char *a = lst__csv_get(csv, row, "num_attention_heads"), *v = lst__csv_get(csv, row, "vocab_size");
    const char *g = lst__csv_get(csv, row, "num_key_value_heads"), *d = lst__csv_get(csv, row, "head_dim");
    const char *other = lst__csv_get(csv, row, "other_config"), *p = lst__csv_get(csv, row, "max_position_embeddings");
    const char *tied = strcmp(lst__csv_get(csv, row, "tied_embeddings"), "1") == 0 ? "true" : "false";
    static const struct {
        const char *class, *type;
    } types[] = {{"GPT2LMHeadModel", "gpt2"},
                 {"Qwen2ForCausalLM", "qwen2"},
                 {"LlamaForCausalLM", "llama"},
                 {"MistralForCausalLM", "mistral"},
                 {"MixtralForCausalLM", "mixtral"},
                 {"GemmaForCausalLM", "gemma"},
                 {"Gemma2ForCausalLM", "gemma2"},
                 {"Gemma3ForCausalLM", "gemma3_text"},
                 {"PhiForCausalLM", "phi"},
                 {"Phi3ForCausalLM", "phi3"},
                 {"OPTForCausalLM", "opt"},
                 {"GPTNeoXForCausalLM", "gpt_neox"},
                 {"BertModel", "bert"},
                 {"T5ForConditionalGeneration", "t5"},
                 {"DeepseekV2ForCausalLM", "deepseek_v2"},
                 {"Qwen3ForCausalLM", "qwen3"}};
    const char *type = "?";
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        if (strcmp(types[t].class, class) == 0)
            type = types[t].type;
    }
    char rest[400] = "";
    if (other[0]) /* {"key": 1} -> , "key": 1 */
        snprintf(rest, sizeof rest, ", %.*s", (int)strlen(other) - 2, other + 1);
    if (strcmp(type, "gpt2") == 0)
        snprintf(out, n,
                 "{\"model_type\": \"gpt2\", \"n_embd\": %s, \"n_inner\": null, \"n_layer\": %s, \"n_head\": %s, "
                 "\"vocab_size\": %s, \"n_positions\": %s}",
                 h, l, a, v, p);
    else if (strcmp(type, "t5") == 0)
        snprintf(out, n,
                 "{\"model_type\": \"t5\", \"d_model\": %s, \"d_ff\": %s, \"num_layers\": %s, \"num_heads\": %s, "
                 "\"d_kv\": %s, \"vocab_size\": %s%s}",
                 h, i, l, a, d, v, rest);
    else
        snprintf(out, n,
                 "{\"model_type\": \"%s\", \"hidden_size\": %s, \"%s\": %s, \"num_hidden_layers\": %s, "
                 "\"num_attention_heads\": %s, \"num_key_value_heads\": %s, \"head_dim\": %s, \"vocab_size\": %s, "
                 "\"max_position_embeddings\": %s, \"tie_word_embeddings\": %s%s%s%s}",
                 type, h, strcmp(type, "opt") == 0 ? "ffn_dim" : "intermediate_size", i, l, a, g[0] ? g : "null",
                 d[0] ? d : "null", v, p[0] ? p : "null", tied, rest,
                 strcmp(type, "opt") == 0 && strcmp(h, "1024") == 0 ? ", \"do_layer_norm_before\": false" : "",
                 strcmp(type, "mixtral") == 0       ? ", \"num_local_experts\": 8, \"num_experts_per_tok\": 2"
                 : strcmp(type, "deepseek_v2") == 0 ? ", \"n_routed_experts\": 64, \"q_lora_rank\": null"
                                                    : "");
}

static void all_45_configs_give_the_total(void **state)
{
    (void)state;
    lst_csv csv;
    lst_error err;
    assert_int_equal(lst__csv_read(MODELS_CSV, (size_t)1 << 20, &csv, &err), LST_OK);
    for (size_t row = 0; row < csv.n_rows; row++) {
        char text[2000];
        lst_shape shape;
        uint64_t total = 0;
        write_config(&csv, row, text, sizeof text);
        if (lst_shape_from_config(text, strlen(text), lst__csv_get(&csv, row, "name"), &shape, &err) != LST_OK)
            fail_msg("%s: %s", err.message, text);
        assert_int_equal(lst__csv_get_u64(&csv, row, "params_exact", &total, &err), LST_OK);
        if (lst_shape_params(&shape) != total)
            fail_msg("%s: %" PRIu64 " parameters counted, %" PRIu64 " expected: %s", lst__csv_get(&csv, row, "name"),
                     lst_shape_params(&shape), total, text);
    }
    lst__csv_free(&csv);
}

static lst_status parse(const char *text, lst_shape *shape, lst_error *err)
{
    return lst_shape_from_config(text, strlen(text), "test", shape, err);
}

/* What a class assumes where its config is silent. */
static void silent_keys_mean_what_the_class_means(void **state)
{
    (void)state;
    lst_shape s;
    lst_error err;
#define SIZES                                                                                                          \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "           \
    "\"vocab_size\": 100"
    assert_int_equal(parse("{\"model_type\": \"llama\", " SIZES "}", &s, &err), LST_OK);
    assert_false(s.tied);
    assert_int_equal(s.kv_heads, 4);
    assert_int_equal(s.head_dim, 16);
    assert_int_equal(
        parse("{\"model_type\": \"llama\", \"num_key_value_heads\": null, \"head_dim\": null, " SIZES "}", &s, &err),
        LST_OK);
    assert_int_equal(s.head_dim, 16);
    assert_int_equal(parse("{\"model_type\": \"gemma\", " SIZES "}", &s, &err), LST_OK);
    assert_true(s.tied);
    assert_int_equal(s.head_dim, 256);
    assert_int_equal(parse("{\"model_type\": \"qwen3\", " SIZES "}", &s, &err), LST_OK);
    assert_int_equal(s.head_dim, 128);
    assert_int_equal(parse("{\"model_type\": \"qwen2\", " SIZES "}", &s, &err), LST_OK);
    assert_true(s.qkv_bias && !s.o_bias);
    assert_int_equal(parse("{\"model_type\": \"gpt2\"}", &s, &err), LST_OK);
    assert_int_equal(lst_shape_params(&s), 124439808);
}

static void what_is_not_understood_is_refused(void **state)
{
    (void)state;
    lst_shape s;
    lst_error err;
    assert_int_equal(parse("{\"model_type\": \"mamba\", " SIZES "}", &s, &err), LST_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "mamba"));
    assert_int_equal(parse("{\"model_type\": \"llava\", \"text_config\": {" SIZES "}}", &s, &err), LST_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "text_config"));
    assert_int_equal(parse("{\"model_type\": \"llama\", \"hidden_size\": 64}", &s, &err), LST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "intermediate_size"));
    assert_int_equal(parse("{\"model_type\": \"llama\", \"num_key_value_heads\": 0, " SIZES "}", &s, &err),
                     LST_ERR_FORMAT);
    assert_int_equal(parse("[]", &s, &err), LST_ERR_FORMAT);
    assert_int_equal(lst_shape_open(LEANSTEP_SOURCE_DIR "/tests/golden/bad/gguf_bad_magic.gguf", &s, &err),
                     LST_ERR_FORMAT);
}

static void gguf_files_are_counted(void **state)
{
    (void)state;
    static const char *const names[] = {"llama.f32", "llama.q4_0",   "qwen2.f16",       "qwen3.q8_0",
                                        "gpt2.f16",  "smollm.mixed", "llama_rope3.f32", "llama_bias.f32"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[300];
        lst_shape s;
        lst_error err;
        snprintf(path, sizeof path, LEANSTEP_SOURCE_DIR "/tests/golden/gguf/%s.gguf", names[i]);
        if (lst_shape_open(path, &s, &err) != LST_OK)
            fail_msg("%s", err.message);
        assert_true(lst_shape_params(&s) > 0);
    }
}

/* ---- a header held against its config: sparse files, of which only the header is written ---- */

typedef struct header {
    char *text;
    size_t n, capacity;
    uint64_t offset; /* of the next tensor's bytes */
    size_t count;
} header;

static void add_entry(header *h, const char *name, const char *dims, uint64_t elems)
{
    if (h->n + 300 > h->capacity) {
        h->capacity = 2 * h->capacity + 1000;
        h->text = realloc(h->text, h->capacity);
        assert_non_null(h->text);
    }
    h->n += (size_t)snprintf(h->text + h->n, 300,
                             "%s\"%s\": {\"dtype\": \"F16\", \"shape\": [%s], \"data_offsets\": [%" PRIu64 ", %" PRIu64
                             "]}",
                             h->count++ ? ", " : "{", name, dims, h->offset, h->offset + 2 * elems);
    h->offset += 2 * elems;
}

static void add_parameter(void *user, const lst_shape_tensor *t)
{
    header *h = user;
    char name[64], dims[64];
    snprintf(name, sizeof name, "tensor.%zu.weight", h->count);
    if (t->cols)
        snprintf(dims, sizeof dims, "%zu, %zu", t->rows, t->cols);
    else
        snprintf(dims, sizeof dims, "%zu", t->rows);
    add_entry(h, name, dims, lst_shape_tensor_elems(t));
}

/* FOLDER/config.json and FOLDER/model.safetensors of gpt2, with further entries already in h. */
static void write_model(const char *folder, header *h)
{
    char path[200];
    lst_shape shape;
    lst_error err;
    assert_int_equal(lst_shape_by_name("gpt2", &shape, &err), LST_OK);
    lst_shape_each(&shape, add_parameter, h);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"model_type\": \"gpt2\"}", f);
    fclose(f);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    const uint64_t length = h->n + 1;
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> (8 * i) & 255), f);
    fprintf(f, "%s}", h->text);
    fflush(f);
    assert_int_equal(ftruncate(fileno(f), (off_t)(8 + length + h->offset)), 0);
    fclose(f);
}

static void remove_model(const char *folder, header *h)
{
    char path[200];
    snprintf(path, sizeof path, "%s/config.json", folder);
    remove(path);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    remove(path);
    rmdir(folder);
    free(h->text);
    *h = (header){0};
}

static void masks_are_no_parameters_and_a_stray_head_is_named(void **state)
{
    (void)state;
    char folder[] = "/tmp/leanstep-models-XXXXXX", name[64];
    lst_shape s;
    lst_error err;
    header h = {0};
    assert_non_null(mkdtemp(folder));
    for (int layer = 0; layer < 12; layer++) { /* gpt2's file: 137,022,720 elements, 124,439,808 of them parameters */
        snprintf(name, sizeof name, "h.%d.attn.bias", layer);
        add_entry(&h, name, "1, 1, 1024, 1024", 1024 * 1024);
    }
    write_model(folder, &h);
    assert_int_equal(h.offset / 2, 137022720u);
    if (lst_shape_open(folder, &s, &err) != LST_OK)
        fail_msg("%s", err.message);
    assert_int_equal(lst_shape_params(&s), 124439808);
    remove_model(folder, &h);

    assert_int_equal(mkdir(folder, 0700), 0);
    add_entry(&h, "extra.weight", "50257, 800", (uint64_t)50257 * 800);
    write_model(folder, &h);
    assert_int_equal(lst_shape_open(folder, &s, &err), LST_ERR_STATE);
    assert_non_null(strstr(err.message, "extra.weight"));
    assert_non_null(strstr(err.message, "124439808"));
    assert_non_null(strstr(err.message, "164645408"));
    remove_model(folder, &h);

    assert_int_equal(mkdir(folder, 0700), 0);
    add_entry(&h, "model.layers.0.q_proj.qweight", "10", 10);
    write_model(folder, &h);
    assert_int_equal(lst_shape_open(folder, &s, &err), LST_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "packed"));
    remove_model(folder, &h);
}

/* Bytes this process has read by calls, and pages it has touched, since it started. */
static void reads_so_far(uint64_t *bytes, long *pages)
{
    struct rusage usage;
    FILE *f = fopen("/proc/self/io", "r");
    *bytes = 0;
    if (f) {
        if (fscanf(f, "rchar: %" SCNu64, bytes) != 1)
            *bytes = 0;
        fclose(f);
    }
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    *pages = usage.ru_minflt + usage.ru_majflt;
}

/* 250 MB of weights in 60,000 pages, of which the header and config.json are all that is read. */
static void only_headers_are_read(void **state)
{
    (void)state;
    char folder[] = "/tmp/leanstep-models-XXXXXX";
    lst_shape s;
    lst_error err;
    header h = {0};
    uint64_t bytes[2];
    long pages[2];
    assert_non_null(mkdtemp(folder));
    write_model(folder, &h);
    reads_so_far(&bytes[0], &pages[0]);
    assert_int_equal(lst_shape_open(folder, &s, &err), LST_OK);
    reads_so_far(&bytes[1], &pages[1]);
    assert_int_equal(lst_shape_params(&s), 124439808);
    remove_model(folder, &h);
    assert_true(bytes[1] - bytes[0] < 1 << 20);
    assert_true(pages[1] - pages[0] < 1000); /* the kernel maps at most 16 pages a fault: all would be 3,800 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_45_totals_are_exact),
        cmocka_unit_test(names_are_found_with_owner_and_in_any_case),
        cmocka_unit_test(an_arch_counts_as_its_shape),
        cmocka_unit_test(all_45_configs_give_the_total),
        cmocka_unit_test(silent_keys_mean_what_the_class_means),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(gguf_files_are_counted),
        cmocka_unit_test(masks_are_no_parameters_and_a_stray_head_is_named),
        cmocka_unit_test(only_headers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
