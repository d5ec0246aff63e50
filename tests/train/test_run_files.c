/* SPDX-License-Identifier: MIT
 *
 * What a run writes beside its checkpoints: settings.json there and back, metrics.jsonl, report.html.
 */
#include "train/fixture.h"

#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/report.h"

static char *read_all(const temp_folder *folder, const char *name)
{
    static char *text;
    size_t n;
    OK(lst__file_read(temp_path(folder, name), SIZE_MAX / 2, &text, &n, err));
    return text;
}

/* ---- settings ---- */

static void settings_come_back_as_they_were(void **state)
{
    train_settings s = small_settings(*state), back;
    s.recipe.rule = LST_RULE_NESTEROV;
    lst_hyper_default(s.recipe.rule, &s.recipe.hyper);
    s.recipe.hyper.lr = 0.1 + 0.2; /* needs all 17 digits */
    s.recipe.weights = LST_WEIGHT_SPLIT32;
    s.recipe.grads = LST_CODEC_BF16;
    s.recipe.activations = LST_ACT_INPUTS;
    s.schedule.kind = LST_SCHEDULE_LINEAR;
    s.data_hash = 0xfedcba9876543210u;
    s.seed = INT64_MAX;
    strcpy(s.prompt, "\"quoted\"\n\\ and é");
    char *text, *again;
    OK(train_settings_write(&s, &text, err));
    OK(train_settings_read(&back, text, strlen(text), "settings.json", err));
    OK(train_settings_write(&back, &again, err));
    assert_string_equal(text, again);
    assert_true(back.recipe.hyper.lr == s.recipe.hyper.lr && back.data_hash == s.data_hash && back.seed == s.seed);
    assert_int_equal(back.recipe.weights, LST_WEIGHT_SPLIT32);
    assert_string_equal(back.prompt, s.prompt);
    assert_int_equal(lst_arch_params(&back.arch), lst_arch_params(&s.arch));
    free(text);
    free(again);
}

/* The text with `from` changed to `to` is refused, and the message says `says`. */
static void refused(const char *text, const char *from, const char *to, const char *says)
{
    char changed[8192];
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    train_settings s;
    lst_error err = {0};
    assert_int_not_equal(train_settings_read(&s, changed, strlen(changed), "settings.json", &err), LST_OK);
    if (!strstr(err.message, says) || !strstr(err.message, "settings.json"))
        fail_msg("\"%s\" does not say \"%s\" and the file's name", err.message, says);
}

static void broken_settings_are_refused_by_name(void **state)
{
    train_settings s = small_settings(*state);
    char *text;
    OK(train_settings_write(&s, &text, err));
    refused(text, "\"optimizer\": \"adamw\"", "\"optimizer\": \"adamv\"", "adamv");
    refused(text, "\"batch\": 2", "\"batch\": -2", "batch");
    refused(text, "\"batch\": 2", "\"bath\": 2", "batch");
    refused(text, "\"seq\": 24", "\"seq\": \"24\"", "seq");
    refused(text, "\"format\": 1", "\"format\": 2", "format 2");
    refused(text, "\"hash\": \"0000", "\"hash\": \"0x00", "hash");
    refused(text, "\"recipe\": {", "\"recipes\": {", "recipe");
    refused(text, "\"hidden_size\": 16", "\"hidden_size\": 0", "hidden");
    refused(text, "{", "", "");
    free(text);
}

static void settings_out_of_range_are_refused(void **state)
{
    train_settings s = small_settings(*state);
    OK(train_settings_check(&s, err));
    s.schedule.warmup_steps = 13;
    FAILS(train_settings_check(&s, err), LST_ERR_ARGUMENT, "--warmup");
    s = small_settings(*state);
    s.valid_fraction = 0;
    FAILS(train_settings_check(&s, err), LST_ERR_ARGUMENT, "--valid-fraction");
    s = small_settings(*state);
    s.schedule.decay_steps = 3;
    FAILS(train_settings_check(&s, err), LST_ERR_ARGUMENT, "decay_steps");
    s = small_settings(*state);
    s.recipe.rule = LST_RULE_SCHEDULE_FREE;
    FAILS(train_settings_check(&s, err), LST_ERR_ARGUMENT, "sets its rate itself");
    s = small_settings(*state);
    s.schedule.total_steps = 0;
    FAILS(train_settings_check(&s, err), LST_ERR_ARGUMENT, "--epochs");
    s.epochs = 0.5;
    OK(train_settings_check(&s, err));
    s.keep = 0;
    FAILS(train_settings_check(&s, err), LST_ERR_ARGUMENT, "--keep");
}

static void epochs_decide_the_length(void **state)
{
    write_text(*state, "text");
    train_settings s = small_settings(*state);
    s.schedule.total_steps = 0;
    s.schedule.warmup_steps = -1;
    s.epochs = 1.5;
    train_run *run;
    OK(train_run_start(&run, &s, temp_path(*state, "run"), err));
    uint64_t n = run->data.train.n_sequences;
    assert_int_equal(run->settings.schedule.total_steps, (3 * n + 7) / 8); /* 1.5 n / 4, rounded up */
    assert_int_equal(run->settings.schedule.warmup_steps, run->settings.schedule.total_steps / 10);
    train_run_close(run);
}

static void limit_below_the_plan_leaves_nothing(void **state)
{
    write_text(*state, "text");
    train_settings s = small_settings(*state);
    s.memory_limit = 1000;
    train_run *run;
    FAILS(train_run_start(&run, &s, temp_path(*state, "run"), err), LST_ERR_MEMORY, "--memory");
    assert_false(lst__is_dir(temp_path(*state, "run")));
    s.memory_limit = 0;
    s.arch.vocab = 200;
    FAILS(train_run_start(&run, &s, temp_path(*state, "run"), err), LST_ERR_ARGUMENT, "vocabulary");
    assert_false(lst__is_dir(temp_path(*state, "run")));
}

/* ---- metrics ---- */

static train_metric metric(int64_t step)
{
    return (train_metric){
        .step = step, .loss = 6.0 / (double)step, .grad_norm = 1, .lr = 1e-3, .tokens_per_s = 100, .loss_scale = 1};
}

static void metrics_are_thinned_and_complete(void **state)
{
    const char *path = temp_path(*state, "metrics.jsonl");
    train_log *log;
    OK(train_log_open(&log, path, 0, err));
    OK(train_log_valid(log, 0, 5.5, err));
    for (int64_t step = 1; step <= 5000; step++) {
        train_metric m = metric(step);
        if (step == 70) {
            m.loss = NAN;
            m.skipped = "model.norm.weight";
        }
        OK(train_log_step(log, &m, err));
        if (step % 100 == 0)
            OK(train_log_valid(log, step, 5.0 / (double)step, err));
    }
    train_log_close(log);
    static train_metrics m;
    OK(train_metrics_read(&m, path, err));
    assert_true(m.first_loss == 6 && m.last_loss == 6.0 / 5000);
    assert_true(m.first_valid == 5.5 && m.best_valid == 5.0 / 5000);
    assert_int_equal(m.n_skipped, 1);
    assert_int_equal(m.n_valid, 51);
    assert_true(m.n_train > TRAIN_MAX_POINTS / 2 && m.n_train <= TRAIN_MAX_POINTS);
    for (size_t i = 1; i < m.n_train; i++)
        assert_true(m.train[i].step > m.train[i - 1].step && m.train[i].loss < m.train[i - 1].loss);
}

static void reopened_metrics_end_at_the_step(void **state)
{
    const char *path = temp_path(*state, "metrics.jsonl");
    train_log *log;
    OK(train_log_open(&log, path, 0, err));
    for (int64_t step = 1; step <= 9; step++) {
        train_metric m = metric(step);
        OK(train_log_step(log, &m, err));
    }
    train_log_close(log);
    OK(train_log_open(&log, path, 4, err));
    train_log_close(log);
    char *text = read_all(*state, "metrics.jsonl");
    assert_non_null(strstr(text, "{\"step\":4,"));
    assert_null(strstr(text, "{\"step\":5,"));
    free(text);
    temp_write(*state, "metrics.jsonl", "{\"step\":1}\nnot json\n");
    FAILS(train_log_open(&log, path, 4, err), LST_ERR_FORMAT, "line 2");
    temp_write(*state, "metrics.jsonl", "{\"step\":1}\n{\"step\":\"2\"}\n");
    FAILS(train_log_open(&log, path, 4, err), LST_ERR_FORMAT, "line 2");
}

/* ---- report ---- */

static void report_is_one_file_without_network(void **state)
{
    write_text(*state, "text");
    train_settings s = small_settings(*state);
    strcpy(s.prompt, "<b>&\"");
    train_run *run;
    quiet q = {0};
    train_observer observer = quiet_observer(&q);
    OK(train_run_start(&run, &s, temp_path(*state, "run"), err));
    OK(train_loop(run, &observer, err));
    OK(train_run_report(run, "bytes \xff\xc3\xa9 </pre><script>alert(1)</script>", err));
    train_run_close(run);
    char *html = read_all(*state, "run/report.html");
    static const char *const has[] = {"<!DOCTYPE html>",
                                      "<svg",
                                      "polyline class=\"valid\"",
                                      "weights",
                                      "exp_avg_sq",
                                      "backward of layer 1",
                                      "prefers-color-scheme:dark",
                                      "&lt;b&gt;&amp;&quot;",
                                      "&#xFFFD;\xc3\xa9",
                                      "outside the plan",
                                      "settings.json",
                                      "</html>\n"};
    for (size_t i = 0; i < sizeof has / sizeof *has; i++)
        if (!strstr(html, has[i]))
            fail_msg("report.html has no %s", has[i]);
    static const char *const lacks[] = {"http",          "<script", "src=",  "@import", "url(",
                                        "class=\"bad\"", "nan",     "inf\"", "-0 "};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (strstr(html, lacks[i]))
            fail_msg("report.html has %s", lacks[i]);
    free(html);
    for (int i = 0; i < 2; i++) {
        char *text = read_all(*state, i ? "run/plan.json" : "run/settings.json");
        assert_true(text[0] == '{' && strstr(text, i ? "\"peak_bytes\"" : "\"recipe\""));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(settings_come_back_as_they_were),     TEST(broken_settings_are_refused_by_name),
        TEST(settings_out_of_range_are_refused),   TEST(epochs_decide_the_length),
        TEST(limit_below_the_plan_leaves_nothing), TEST(metrics_are_thinned_and_complete),
        TEST(reopened_metrics_end_at_the_step),    TEST(report_is_one_file_without_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
