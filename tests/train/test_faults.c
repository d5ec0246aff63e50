/* SPDX-License-Identifier: MIT
 *
 * Every allocation of a run fails once: each time a message, nothing leaked (under the address sanitizer), and no
 * folder that looks like a run without being one.
 */
#include "train/fixture.h"

#include "base/alloc.h"

static train_settings tiny_settings(const temp_folder *folder)
{
    train_settings s = small_settings(folder);
    s.schedule.total_steps = 2;
    s.eval_every = 1;
    s.eval_sequences = 1;
    s.save_every = 1;
    s.recipe.accumulation = 1;
    return s;
}

/* A run from start to report; the first status that is not LST_OK. */
static lst_status whole_run(const train_settings *s, const char *folder, lst_error *err)
{
    train_run *run;
    quiet q = {0};
    train_observer observer = quiet_observer(&q);
    lst_status status = train_run_start(&run, s, folder, err);
    if (status != LST_OK)
        return status;
    status = train_loop(run, &observer, err);
    if (status == LST_OK)
        status = train_run_report(run, NULL, err);
    train_run_close(run);
    return status;
}

static void every_allocation_of_a_run_fails_once(void **state)
{
    const temp_folder *folder = *state;
    write_text(folder, "text");
    train_settings s = tiny_settings(folder);
    const char *path = temp_path(folder, "run");
    char run[512];
    strcpy(run, path);
    lst_status status = LST_ERR_MEMORY;
    for (uint64_t n = 1; status != LST_OK; n++) {
        lst_error why = {0};
        lst__fault_arm(n);
        status = whole_run(&s, run, &why);
        bool struck = lst__fault_struck();
        lst__fault_arm(0);
        if (status != LST_OK && (!struck || why.message[0] == '\0'))
            fail_msg("allocation %llu: status %s, struck %d, \"%s\"", (unsigned long long)n, lst_status_name(status),
                     struck, why.message);
        if (lst__is_dir(run)) {
            char settings[600];
            snprintf(settings, sizeof settings, "%s/settings.json", run);
            assert_true(lst__is_file(settings));
            OK(lst__remove_tree(run, err));
        }
        assert_true(n < 100000);
    }
}

static lst_status resume_once(const char *folder, lst_error *err)
{
    train_run *run;
    train_changes changes = {.total_steps = 3};
    lst_status status = train_run_resume(&run, folder, &changes, err);
    if (status == LST_OK)
        train_run_close(run);
    return status;
}

static void every_allocation_of_a_resume_fails_once(void **state)
{
    const temp_folder *folder = *state;
    write_text(folder, "text");
    train_settings s = tiny_settings(folder);
    char run[512];
    strcpy(run, temp_path(folder, "run"));
    OK(whole_run(&s, run, err));
    lst_status status = LST_ERR_MEMORY;
    for (uint64_t n = 1; status != LST_OK; n++) {
        lst_error why = {0};
        lst__fault_arm(n);
        status = resume_once(run, &why);
        bool struck = lst__fault_struck();
        lst__fault_arm(0);
        if (status != LST_OK && (!struck || why.message[0] == '\0'))
            fail_msg("allocation %llu: status %s, struck %d, \"%s\"", (unsigned long long)n, lst_status_name(status),
                     struck, why.message);
        assert_true(n < 100000);
    }
    OK(resume_once(run, err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_allocation_of_a_run_fails_once),
        TEST(every_allocation_of_a_resume_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
