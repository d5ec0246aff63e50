/* SPDX-License-Identifier: MIT
 *
 * A run that was stopped and resumed ends in the same bits as one that was not, and in the same metrics; what does not
 * belong together is refused.
 */
#include "train/fixture.h"

#include "train/checkpoint.h"

/* metrics.jsonl without what a clock decides. */
static char *metrics_of(const char *folder)
{
    char path[600], *text;
    size_t n;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    OK(lst__file_read(path, SIZE_MAX / 2, &text, &n, err));
    char *out = text;
    for (const char *p = text; *p;) {
        const char *clock = strstr(p, ",\"tokens_per_s\""), *end = clock ? strstr(clock, ",\"seconds\"") : NULL;
        if (!clock) {
            memmove(out, p, strlen(p) + 1);
            break;
        }
        end += strcspn(end + 1, ",}") + 1;
        memmove(out, p, (size_t)(clock - p));
        out += clock - p;
        p = end;
        *out = '\0';
    }
    return text;
}

static uint64_t run_through(const train_settings *s, const char *folder, int64_t *steps)
{
    train_run *run;
    quiet q = {0};
    train_observer observer = quiet_observer(&q);
    OK(train_run_start(&run, s, folder, err));
    OK(train_loop(run, &observer, err));
    uint64_t hash = state_hash(run);
    *steps = run->step;
    train_run_close(run);
    return hash;
}

/* Stops after step `stop_at`, goes on with `threads`. */
static uint64_t run_in_two(const train_settings *s, const char *folder, int64_t stop_at, size_t threads)
{
    train_run *run;
    quiet q = {.stop_at = stop_at};
    train_observer observer = quiet_observer(&q);
    OK(train_run_start(&run, s, folder, err));
    FAILS(train_loop(run, &observer, err), LST_ERR_INTERRUPTED, "resume");
    train_run_close(run);
    train_changes changes = {.threads = threads};
    q = (quiet){0};
    OK(train_run_resume(&run, folder, &changes, err));
    assert_int_equal(run->step, stop_at);
    OK(train_loop(run, &observer, err));
    uint64_t hash = state_hash(run);
    train_run_close(run);
    return hash;
}

static void same_bits(void **state, const train_settings *s)
{
    const temp_folder *folder = *state;
    int64_t steps;
    uint64_t whole = run_through(s, temp_path(folder, "whole"), &steps);
    assert_int_equal(steps, s->schedule.total_steps);
    assert_true(run_in_two(s, temp_path(folder, "parts"), 7, 2) == whole);
    char *a = metrics_of(temp_path(folder, "whole")), *b = metrics_of(temp_path(folder, "parts"));
    assert_string_equal(a, b);
    free(a);
    free(b);
    OK(lst__remove_tree(temp_path(folder, "whole"), err));
    OK(lst__remove_tree(temp_path(folder, "parts"), err));
}

static void every_weight_form(void **state, lst_grad_mode mode)
{
    write_text(*state, "text");
    for (int form = 0; form < LST_N_WEIGHT_FORMS; form++) {
        train_settings s = small_settings(*state);
        s.recipe.weights = (lst_weight_form)form;
        s.recipe.grad_mode = mode;
        if (mode == LST_GRAD_RELEASE)
            s.recipe.clip_norm = 0;
        same_bits(state, &s);
    }
}

static void resumed_is_bit_equal_keeping_gradients(void **state)
{
    every_weight_form(state, LST_GRAD_KEEP);
}

static void resumed_is_bit_equal_releasing_gradients(void **state)
{
    every_weight_form(state, LST_GRAD_RELEASE);
}

static void resumed_is_bit_equal_for_every_rule(void **state)
{
    write_text(*state, "text");
    for (int rule = 0; rule < LST_N_RULES; rule++) {
        train_settings s = small_settings(*state);
        s.recipe.rule = (lst_rule)rule;
        lst_hyper_default(s.recipe.rule, &s.recipe.hyper);
        s.recipe.hyper.lr = 1e-3;
        if (train_keeps_own_rate(&s.recipe)) {
            s.schedule.kind = LST_SCHEDULE_CONSTANT;
            s.schedule.warmup_steps = 0;
        }
        same_bits(state, &s);
    }
}

static void resumed_keeps_the_loss_scale(void **state)
{
    write_text(*state, "text");
    train_settings s = small_settings(*state);
    s.recipe.weights = LST_WEIGHT_F16_MASTER;
    s.recipe.grads = LST_CODEC_F16;
    s.recipe.loss_scale = true;
    same_bits(state, &s);
}

/* A checkpoint that is older than the last line: lines beyond it go, and come again. */
static void killed_between_checkpoints(void **state)
{
    const temp_folder *folder = *state;
    write_text(folder, "text");
    train_settings s = small_settings(folder);
    int64_t steps;
    uint64_t whole = run_through(&s, temp_path(folder, "whole"), &steps);
    train_run *run;
    const char *parts = temp_path(folder, "parts");
    OK(train_run_start(&run, &s, parts, err));
    double loss;
    OK(train_run_validate(run, &loss, err));
    for (int i = 0; i < 8; i++) {
        train_step step;
        OK(train_run_step(run, &step, err));
        if (run->step == 4)
            OK(train_run_validate(run, &loss, err));
        if (run->step == 5)
            OK(train_run_save(run, err));
    }
    train_run_close(run); /* as a kill would leave it: steps 6 to 8 are lost */
    FILE *metrics = fopen(temp_path(folder, "parts/metrics.jsonl"), "a");
    fputs("{\"step\":9,\"lo", metrics);
    fclose(metrics);
    temp_write(folder, "parts/checkpoint-00000010.tmp-4194399/model.safetensors", "half");
    train_changes none = {0};
    quiet q = {0};
    train_observer observer = quiet_observer(&q);
    OK(train_run_resume(&run, parts, &none, err));
    assert_int_equal(run->step, 5);
    assert_false(lst__is_dir(temp_path(folder, "parts/checkpoint-00000010.tmp-4194399")));
    OK(train_loop(run, &observer, err));
    assert_true(state_hash(run) == whole);
    train_run_close(run);
    char *a = metrics_of(temp_path(folder, "whole")), *b = metrics_of(temp_path(folder, "parts"));
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void complete_runs_go_on_only_when_asked(void **state)
{
    const temp_folder *folder = *state;
    write_text(folder, "text");
    train_settings s = small_settings(folder);
    int64_t steps;
    (void)run_through(&s, temp_path(folder, "run"), &steps);
    train_run *run;
    train_changes changes = {0};
    FAILS(train_run_resume(&run, temp_path(folder, "run"), &changes, err), LST_ERR_STATE, "is complete: step 12 of 12");
    changes.total_steps = 15;
    quiet q = {0};
    train_observer observer = quiet_observer(&q);
    OK(train_run_resume(&run, temp_path(folder, "run"), &changes, err));
    OK(train_loop(run, &observer, err));
    assert_int_equal(run->step, 15);
    train_run_close(run);
}

static void other_data_are_refused(void **state)
{
    const temp_folder *folder = *state;
    write_text(folder, "text");
    train_settings s = small_settings(folder);
    (void)run_in_two(&s, temp_path(folder, "run"), 6, 1);
    temp_write(folder, "text/doc03.txt", "something else altogether");
    train_run *run;
    train_changes changes = {.total_steps = 20};
    FAILS(train_run_resume(&run, temp_path(folder, "run"), &changes, err), LST_ERR_STATE, "have changed");
    write_text(folder, "moved"); /* the same text at another place is the same data */
    changes.data = temp_path(folder, "moved");
    OK(train_run_resume(&run, temp_path(folder, "run"), &changes, err));
    train_run_close(run);
}

static void other_models_are_refused(void **state)
{
    const temp_folder *folder = *state;
    write_text(folder, "text");
    train_settings s = small_settings(folder);
    int64_t steps;
    (void)run_through(&s, temp_path(folder, "a"), &steps);
    s.arch.heads = 2; /* the same shapes, read otherwise */
    s.arch.kv_heads = 1;
    s.arch.head_dim = 8;
    (void)run_through(&s, temp_path(folder, "b"), &steps);
    OK(lst__remove_tree(temp_path(folder, "b/checkpoint-00000012"), err));
    assert_int_equal(rename(temp_path(folder, "a/checkpoint-00000012"), temp_path(folder, "b/checkpoint-00000012")), 0);
    train_run *run;
    train_changes changes = {.total_steps = 20};
    FAILS(train_run_resume(&run, temp_path(folder, "b"), &changes, err), LST_ERR_STATE, "another model");
}

static void existing_folders_are_not_overwritten(void **state)
{
    const temp_folder *folder = *state;
    write_text(folder, "text");
    train_settings s = small_settings(folder);
    int64_t steps;
    (void)run_through(&s, temp_path(folder, "run"), &steps);
    train_run *run;
    FAILS(train_run_start(&run, &s, temp_path(folder, "run"), err), LST_ERR_STATE, "leanstep resume");
    FAILS(train_run_start(&run, &s, temp_path(folder, "text"), err), LST_ERR_STATE, "--out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(resumed_is_bit_equal_keeping_gradients),
        TEST(resumed_is_bit_equal_releasing_gradients),
        TEST(resumed_is_bit_equal_for_every_rule),
        TEST(resumed_keeps_the_loss_scale),
        TEST(killed_between_checkpoints),
        TEST(complete_runs_go_on_only_when_asked),
        TEST(other_data_are_refused),
        TEST(other_models_are_refused),
        TEST(existing_folders_are_not_overwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
