/* SPDX-License-Identifier: MIT
 *
 * Folders as Hugging Face has them: what is written is read back, and what is not a model's is refused.
 */
#include "train/fixture.h"

#include "base/alloc.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "leanstep/ckpt.h"
#include "train/checkpoint.h"
#include "train/export.h"
#include "train/hf_folder.h"

/* ---- weights ---- */

static lst_status part(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err)
{
    (void)err;
    model_init_part(context, tensor, first, n, out);
    return LST_OK;
}

static void write_random(const temp_folder *folder, const char *name, const lst_arch *arch, uint64_t shard_bytes)
{
    model_init init = {arch, 5, NULL};
    train_hf_weights weights = {arch, LST_CODEC_BF16, shard_bytes, part, &init};
    char *text;
    char path[64];
    OK(lst__make_dirs(temp_path(folder, name), err));
    OK(train_hf_write_weights(temp_path(folder, name), &weights, err));
    OK(lst_arch_to_config(arch, "bfloat16", &text, err));
    snprintf(path, sizeof path, "%.40s/config.json", name);
    temp_write(folder, path, text);
    free(text);
}

/* One file or shards: the same tensors, and no shard beyond the limit that needs not be. */
static void shards_hold_what_one_file_holds(void **state)
{
    const temp_folder *folder = *state;
    lst_arch arch = small_arch();
    lst_st_set *one, *many;
    write_random(folder, "one", &arch, TRAIN_HF_SHARD_BYTES);
    write_random(folder, "many", &arch, 4000); /* less than the embedding takes */
    OK(lst__st_set_open(&one, temp_path(folder, "one"), err));
    OK(lst__st_set_open(&many, temp_path(folder, "many"), err));
    assert_int_equal(one->n_shards, 1);
    assert_true(many->n_shards > 2);
    assert_int_equal(one->n_tensors, lst_arch_tensor_count(&arch));
    assert_int_equal(one->n_tensors, many->n_tensors);
    assert_int_equal(many->n_unmapped, 0);
    for (size_t i = 0; i < one->n_tensors; i++) {
        assert_string_equal(one->tensors[i]->name, many->tensors[i]->name);
        assert_int_equal(one->tensors[i]->n_bytes, many->tensors[i]->n_bytes);
        assert_memory_equal(one->tensors[i]->data, many->tensors[i]->data, one->tensors[i]->n_bytes);
    }
    lst__st_set_close(one);
    lst__st_set_close(many);
    OK(train_hf_check_weights(temp_path(folder, "many"), &arch, err));
}

/* The parts of model_init_part are what model_init_random draws: a run from the folder starts as one from the seed. */
static void a_folder_begins_as_the_seed_does(void **state)
{
    const temp_folder *folder = *state;
    train_run *seeded, *loaded;
    write_text(folder, "text");
    train_settings s = small_settings(folder);
    s.seed = 5;
    s.recipe.weights = LST_WEIGHT_BF16_SR;
    write_random(folder, "model", &s.arch, 9000);
    OK(train_run_start(&seeded, &s, temp_path(folder, "a"), err));
    snprintf(s.model, sizeof s.model, "%s", temp_path(folder, "model"));
    s.from_weights = true;
    OK(train_run_start(&loaded, &s, temp_path(folder, "b"), err));
    assert_true(state_hash(seeded) == state_hash(loaded));
    assert_true(loaded->ready_seconds >= loaded->load_seconds && loaded->load_seconds > 0);
    train_run_close(seeded);
    train_run_close(loaded);
}

/* ---- what is not the model's ---- */

typedef struct extra {
    const char *name;
    float value;
} extra;

/* The model's tensors, all zero (the names as given: with or without GPT-2's prefix), and one more. */
static void write_with(const temp_folder *folder, const lst_arch *arch, size_t skip, const extra *more)
{
    size_t n = lst_arch_tensor_count(arch);
    lst_arch_tensor *t = calloc(n, sizeof *t);
    lst_ckpt_tensor *list = calloc(n + 1, sizeof *list);
    float *zeros = calloc(1 << 16, sizeof *zeros), *other = calloc(1 << 16, sizeof *other);
    for (size_t i = 0; i < n; i++) {
        lst_arch_tensor_at(arch, i, &t[i]);
        list[i] =
            (lst_ckpt_tensor){.name = t[i].name + skip, .codec = LST_CODEC_F32, .n_dims = t[i].n_dims, .memory = zeros};
        memcpy(list[i].dims, t[i].dims, sizeof t[i].dims);
    }
    other[0] = more ? more->value : 0;
    if (more)
        list[n] =
            (lst_ckpt_tensor){.name = more->name, .n_dims = 2, .dims = {arch->vocab, arch->hidden}, .memory = other};
    OK(lst_ckpt_save_weights(temp_path(folder, "model.safetensors"), list, n + (more != NULL), err));
    free(t);
    free(list);
    free(zeros);
    free(other);
}

static void extra_tensors_are_refused_by_name(void **state)
{
    const temp_folder *folder = *state;
    char path[512];
    strcpy(path, temp_path(folder, "model.safetensors"));
    lst_arch arch = small_arch();
    const extra buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq", 1}, adapter = {"model.norm.lora", 0};
    const extra same = {"lm_head.weight", 0}, differs = {"lm_head.weight", 1};
    write_with(folder, &arch, 0, NULL);
    OK(train_hf_check_weights(path, &arch, err));
    write_with(folder, &arch, 0, &buffer);
    OK(train_hf_check_weights(path, &arch, err));
    write_with(folder, &arch, 0, &same);
    OK(train_hf_check_weights(path, &arch, err));
    write_with(folder, &arch, 0, &adapter);
    FAILS(train_hf_check_weights(path, &arch, err), LST_ERR_STATE, "model.norm.lora");
    write_with(folder, &arch, 0, &differs);
    FAILS(train_hf_check_weights(path, &arch, err), LST_ERR_STATE, "lm_head.weight");
    arch.layers = 1;
    write_with(folder, &arch, 0, NULL);
    arch.layers = 2;
    OK(train_hf_check_weights(path, &arch, err)); /* what lacks is named where it is loaded */
}

static void gpt2_comes_with_and_without_prefix(void **state)
{
    const temp_folder *folder = *state;
    char path[512];
    strcpy(path, temp_path(folder, "model.safetensors"));
    lst_arch arch;
    lst_arch_default(LST_FAMILY_GPT2, &arch);
    arch.vocab = 300;
    arch.hidden = 8;
    arch.ffn = 32;
    arch.heads = arch.kv_heads = 2;
    arch.head_dim = 4;
    arch.layers = 1;
    arch.max_positions = 16;
    const extra bias = {"h.0.attn.bias", 0}, masked = {"transformer.h.0.attn.masked_bias", 0}, head = {"h.9.ln", 0};
    float wte[300 * 8];
    lst_ckpt_tensor wanted = {.name = "transformer.wte.weight", .n_dims = 2, .dims = {300, 8}, .memory = wte};
    write_with(folder, &arch, strlen("transformer."), &bias);
    OK(train_hf_check_weights(path, &arch, err));
    OK(lst_ckpt_load_weights(path, &wanted, 1, NULL, err));
    write_with(folder, &arch, 0, &masked);
    OK(train_hf_check_weights(path, &arch, err));
    OK(lst_ckpt_load_weights(path, &wanted, 1, NULL, err));
    write_with(folder, &arch, 0, &head);
    FAILS(train_hf_check_weights(path, &arch, err), LST_ERR_STATE, "h.9.ln");
    wanted.name = "transformer.wpe.bias";
    FAILS(lst_ckpt_load_weights(path, &wanted, 1, NULL, err), LST_ERR_STATE, "transformer.wpe.bias");
}

/* ---- config.json ---- */

static void dtype_is_all_that_changes(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"{\"a\": {\"dtype\": \"x\"},\n \"torch_dtype\" : \"float32\", \"b\": \"dtype\"}",
         "{\"a\": {\"dtype\": \"x\"},\n \"torch_dtype\" : \"bfloat16\", \"b\": \"dtype\"}"},
        {"{\"dtype\": \"float16\"}\n", "{\"dtype\": \"bfloat16\"}\n"},
        {"{\"s\": \"\\\"dtype\\\": 1\", \"dtype\":null}", "{\"s\": \"\\\"dtype\\\": 1\", \"dtype\":\"bfloat16\"}"},
        {"{\"model_type\": \"gpt2\"}", "{\n  \"torch_dtype\": \"bfloat16\",\"model_type\": \"gpt2\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        OK(train_hf_set_dtype(cases[i].before, LST_CODEC_BF16, &text, err));
        assert_string_equal(text, cases[i].after);
        assert_int_equal(train_hf_dtype(text, strlen(text)), LST_CODEC_BF16);
        lst__free(text);
    }
    assert_int_equal(train_hf_dtype("{\"dtype\": \"int8\"}", 17), LST_N_CODECS);
    assert_int_equal(train_hf_dtype("[", 1), LST_N_CODECS);
}

/* ---- a run ---- */

static void run_steps(const temp_folder *folder, train_settings *s, train_run **run)
{
    write_text(folder, "text");
    quiet q = {0};
    train_observer observer = quiet_observer(&q);
    OK(train_run_start(run, s, temp_path(folder, "run"), err));
    OK(train_loop(*run, &observer, err));
}

/* Every weight of the exported float32 folder is the optimizer's. */
static void same_as_optimizer(const temp_folder *folder, const train_run *run)
{
    lst_st_set *set;
    OK(lst__st_set_open(&set, temp_path(folder, "out"), err));
    for (size_t i = 0; i < run->engine->n_tensors; i++) {
        const lst_st_tensor *t = lst__st_set_find(set, lst_optim_tensor(run->engine->optim, i)->name);
        float *values = malloc(t->n_elems * sizeof *values);
        OK(lst_optim_get_eval_weights_f32(run->engine->optim, i, values, err));
        assert_int_equal(t->dtype, LST_ST_F32);
        assert_memory_equal(t->data, values, t->n_bytes);
        free(values);
    }
    lst__st_set_close(set);
}

static void masters_and_averages_are_exported(void **state)
{
    const temp_folder *folder = *state;
    train_exported done;
    train_run *run;
    lst_pool *pool;
    OK(lst_pool_create(&pool, 1, err));
    for (int k = 0; k < 3; k++) {
        train_settings s = small_settings(folder);
        s.recipe.rule = k == 1 ? LST_RULE_SCHEDULE_FREE : LST_RULE_ADAMW;
        lst_hyper_default(s.recipe.rule, &s.recipe.hyper);
        s.recipe.weights = k == 0 ? LST_WEIGHT_BF16_MASTER : k == 1 ? LST_WEIGHT_F32 : LST_WEIGHT_SPLIT24;
        s.schedule.total_steps = 5;
        if (k == 1) {
            s.schedule.kind = LST_SCHEDULE_CONSTANT;
            s.schedule.warmup_steps = 0;
        }
        run_steps(folder, &s, &run);
        train_export job = {temp_path(folder, "run"), temp_path(folder, "out"), LST_CODEC_F32, TRAIN_HF_SHARD_BYTES,
                            pool};
        OK(train_export_run(&job, &done, err));
        assert_true(done.averaged == (k == 1) && done.masters == (k != 1) && done.step == 5);
        same_as_optimizer(folder, run);
        FAILS(train_export_run(&job, &done, err), LST_ERR_STATE, "exists already");
        train_run_close(run);
        OK(lst__remove_tree(temp_path(folder, "run"), err));
        OK(lst__remove_tree(temp_path(folder, "out"), err));
    }
    lst_pool_destroy(pool);
}

static void trainer_state_has_the_losses(void **state)
{
    const temp_folder *folder = *state;
    train_settings s = small_settings(folder);
    train_exported done;
    train_run *run;
    json_t *json;
    run_steps(folder, &s, &run);
    train_run_close(run);
    temp_write(folder, "run/tokenizer_config.json", "{}");
    train_export job = {temp_path(folder, "run"), temp_path(folder, "out/"), LST_N_CODECS, TRAIN_HF_SHARD_BYTES, NULL};
    OK(train_export_run(&job, &done, err));
    assert_int_equal(done.codec, LST_CODEC_F32);
    assert_true(lst__is_file(temp_path(folder, "out/tokenizer_config.json")));
    OK(lst__json_load(&json, temp_path(folder, "out/trainer_state.json"), 1 << 20, err));
    const json_t *log = json_object_get(json, "log_history");
    assert_int_equal(json_integer_value(json_object_get(json, "global_step")), 12);
    assert_int_equal(json_array_size(log), 12 + 4); /* validated at 0, 4, 8, 12 */
    assert_true(json_is_real(json_object_get(json_array_get(log, 0), "eval_loss")));
    assert_true(json_is_real(json_object_get(json_array_get(log, 1), "loss")));
    json_decref(json);
}

static void what_is_no_run_is_refused(void **state)
{
    const temp_folder *folder = *state;
    train_exported done;
    train_export job = {temp_path(folder, "none"), temp_path(folder, "out"), LST_N_CODECS, TRAIN_HF_SHARD_BYTES, NULL};
    FAILS(train_export_run(&job, &done, err), LST_ERR_IO, "not a folder");
    temp_write(folder, "empty/x", "");
    job.from = temp_path(folder, "empty");
    FAILS(train_export_run(&job, &done, err), LST_ERR_STATE, "neither");
    assert_false(lst__is_dir(job.out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(shards_hold_what_one_file_holds),   TEST(a_folder_begins_as_the_seed_does),
        TEST(extra_tensors_are_refused_by_name), TEST(gpt2_comes_with_and_without_prefix),
        TEST(dtype_is_all_that_changes),         TEST(masters_and_averages_are_exported),
        TEST(trainer_state_has_the_losses),      TEST(what_is_no_run_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
