/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "ckpt/toy.h"
#include "io/safetensors.h"

/* Optimizer state: resumed runs are equal to the bit; what does not belong is refused before a byte changes. */

static char folder[64];
static char path[128], weights_path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lst_test_state_XXXXXX");
    int failed = mkdtemp(folder) == NULL;
    snprintf(path, sizeof path, "%s/" LST_CKPT_OPTIM, folder);
    snprintf(weights_path, sizeof weights_path, "%s/" LST_CKPT_WEIGHTS, folder);
    return failed;
}

static int drop_folder(void **state)
{
    (void)state;
    return lst__remove_tree(folder, NULL) != LST_OK;
}

static void create(toy *t, lst_rule rule, lst_weight_form form, lst_codec state)
{
    lst_tensor tensors[TOY_TENSORS];
    lst_hyper groups[2];
    toy_describe(tensors);
    lst_hyper_default(rule, &groups[0]);
    groups[0].weight_decay = 0.1;
    groups[1] = groups[0];
    groups[1].weight_decay = 0;
    assert_int_equal(toy_create_coded(t, rule, form, state, tensors, TOY_TENSORS, groups, 42), LST_OK);
}

static void check_resume(lst_rule rule, lst_weight_form form, lst_codec state)
{
    toy straight, resumed;
    lst_error err = {0};
    lst_ckpt_tensor list[TOY_TENSORS];
    create(&straight, rule, form, state);
    assert_int_equal(toy_start(&straight), LST_OK);
    for (int64_t step = 1; step <= 5; step++)
        assert_int_equal(toy_step(&straight, step), LST_OK);
    assert_int_equal(lst_optim_set_lr(straight.optim, 0, 0.0123, &err), LST_OK);
    toy_list(&straight, list);
    assert_int_equal(lst_ckpt_save_weights(weights_path, list, TOY_TENSORS, &err), LST_OK);
    assert_int_equal(lst_ckpt_save_optim(path, straight.optim, "{\"position\": 7}", &err), LST_OK);

    create(&resumed, rule, form, state);
    toy_list(&resumed, list);
    size_t n_ignored = 99;
    if (lst_ckpt_load_weights(folder, list, TOY_TENSORS, &n_ignored, &err) != LST_OK)
        fail_msg("%s", err.message);
    assert_int_equal(n_ignored, 0);
    if (lst_ckpt_load_optim(path, resumed.optim, &err) != LST_OK)
        fail_msg("%s", err.message);
    assert_true(toy_equal(&straight, &resumed));
    for (int64_t step = 6; step <= 9; step++) {
        assert_int_equal(toy_step(&straight, step), LST_OK);
        assert_int_equal(toy_step(&resumed, step), LST_OK);
    }
    assert_true(toy_equal(&straight, &resumed));
    char *trainer;
    assert_int_equal(lst_ckpt_read_trainer(path, &trainer, &err), LST_OK);
    assert_string_equal(trainer, "{\"position\": 7}");
    lst_ckpt_free(trainer);
    toy_destroy(&straight);
    toy_destroy(&resumed);
}

static void test_resume_is_bit_equal(void **state)
{
    (void)state;
    static const lst_codec codecs[] = {LST_CODEC_F32, LST_CODEC_Q8, LST_CODEC_Q4, LST_CODEC_Q8_DYNAMIC,
                                       LST_CODEC_Q8_DYNAMIC_2048};
    for (int rule = 0; rule < LST_N_RULES; rule++)
        for (int form = 0; form < LST_N_WEIGHT_FORMS; form++)
            for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
                const bool no_moments =
                    rule == LST_RULE_SGD || rule == LST_RULE_ADAFACTOR || rule == LST_RULE_ADAFACTOR_TORCH;
                if (c == 0 || (!no_moments && form == (rule + (int)c) % LST_N_WEIGHT_FORMS))
                    check_resume((lst_rule)rule, (lst_weight_form)form, codecs[c]);
            }
}

static void test_counts_are_64_bit(void **state)
{
    (void)state;
    toy a, b;
    assert_int_equal(toy_create(&a, LST_RULE_ADAMW, LST_WEIGHT_F32), LST_OK);
    assert_int_equal(toy_create(&b, LST_RULE_ADAMW, LST_WEIGHT_F32), LST_OK);
    assert_int_equal(toy_start(&a), LST_OK);
    assert_int_equal(lst_optim_set_steps(a.optim, 1, INT64_MAX - 1, NULL), LST_OK);
    lst_optim_set_begun(a.optim, 9007199254740993);
    assert_int_equal(lst_ckpt_save_optim(path, a.optim, NULL, NULL), LST_OK);
    assert_int_equal(lst_ckpt_load_optim(path, b.optim, NULL), LST_OK);
    assert_true(lst_optim_steps(b.optim, 1) == INT64_MAX - 1);
    assert_true(lst_optim_begun(b.optim) == 9007199254740993);
    char *trainer;
    assert_int_equal(lst_ckpt_read_trainer(path, &trainer, NULL), LST_OK);
    assert_string_equal(trainer, "");
    lst_ckpt_free(trainer);
    toy_destroy(&a);
    toy_destroy(&b);
}

/* Loading must fail with these words and leave the optimizer as it was. */
static void expect_refusal(const toy *other, const char *words, lst_status expected)
{
    toy before;
    lst_error err = {0};
    size_t bytes = lst_optim_block_bytes(other->optim);
    unsigned char *copy = malloc(bytes + 1);
    memcpy(copy, other->block, bytes);
    before = *other;
    int64_t steps = lst_optim_steps(other->optim, 0);
    assert_int_equal(lst_ckpt_load_optim(path, before.optim, &err), expected);
    if (strstr(err.message, words) == NULL || strstr(err.message, path) == NULL)
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
    assert_memory_equal(copy, other->block, bytes);
    assert_true(lst_optim_steps(other->optim, 0) == steps);
    free(copy);
}

static void save_one(void)
{
    toy t;
    assert_int_equal(toy_create(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER), LST_OK);
    assert_int_equal(toy_start(&t), LST_OK);
    assert_int_equal(toy_step(&t, 1), LST_OK);
    assert_int_equal(lst_ckpt_save_optim(path, t.optim, "mine", NULL), LST_OK);
    toy_destroy(&t);
}

static void test_another_recipe(void **state)
{
    (void)state;
    save_one();
    toy t;
    assert_int_equal(toy_create(&t, LST_RULE_MOMENTUM, LST_WEIGHT_BF16_MASTER), LST_OK);
    expect_refusal(&t, "checkpoint of another recipe: its rule is adamw, the optimizer's is momentum", LST_ERR_STATE);
    toy_destroy(&t);
    assert_int_equal(toy_create(&t, LST_RULE_ADAMW, LST_WEIGHT_SPLIT32), LST_OK);
    expect_refusal(&t, "its weight form is bf16+master, the optimizer's is split32", LST_ERR_STATE);
    toy_destroy(&t);
    lst_tensor tensors[TOY_TENSORS];
    lst_hyper groups[2];
    toy_describe(tensors);
    lst_hyper_default(LST_RULE_ADAMW, &groups[0]);
    groups[0].weight_decay = 0.1;
    groups[1] = groups[0];
    groups[1].weight_decay = 0;
    assert_int_equal(toy_create_from(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, tensors, TOY_TENSORS, groups, 43),
                     LST_OK);
    expect_refusal(&t, "its seed is 42, the optimizer's is 43", LST_ERR_STATE);
    toy_destroy(&t);
    groups[1].beta2 = 0.95;
    assert_int_equal(toy_create_from(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, tensors, TOY_TENSORS, groups, 42),
                     LST_OK);
    expect_refusal(&t, "group 1 has beta2 0.999", LST_ERR_STATE);
    toy_destroy(&t);
}

static void test_another_model(void **state)
{
    (void)state;
    save_one();
    toy t;
    lst_tensor tensors[TOY_TENSORS];
    lst_hyper groups[2];
    lst_hyper_default(LST_RULE_ADAMW, &groups[0]);
    groups[0].weight_decay = 0.1;
    groups[1] = groups[0];
    groups[1].weight_decay = 0;
    static const char *const words[] = {
        "checkpoint of another model: tensor \"renamed\" is not in it (it has 3 tensors, this model 3)",
        "tensor \"layers.0.matrix \"odd\"\" has another shape there", "belongs to another group there",
        "tensor \"bias\" is in it and not in this model (it has 3 tensors, this model 2)"};
    for (size_t i = 0; i < 4; i++) {
        toy_describe(tensors);
        if (i == 0)
            tensors[0].name = "renamed";
        if (i == 1) { /* as many elements, turned */
            tensors[TOY_MATRIX].dims[0] = 51;
            tensors[TOY_MATRIX].dims[1] = 37;
        }
        if (i == 2)
            tensors[2].group = 0;
        assert_int_equal(
            toy_create_from(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, tensors, i == 3 ? 2 : 3, groups, 42), LST_OK);
        expect_refusal(&t, words[i], LST_ERR_STATE);
        toy_destroy(&t);
    }
}

/* ---- broken files ---- */

static lst_status copy_source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                              lst_error *err)
{
    (void)err;
    const lst_st *st = context;
    *data = st->tensors[entry].data + offset;
    *n_bytes = st->tensors[entry].n_bytes - offset;
    return LST_OK;
}

/* Rewrites the file with one metadata value replaced (NULL: left out), and without its last `n_cut` tensors. */
static void rewrite(const char *key, const char *value, size_t n_cut)
{
    lst_st *st;
    lst_st_pair pairs[16];
    lst_st_entry entries[16];
    size_t n_pairs = 0;
    assert_int_equal(lst__st_open(&st, path, NULL), LST_OK);
    for (size_t i = 0; i < st->n_metadata; i++) {
        bool ours = key != NULL && strcmp(st->metadata[i].key, key) == 0;
        if (ours && value == NULL)
            continue;
        pairs[n_pairs++] = (lst_st_pair){st->metadata[i].key, ours ? value : st->metadata[i].value};
    }
    for (size_t i = 0; i < st->n_tensors; i++)
        entries[i] =
            (lst_st_entry){st->tensors[i].name, st->tensors[i].dtype, st->tensors[i].n_dims, st->tensors[i].dims};
    lst_st_content content = {.entries = entries,
                              .n_entries = st->n_tensors - n_cut,
                              .metadata = pairs,
                              .n_metadata = n_pairs,
                              .source = copy_source,
                              .context = st};
    assert_int_equal(lst__st_write(path, &content, NULL), LST_OK);
    lst__st_close(st);
}

static void test_broken_metadata(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *words;
        lst_status status;
    } cases[] = {
        {"leanstep.format", NULL, "is no optimizer file of Leanstep", LST_ERR_FORMAT},
        {"leanstep.format", "2", "format version \"2\"; this program reads version 1", LST_ERR_UNSUPPORTED},
        {"leanstep.rule", NULL, "its metadata lack \"leanstep.rule\"", LST_ERR_FORMAT},
        {"leanstep.begun", "-1", "metadata \"leanstep.begun\" is \"-1\"; a count is expected", LST_ERR_FORMAT},
        {"leanstep.begun", "9223372036854775808", "a count is expected", LST_ERR_FORMAT},
        {"leanstep.begun", " 1", "a count is expected", LST_ERR_FORMAT},
        {"leanstep.groups", "[", "invalid JSON", LST_ERR_FORMAT},
        {"leanstep.groups", "[]", "0 groups of hyper-parameters; 2 are expected", LST_ERR_STATE},
        {"leanstep.groups", "[1, 2]", "group 0 is an integer; an object is expected", LST_ERR_FORMAT},
        {"leanstep.groups", "[{}, {}]", "key \"lr\" is missing", LST_ERR_FORMAT},
        {"leanstep.groups",
         "[{\"lr\": -1.0, \"beta1\": 0.9, \"beta2\": 0.999, \"eps\": 1e-8, \"momentum\": 0, \"dampening\": 0, "
         "\"weight_decay\": 0.1, \"amsgrad\": false, \"maximize\": false}, {}]",
         "is no learning rate", LST_ERR_FORMAT},
        {"leanstep.tensors", "[]", "an object is expected", LST_ERR_FORMAT},
        {"leanstep.tensors", "{}", "tensor \"scalar\" is not in it (it has 0 tensors, this model 3)", LST_ERR_STATE},
        {"leanstep.tensors", "{\"scalar\": {\"shape\": [], \"group\": 1, \"steps\": 5}}", "key \"steps\" is an integer",
         LST_ERR_FORMAT},
        {"leanstep.tensors", "{\"scalar\": {\"shape\": [], \"group\": 1, \"steps\": \"x\"}}", "its steps are no count",
         LST_ERR_FORMAT},
        {"leanstep.tensors", "{\"scalar\": 3}", "has another shape there", LST_ERR_STATE},
    };
    toy t;
    assert_int_equal(toy_create(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER), LST_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        save_one();
        rewrite(cases[i].key, cases[i].value, 0);
        expect_refusal(&t, cases[i].words, cases[i].status);
    }
    save_one();
    rewrite(NULL, NULL, 1);
    expect_refusal(&t, "is missing", LST_ERR_FORMAT);
    toy_destroy(&t);
}

/* A file from before a hyper-parameter existed: it had its default then. */
static void test_fields_younger_than_the_file(void **state)
{
    (void)state;
    toy t;
    lst_error err = {0};
    save_one();
    rewrite("leanstep.groups", "[{\"lr\": 0.5, \"weight_decay\": 0.1}, {\"lr\": 0.25, \"weight_decay\": 0}]", 0);
    assert_int_equal(toy_create(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER), LST_OK);
    if (lst_ckpt_load_optim(path, t.optim, &err) != LST_OK)
        fail_msg("%s", err.message);
    assert_true(lst_optim_group(t.optim, 0)->lr == 0.5 && lst_optim_group(t.optim, 1)->lr == 0.25);
    rewrite("leanstep.groups", "[{\"lr\": 0.5}, {\"lr\": 0.25, \"weight_decay\": 0}]", 0);
    expect_refusal(&t, "group 0 has weight_decay 0.01", LST_ERR_STATE);
    toy_destroy(&t);
}

static void test_truncated(void **state)
{
    (void)state;
    save_one();
    toy t;
    assert_int_equal(toy_create(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER), LST_OK);
    lst_map map;
    assert_int_equal(lst__map_open(path, &map, NULL), LST_OK);
    size_t n_bytes = map.n_bytes;
    lst__map_close(&map);
    size_t lengths[] = {n_bytes - 1, n_bytes / 2, 2000, 100, 8, 7, 0};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_int_equal(truncate(path, (off_t)lengths[i]), 0);
        expect_refusal(&t, lengths[i] < 9 ? "bytes" : "truncated?", LST_ERR_FORMAT);
    }
    unlink(path);
    expect_refusal(&t, "No such file", LST_ERR_IO);
    toy_destroy(&t);
}

static void test_unbound(void **state)
{
    (void)state;
    save_one();
    lst_tensor tensors[TOY_TENSORS];
    toy_describe(tensors);
    lst_hyper groups[2];
    lst_hyper_default(LST_RULE_ADAMW, &groups[0]);
    groups[0].weight_decay = 0.1;
    groups[1] = groups[0];
    groups[1].weight_decay = 0;
    lst_optim_options options = {.struct_size = sizeof options,
                                 .rule = LST_RULE_ADAMW,
                                 .weights = LST_WEIGHT_BF16_MASTER,
                                 .n_groups = 2,
                                 .groups = groups,
                                 .seed = 42};
    lst_optim *optim;
    lst_error err;
    assert_int_equal(lst_optim_create(&optim, &options, tensors, TOY_TENSORS, &err), LST_OK);
    assert_int_equal(lst_ckpt_save_optim(weights_path, optim, NULL, &err), LST_ERR_STATE);
    assert_non_null(strstr(err.message, "has no memory"));
    assert_false(lst__is_file(weights_path));
    assert_int_equal(lst_ckpt_load_optim(path, optim, &err), LST_ERR_STATE);
    assert_int_equal(lst_ckpt_save_weights_f32(weights_path, optim, &err), LST_ERR_STATE);
    assert_int_equal(lst_ckpt_load_weights_exact(path, optim, NULL, &err), LST_ERR_STATE);
    lst_optim_destroy(optim);
}

/* ---- trouble while saving ---- */

static void test_disk_full(void **state)
{
    (void)state;
    save_one();
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = 20000, .rlim_max = 20000};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
        toy t;
        lst_error err = {0};
        int ok = toy_create(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER) == LST_OK && toy_start(&t) == LST_OK;
        ok = ok && lst_ckpt_save_optim(path, t.optim, "new", &err) == LST_ERR_IO;
        ok = ok && strstr(err.message, "stopped after 20000 bytes (what was there before is untouched)") != NULL;
        _exit(ok ? 0 : 1);
    }
    int result;
    waitpid(child, &result, 0);
    assert_int_equal(result, 0);
    char *trainer;
    assert_int_equal(lst_ckpt_read_trainer(path, &trainer, NULL), LST_OK);
    assert_string_equal(trainer, "mine");
    lst_ckpt_free(trainer);
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    save_one();
    toy t;
    lst_error err = {0};
    lst_ckpt_tensor list[TOY_TENSORS];
    assert_int_equal(toy_create(&t, LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER), LST_OK);
    assert_int_equal(toy_start(&t), LST_OK);
    toy_list(&t, list);
    for (int call = 0; call < 6; call++) {
        uint64_t n = 1;
        for (;; n++) {
            char *trainer = NULL;
            lst__fault_arm(n);
            lst_status status = call == 0   ? lst_ckpt_save_weights(weights_path, list, TOY_TENSORS, &err)
                                : call == 1 ? lst_ckpt_save_optim(path, t.optim, "mine", &err)
                                : call == 2 ? lst_ckpt_load_weights(folder, list, TOY_TENSORS, NULL, &err)
                                : call == 3 ? lst_ckpt_load_optim(path, t.optim, &err)
                                : call == 4 ? lst_ckpt_read_trainer(path, &trainer, &err)
                                            : lst_ckpt_load_weights_exact(folder, t.optim, NULL, &err);
            int struck = lst__fault_struck();
            lst__fault_arm(0);
            lst_ckpt_free(trainer);
            assert_int_equal(status, struck ? LST_ERR_MEMORY : LST_OK);
            /* what was saved before can still be read */
            assert_int_equal(lst_ckpt_read_trainer(path, &trainer, &err), LST_OK);
            assert_string_equal(trainer, "mine");
            lst_ckpt_free(trainer);
            if (!struck)
                break;
        }
        assert_true(n > 3);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(weights_path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_int_equal(lst__make_dirs(folder, NULL), LST_OK);
    toy_destroy(&t);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_resume_is_bit_equal),
        WITH_FOLDER(test_counts_are_64_bit),
        WITH_FOLDER(test_another_recipe),
        WITH_FOLDER(test_another_model),
        WITH_FOLDER(test_broken_metadata),
        WITH_FOLDER(test_truncated),
        WITH_FOLDER(test_fields_younger_than_the_file),
        WITH_FOLDER(test_unbound),
        WITH_FOLDER(test_disk_full),
        WITH_FOLDER(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
