/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "ckpt/toy.h"

/* Folders of checkpoints: they appear whole, are replaced whole, go whole, and survive a kill at any moment. */

static char run[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(run, "/tmp/lst_test_run_XXXXXX");
    return mkdtemp(run) == NULL;
}

static int drop_folder(void **state)
{
    (void)state;
    return lst__remove_tree(run, NULL) != LST_OK;
}

static size_t count_entries(void)
{
    size_t n = 0;
    DIR *dir = opendir(run);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2;
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void save(int64_t step, const char *text, size_t keep)
{
    lst_ckpt *ckpt;
    lst_error err;
    assert_int_equal(lst_ckpt_begin(&ckpt, run, step, &err), LST_OK);
    put(lst_ckpt_folder(ckpt), "file", text);
    if (lst_ckpt_commit(ckpt, keep, &err) != LST_OK)
        fail_msg("%s", err.message);
}

static void expect_latest(int64_t step, const char *text)
{
    char *path;
    int64_t found;
    assert_int_equal(lst_ckpt_latest(run, &path, &found, NULL), LST_OK);
    assert_true(found == step);
    char file[512], line[64] = "";
    snprintf(file, sizeof file, "%s/file", path);
    FILE *in = fopen(file, "r");
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof line, in));
    fclose(in);
    assert_string_equal(line, text);
    lst_ckpt_free(path);
}

static void test_keep(void **state)
{
    (void)state;
    for (int64_t step = 1; step <= 4; step++) {
        save(step, "x", 0);
        assert_int_equal(count_entries(), step);
    }
    save(100000000000, "far", 3);
    assert_int_equal(count_entries(), 3);
    expect_latest(100000000000, "far");
    save(5, "earlier", 1); /* the one just saved stays, whatever its step */
    assert_int_equal(count_entries(), 1);
    expect_latest(5, "earlier");
}

static void test_same_step_is_replaced(void **state)
{
    (void)state;
    save(7, "old", 2);
    save(7, "new", 2);
    assert_int_equal(count_entries(), 1);
    expect_latest(7, "new");
}

static void test_nothing_appears_before_commit(void **state)
{
    (void)state;
    lst_ckpt *ckpt;
    char *path;
    lst_error err;
    assert_int_equal(lst_ckpt_latest(run, &path, NULL, &err), LST_ERR_STATE);
    assert_non_null(strstr(err.message, "holds no complete checkpoint"));
    assert_int_equal(lst_ckpt_begin(&ckpt, run, 1, &err), LST_OK);
    put(lst_ckpt_folder(ckpt), "file", "x");
    assert_int_equal(lst_ckpt_latest(run, &path, NULL, &err), LST_ERR_STATE);
    lst_ckpt_abort(ckpt);
    lst_ckpt_abort(NULL);
    assert_int_equal(count_entries(), 0);
    assert_int_equal(lst_ckpt_begin(&ckpt, run, -1, &err), LST_ERR_ARGUMENT);
    assert_int_equal(lst_ckpt_latest("/nonexistent", &path, NULL, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "/nonexistent"));
    put(run, "a_file", "x");
    char below[128];
    snprintf(below, sizeof below, "%s/a_file", run);
    assert_int_equal(lst_ckpt_begin(&ckpt, below, 1, &err), LST_ERR_IO);
}

static void test_clean(void **state)
{
    (void)state;
    char name[128];
    /* a process that is gone */
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    waitpid(gone, NULL, 0);
    save(3, "kept", 0);
    snprintf(name, sizeof name, "%s/checkpoint-00000004.tmp-%d", run, (int)gone);
    assert_int_equal(lst__make_dirs(name, NULL), LST_OK);
    put(name, "half", "x");
    snprintf(name, sizeof name, "report.html.tmp-%d-0", (int)gone);
    put(run, name, "x");
    snprintf(name, sizeof name, "metrics.jsonl.tmp-%d-1", (int)getpid());
    put(run, name, "x");
    /* not ours to remove: a living process, and names that only look like it */
    snprintf(name, sizeof name, "alive.tmp-%d", (int)getppid());
    put(run, name, "x");
    put(run, "notes.tmp-x", "x");
    put(run, "notes.tmp-12y", "x");
    put(run, "plain", "x");
    put(run, "checkpoint-abc", "x");
    assert_int_equal(count_entries(), 9);
    assert_int_equal(lst_ckpt_clean(run, NULL), LST_OK);
    assert_int_equal(count_entries(), 6);
    expect_latest(3, "kept");
}

/* Whether the run has a complete checkpoint beyond this step by now. */
static bool has_checkpoint_after(int64_t step)
{
    char *path = NULL;
    int64_t found = -1;
    lst_status status = lst_ckpt_latest(run, &path, &found, NULL);
    lst_ckpt_free(path);
    return status == LST_OK && found > step;
}

static lst_status save_and_find(char **path, lst_error *err)
{
    lst_ckpt *ckpt;
    lst_status status = lst_ckpt_begin(&ckpt, run, 5, err);
    if (status == LST_OK)
        status = lst_ckpt_commit(ckpt, 1, err);
    if (status == LST_OK)
        status = lst_ckpt_clean(run, err);
    return status == LST_OK ? lst_ckpt_latest(run, path, NULL, err) : status;
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    char name[128];
    snprintf(name, sizeof name, "stale.tmp-%d", (int)getpid());
    for (uint64_t n = 1;; n++) {
        save(4, "old", 0);
        put(run, name, "x");
        char *path = NULL;
        lst_error err = {0};
        lst__fault_arm(n);
        lst_status status = save_and_find(&path, &err);
        int struck = lst__fault_struck();
        lst__fault_arm(0);
        assert_int_equal(status, struck ? LST_ERR_MEMORY : LST_OK);
        assert_true(has_checkpoint_after(3)); /* the old one or the new one */
        lst_ckpt_free(path);
        assert_int_equal(lst_ckpt_clean(run, NULL), LST_OK);
        if (!struck) {
            assert_true(n > 8);
            assert_int_equal(count_entries(), 1);
            return;
        }
    }
}

/* A file size limit stands for the full disk. */
static void test_disk_full_leaves_the_previous_one(void **state)
{
    (void)state;
    save(1, "before", 1);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = 30000, .rlim_max = 30000};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
        toy t;
        lst_ckpt *ckpt;
        char path[256];
        lst_error err = {0};
        int ok = toy_create(&t, LST_RULE_ADAM, LST_WEIGHT_F32) == LST_OK && toy_start(&t) == LST_OK;
        ok = ok && lst_ckpt_begin(&ckpt, run, 2, &err) == LST_OK;
        if (ok) {
            snprintf(path, sizeof path, "%s/" LST_CKPT_OPTIM, lst_ckpt_folder(ckpt));
            ok = lst_ckpt_save_optim(path, t.optim, NULL, &err) == LST_ERR_IO && strstr(err.message, path) != NULL;
            lst_ckpt_abort(ckpt);
        }
        _exit(ok ? 0 : 1);
    }
    int result;
    waitpid(child, &result, 0);
    assert_int_equal(result, 0);
    assert_int_equal(count_entries(), 1);
    expect_latest(1, "before");
}

/* ---- kill -9 ---- */

/* Saves for ever; everything in the checkpoint of a step is a function of the step. */
static void save_for_ever(int64_t step)
{
    toy t;
    lst_ckpt_tensor list[TOY_TENSORS];
    if (toy_create(&t, LST_RULE_ADAM, LST_WEIGHT_F32) != LST_OK || toy_start(&t) != LST_OK)
        _exit(2);
    toy_list(&t, list);
    for (;;) {
        step++;
        for (size_t i = 0; i < TOY_TENSORS; i++) {
            for (size_t k = 0; k < t.n_elems[i]; k++)
                ((float *)t.weights[i])[k] = (float)step;
            for (size_t s = 0; s < 2; s++)
                for (size_t k = 0; k < t.n_elems[i]; k++)
                    ((float *)lst_optim_slot(t.optim, i, s)->memory)[k] = (float)step + 0.5f;
            if (lst_optim_set_steps(t.optim, i, step, NULL) != LST_OK)
                _exit(3);
        }
        lst_ckpt *ckpt;
        char path[256];
        if (lst_ckpt_begin(&ckpt, run, step, NULL) != LST_OK)
            _exit(4);
        snprintf(path, sizeof path, "%s/" LST_CKPT_WEIGHTS, lst_ckpt_folder(ckpt));
        lst_status status = lst_ckpt_save_weights(path, list, TOY_TENSORS, NULL);
        snprintf(path, sizeof path, "%s/" LST_CKPT_OPTIM, lst_ckpt_folder(ckpt));
        if (status == LST_OK)
            status = lst_ckpt_save_optim(path, t.optim, "x", NULL);
        if (status != LST_OK || lst_ckpt_commit(ckpt, 2, NULL) != LST_OK)
            _exit(5);
    }
}

/* Loads the newest checkpoint and checks every value; returns its step. */
static int64_t load_and_check(void)
{
    toy t;
    lst_ckpt_tensor list[TOY_TENSORS];
    lst_error err = {0};
    char *path, file[512];
    int64_t step;
    assert_int_equal(lst_ckpt_clean(run, &err), LST_OK);
    assert_int_equal(lst_ckpt_latest(run, &path, &step, &err), LST_OK);
    assert_int_equal(toy_create(&t, LST_RULE_ADAM, LST_WEIGHT_F32), LST_OK);
    toy_list(&t, list);
    if (lst_ckpt_load_weights(path, list, TOY_TENSORS, NULL, &err) != LST_OK)
        fail_msg("%s", err.message);
    snprintf(file, sizeof file, "%s/" LST_CKPT_OPTIM, path);
    if (lst_ckpt_load_optim(file, t.optim, &err) != LST_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < TOY_TENSORS; i++) {
        assert_true(lst_optim_steps(t.optim, i) == step);
        for (size_t k = 0; k < t.n_elems[i]; k++) {
            assert_true(((float *)t.weights[i])[k] == (float)step);
            assert_true(((float *)lst_optim_slot(t.optim, i, 0)->memory)[k] == (float)step + 0.5f);
            assert_true(((float *)lst_optim_slot(t.optim, i, 1)->memory)[k] == (float)step + 0.5f);
        }
    }
    toy_destroy(&t);
    lst_ckpt_free(path);
    return step;
}

static void test_killed_at_any_moment(void **state)
{
    (void)state;
    int64_t step = 0;
    for (uint64_t round = 0; round < 60; round++) {
        pid_t child = fork();
        if (child == 0)
            save_for_ever(step);
        /* every other child gets at least one done, however slow the disk */
        struct timespec pause = {0, 1000000};
        while (round % 2 == 0 && !has_checkpoint_after(step) && waitpid(child, NULL, WNOHANG) == 0)
            nanosleep(&pause, NULL);
        pause.tv_nsec = (long)lst__random_below(9, 0, round, 25000000);
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        int result;
        waitpid(child, &result, 0);
        assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL); /* it did not end by itself */
        int64_t found = load_and_check();
        assert_true(found >= step);
        step = found;
    }
    /* each kill may have left one that was about to be removed; the next commit removes them all */
    save(step + 1, "x", 2);
    assert_int_equal(count_entries(), 2);
    print_message("survived 60 kills, %lld checkpoints\n", (long long)step);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_keep),
        WITH_FOLDER(test_same_step_is_replaced),
        WITH_FOLDER(test_nothing_appears_before_commit),
        WITH_FOLDER(test_clean),
        WITH_FOLDER(test_disk_full_leaves_the_previous_one),
        WITH_FOLDER(test_every_allocation_fails_once),
        WITH_FOLDER(test_killed_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
