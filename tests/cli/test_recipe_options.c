/* SPDX-License-Identifier: MIT
 *
 * Options to a recipe and back: what a printed command line gives is the recipe it was printed for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/model_arg.h"
#include "cli/recipe_options.h"

static const cli_command command = {.name = "test", .positionals = "", .tables = {{"Recipe", cli_recipe_options}}};

static lst_status recipe_of(const char *line, const lst_arch *arch, lst_recipe *out, cli_assumed *assumed,
                            lst_error *err)
{
    char copy[800], *words[60];
    int n = 0;
    cli_args args;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[n++] = word;
    lst_status status = cli_args_parse(&command, n, words, &args, err);
    return status == LST_OK ? cli_recipe(&args, arch, out, assumed, err) : status;
}

static void must(const char *line, const lst_arch *arch, lst_recipe *out, cli_assumed *assumed)
{
    lst_error err;
    if (recipe_of(line, arch, out, assumed, &err) != LST_OK)
        fail_msg("%s: %s", line, err.message);
}

static void gpt2(lst_arch *arch)
{
    lst_error err;
    assert_int_equal(cli_model_arch("gpt2", arch, &err), LST_OK);
}

static void precisions_are_short_for(void **state)
{
    (void)state;
    lst_recipe r;
    must("--precision bf16", NULL, &r, NULL);
    assert_int_equal(r.weights, LST_WEIGHT_BF16_MASTER);
    assert_int_equal(r.grads, LST_CODEC_BF16);
    assert_false(r.loss_scale);
    must("--precision fp16", NULL, &r, NULL);
    assert_int_equal(r.weights, LST_WEIGHT_F16_MASTER);
    assert_int_equal(r.grads, LST_CODEC_F16);
    assert_true(r.loss_scale);
    must("--precision fp32 --grad-dtype bf16", NULL, &r, NULL);
    assert_int_equal(r.weights, LST_WEIGHT_F32);
    assert_int_equal(r.grads, LST_CODEC_BF16);
    must("--precision bf16 --grads release", NULL, &r, NULL);
    assert_int_equal(r.grads, LST_CODEC_F32);
    assert_true(r.clip_norm == 0);
}

static void what_is_not_given_is_listed(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    cli_assumed none, all;
    gpt2(&arch);
    must("", &arch, &r, &all);
    assert_true(all.n >= 9);
    must("--optimizer adamw --precision fp32 --state f32 --grads keep --grad-dtype f32 --activations keep --batch 1 "
         "--seq 512 "
         "--accumulation 1 "
         "--loss-chunk 128 --threads 1 --clip 1 --loss-scale none",
         &arch, &r, &none);
    assert_int_equal(none.n, 0);
}

static void lines_give_their_recipes_back(void **state)
{
    (void)state;
    static const char *const lines[] = {"",
                                        "--optimizer momentum --momentum 0.8 --lr 0.5",
                                        "--precision bf16 --activations inputs --batch 4 --seq 100 --accumulation 3",
                                        "--precision fp16 --loss-scale none --clip 0",
                                        "--weights split32 --grad-dtype f32 --loss-chunk 32 --threads 7",
                                        "--grads release --activations pointwise",
                                        "--weights split24 --state q8 --state-embeddings f32",
                                        "--weights bf16-sr --state q4 --grads release",
                                        "--optimizer lion --state q8-dynamic-2048",
                                        "--optimizer adam --amsgrad --beta2 0.95 --weight-decay 0.25"};
    lst_arch arch;
    gpt2(&arch);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        lst_recipe first, second;
        char line[600];
        must(lines[i], &arch, &first, NULL);
        cli_recipe_line(&first, &arch, line, sizeof line);
        must(line, &arch, &second, NULL);
        assert_true(first.rule == second.rule && first.weights == second.weights && first.grads == second.grads);
        assert_true(first.activations == second.activations && first.grad_mode == second.grad_mode);
        assert_true(first.state == second.state && first.f32_embeddings == second.f32_embeddings);
        assert_true(first.clip_norm == second.clip_norm && first.loss_scale == second.loss_scale);
        assert_true(first.batch == second.batch && first.seq == second.seq &&
                    first.accumulation == second.accumulation);
        assert_true(first.loss_chunk == second.loss_chunk && first.threads == second.threads);
        assert_true(first.hyper.lr == second.hyper.lr && first.hyper.weight_decay == second.hyper.weight_decay);
        assert_true(first.hyper.beta2 == second.hyper.beta2 && first.hyper.momentum == second.hyper.momentum);
        assert_int_equal(first.hyper.amsgrad, second.hyper.amsgrad);
    }
}

static void refusals_name_the_option(void **state)
{
    (void)state;
    static const struct {
        const char *line, *word;
    } cases[] = {{"--optimizer sgd --beta1 0.8", "--beta1"},
                 {"--optimizer adamw --momentum 0.8", "--momentum"},
                 {"--optimizer momentum --amsgrad", "--amsgrad"},
                 {"--precision bf16 --weights split32", "--weights"},
                 {"--grads release --clip 1", "--clip"},
                 {"--grads release --grad-dtype bf16", "--grad-dtype"},
                 {"--loss-scale dynamic", "--loss-scale"},
                 {"--seq 2000", "--seq"},
                 {"--batch 0", "--batch"},
                 {"--state bf16", "q8-dynamic-2048"},
                 {"--optimizer sgd --state q8", "--state q8 with --optimizer sgd"},
                 {"--optimizer adafactor --state q4", "--state q4 with --optimizer adafactor"},
                 {"--state q8 --amsgrad", "amsgrad"},
                 {"--state-embeddings f32", "--state-embeddings"},
                 {"--optimizer adamm", "adamw"}};
    lst_arch arch;
    gpt2(&arch);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lst_recipe r;
        lst_error err = {.message = ""};
        assert_int_equal(recipe_of(cases[i].line, &arch, &r, NULL, &err), LST_ERR_ARGUMENT);
        if (!strstr(err.message, cases[i].word))
            fail_msg("%s: the message \"%s\" does not say \"%s\"", cases[i].line, err.message, cases[i].word);
    }
}

static void models_by_name(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint64_t params;
    } models[] = {{"gpt2", 124439808},
                  {"smollm2-135m", 134515008},
                  {"qwen2.5-0.5b", 494032768},
                  {"qwen2.5-1.5b", 1543714304},
                  {"llama-3.2-1b", 1235814400}};
    lst_arch arch;
    lst_error err;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        assert_int_equal(cli_model_arch(models[i].name, &arch, &err), LST_OK);
        assert_int_equal(lst_arch_params(&arch), models[i].params);
    }
    assert_int_equal(cli_model_arch("gpt-2", &arch, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "did you mean gpt2"));
    assert_int_equal(cli_model_arch(LEANSTEP_SOURCE_DIR "/tests/golden/models/qwen3", &arch, &err), LST_OK);
    assert_int_equal(arch.family, LST_FAMILY_QWEN3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(precisions_are_short_for),
                                       cmocka_unit_test(what_is_not_given_is_listed),
                                       cmocka_unit_test(lines_give_their_recipes_back),
                                       cmocka_unit_test(refusals_name_the_option), cmocka_unit_test(models_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
