/* SPDX-License-Identifier: MIT
 *
 * Training with a model's own tokenizer: it is carried into run and checkpoints, a run in two is a run in one, and a
 * tokenizer that is not the model's or the run's is refused with nothing written.
 */
#include "train/fixture.h"

#include "train/carry.h"

#define TOKENIZER LEANSTEP_SOURCE_DIR "/tests/golden/tokens/gpt2/tokenizer.json"

static train_settings settings_with(const temp_folder *folder, const char *config)
{
    train_settings s = small_settings(folder);
    write_text(folder, "text");
    temp_write(folder, "model/config.json", config);
    OK(train__copy_file(TOKENIZER, temp_path(folder, "model/tokenizer.json"), err));
    snprintf(s.model, sizeof s.model, "%s", temp_path(folder, "model"));
    snprintf(s.tokenizer, sizeof s.tokenizer, "%s", temp_path(folder, "model"));
    data_tokenizer *t;
    OK(data_tokenizer_load(&t, TOKENIZER, err));
    s.arch.vocab = data_tokenizer_vocab(t) + 5;
    data_tokenizer_free(t);
    return s;
}

static void go(train_run *run, int64_t stop_at)
{
    quiet q = {.stop_at = stop_at};
    train_observer observer = quiet_observer(&q);
    lst_error err;
    assert_int_equal(train_loop(run, &observer, &err), stop_at ? LST_ERR_INTERRUPTED : LST_OK);
}

static void test_resumed_with_the_carried_tokenizer(void **state)
{
    train_settings s = settings_with(*state, "{\"eos_token_id\": 7}");
    train_run *run;
    char one[600], two[600], path[700];
    strcpy(one, temp_path(*state, "one"));
    strcpy(two, temp_path(*state, "two"));
    OK(train_run_start(&run, &s, one, err));
    assert_int_equal(run->encoder.end, 7);
    go(run, 0);
    const uint64_t whole = state_hash(run);
    train_run_close(run);
    OK(train_run_start(&run, &s, two, err));
    go(run, 6);
    train_run_close(run);
    /* The model's folder may be gone by now. */
    OK(lst__remove_tree(temp_path(*state, "model"), err));
    train_changes changes = {0};
    OK(train_run_resume(&run, two, &changes, err));
    go(run, 0);
    assert_true(whole == state_hash(run));
    snprintf(path, sizeof path, "%s/checkpoint-%08lld", two, (long long)run->saved_step);
    data_encoder carried;
    OK(data_encoder_open(&carried, path, s.arch.vocab, NULL, err));
    assert_int_equal(carried.end, 7);
    data_encoder_close(&carried);
    train_run_close(run);
}

static void test_another_end_is_other_data(void **state)
{
    train_settings s = settings_with(*state, "{\"eos_token_id\": 7}");
    train_run *run;
    char folder[600];
    strcpy(folder, temp_path(*state, "run"));
    OK(train_run_start(&run, &s, folder, err));
    go(run, 6);
    train_run_close(run);
    temp_write(*state, "run/generation_config.json", "{\"eos_token_id\": 8}");
    train_changes changes = {0};
    FAILS(train_run_resume(&run, folder, &changes, err), LST_ERR_STATE, "have changed");
}

static void refused(const temp_folder *folder, const train_settings *s, const char *says)
{
    train_run *run;
    FAILS(train_run_start(&run, s, temp_path(folder, "run"), err), LST_ERR_FORMAT, says);
    assert_false(lst__is_dir(temp_path(folder, "run")));
}

static void test_a_tokenizer_that_does_not_fit_is_refused(void **state)
{
    train_settings s = settings_with(*state, "{\"eos_token_id\": 7}");
    const size_t vocab = s.arch.vocab;
    s.arch.vocab = vocab - 6;
    refused(*state, &s, "does not fit the model");
    s.arch.vocab = vocab;
    temp_write(*state, "model/config.json", "{\"eos_token_id\": 70000}");
    refused(*state, &s, "\"eos_token_id\" is 70000");
    temp_write(*state, "model/tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}}");
    train_run *run;
    FAILS(train_run_start(&run, &s, temp_path(*state, "run"), err), LST_ERR_UNSUPPORTED, "Unigram");
    assert_false(lst__is_dir(temp_path(*state, "run")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_resumed_with_the_carried_tokenizer),
        TEST(test_another_end_is_other_data),
        TEST(test_a_tokenizer_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
