/* SPDX-License-Identifier: MIT
 *
 * The program itself under bad weather: killed at any moment, interrupted, out of disk; and the same bits afterwards.
 */
#include "train/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEPS "60"

static const char config[] = "{\"model_type\":\"llama\",\"vocab_size\":257,\"hidden_size\":32,\"intermediate_size\":64,"
                             "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"max_position_embeddings\":128,"
                             "\"tie_word_embeddings\":true}";

/* Starts the program with these words; output goes to OUT in the folder. */
static pid_t start(const temp_folder *folder, rlim_t file_limit, const char *const *words)
{
    char *argv[40] = {(char *)(uintptr_t)LEANSTEP_PROGRAM};
    size_t n = 1;
    for (; words[n - 1]; n++)
        argv[n] = (char *)(uintptr_t)words[n - 1];
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int out = open(temp_path(folder, "OUT"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir(folder->path) != 0)
            _exit(99);
        if (file_limit != RLIM_INFINITY) {
            struct rlimit limit = {file_limit, file_limit};
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        execv(argv[0], argv);
        _exit(98);
    }
    assert_true(pid > 0);
    return pid;
}

static int finish(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static char *output(const temp_folder *folder)
{
    static char *text; /* static: gcc 12 takes a pointer read through its address for one to it */
    size_t n;
    OK(lst__file_read(temp_path(folder, "OUT"), SIZE_MAX / 2, &text, &n, err));
    return text;
}

static double number_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    return at ? strtod(at + strlen(words), NULL) : NAN;
}

#define RUN(folder, ...) finish(start(folder, RLIM_INFINITY, (const char *const[]){__VA_ARGS__, NULL}))
#define START(folder, ...) start(folder, RLIM_INFINITY, (const char *const[]){__VA_ARGS__, NULL})
#define TRAIN(steps)                                                                                                   \
    "train", "config.json", "--data", "text", "--batch", "2", "--seq", "32", "--steps", steps, "--save-every", "3",    \
        "--eval-every", "10", "--eval-sequences", "4", "--sample-tokens", "20"

static void prepare(const temp_folder *folder)
{
    write_text(folder, "text");
    temp_write(folder, "config.json", config);
}

static void same_file(const temp_folder *folder, const char *a, const char *b)
{
    char *x, *y;
    size_t n, m;
    OK(lst__file_read(temp_path(folder, a), SIZE_MAX / 2, &x, &n, err));
    OK(lst__file_read(temp_path(folder, b), SIZE_MAX / 2, &y, &m, err));
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Killed 12 times at moments spread over start, steps and saves, resumed with 1, 2 and 3 threads in turn. */
static void killed_at_any_moment(void **state)
{
    const temp_folder *folder = *state;
    prepare(folder);
    assert_int_equal(RUN(folder, TRAIN(STEPS), "--out", "whole"), 0);
    pid_t pid = START(folder, TRAIN(STEPS), "--out", "parts");
    for (int i = 0; i < 12; i++) {
        char threads[8];
        pause_ms(25 + i * 37 % 90);
        kill(pid, SIGKILL);
        (void)finish(pid);
        snprintf(threads, sizeof threads, "%d", 1 + i % 3);
        bool saved = lst__is_dir(temp_path(folder, "parts")) && RUN(folder, "generate", "parts", "--tokens", "1") == 0;
        if (!saved && lst__is_dir(temp_path(folder, "parts")))
            OK(lst__remove_tree(temp_path(folder, "parts"), err)); /* nothing was saved yet: begin again */
        pid = saved ? START(folder, "resume", "parts", "--threads", threads)
                    : START(folder, TRAIN(STEPS), "--out", "parts");
    }
    int last = finish(pid);
    if (last != 0) { /* complete before the last resume, which says so */
        char *text = output(folder);
        if (!strstr(text, "is complete"))
            fail_msg("%s", text);
        free(text);
    }
    same_file(folder, "whole/checkpoint-000000" STEPS "/model.safetensors",
              "parts/checkpoint-000000" STEPS "/model.safetensors");
    same_file(folder, "whole/checkpoint-000000" STEPS "/optimizer.safetensors",
              "parts/checkpoint-000000" STEPS "/optimizer.safetensors");
}

/* Waits until a training run has made its first checkpoint. */
static void wait_for_checkpoint(const temp_folder *folder, const char *name)
{
    for (int i = 0; i < 1000 && !lst__is_dir(temp_path(folder, name)); i++)
        pause_ms(10);
    assert_true(lst__is_dir(temp_path(folder, name)));
}

static void stops_cleanly(void **state, int number)
{
    const temp_folder *folder = *state;
    prepare(folder);
    pid_t pid = START(folder, TRAIN("100000"), "--out", "run");
    wait_for_checkpoint(folder, "run/checkpoint-00000003");
    kill(pid, number);
    assert_int_equal(finish(pid), 128 + number);
    char *text = output(folder);
    if (!strstr(text, "leanstep resume run"))
        fail_msg("%s", text);
    free(text);
    assert_true(lst__is_file(temp_path(folder, "run/report.html")));
    pid = START(folder, "resume", "run");
    pause_ms(300);
    kill(pid, number);
    assert_int_equal(finish(pid), 128 + number);
}

static void ctrl_c_saves_and_stops(void **state)
{
    stops_cleanly(state, SIGINT);
}

static void sigterm_saves_and_stops(void **state)
{
    stops_cleanly(state, SIGTERM);
}

/* A step of this run takes long enough for two signals to come inside it. */
static void second_ctrl_c_ends_at_once(void **state)
{
    const temp_folder *folder = *state;
    prepare(folder);
    pid_t pid = START(folder, "train", "demo", "--data", "text", "--batch", "4", "--seq", "128", "--accumulation", "64",
                      "--steps", "50", "--eval-every", "0", "--out", "run");
    wait_for_checkpoint(folder, "run");
    pause_ms(300);
    kill(pid, SIGINT);
    pause_ms(100);
    kill(pid, SIGINT);
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(finish(pid), 130);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(after.tv_sec - before.tv_sec < 2);
    assert_false(lst__is_dir(temp_path(folder, "run/checkpoint-00000001")));
}

/* The files of a checkpoint no longer fit: the run ends with a message, and the checkpoint before is whole. */
static void disk_full_while_saving(void **state)
{
    const temp_folder *folder = *state;
    prepare(folder);
    assert_int_equal(RUN(folder, TRAIN("6"), "--out", "run"), 0);
    int status = finish(start(folder, 60000, (const char *const[]){"resume", "run", "--steps", "12", NULL}));
    char *text = output(folder);
    assert_int_equal(status, 1);
    if (!strstr(text, "The checkpoint of step 6 is intact"))
        fail_msg("%s", text);
    free(text);
    assert_false(lst__is_dir(temp_path(folder, "run/checkpoint-00000009")));
    assert_int_equal(RUN(folder, "generate", "run", "--tokens", "3"), 0);
    assert_int_equal(RUN(folder, "resume", "run", "--steps", "12"), 0);
}

static void threads_do_not_change_a_bit(void **state)
{
    const temp_folder *folder = *state;
    prepare(folder);
    assert_int_equal(RUN(folder, TRAIN("9"), "--out", "one", "--threads", "1"), 0);
    assert_int_equal(RUN(folder, TRAIN("9"), "--out", "two", "--threads", "2"), 0);
    same_file(folder, "one/checkpoint-00000009/model.safetensors", "two/checkpoint-00000009/model.safetensors");
    same_file(folder, "one/checkpoint-00000009/optimizer.safetensors", "two/checkpoint-00000009/optimizer.safetensors");
}

/* Weights from a checkpoint's folder are a start like any other. */
static void trains_on_from_a_folder(void **state)
{
    const temp_folder *folder = *state;
    prepare(folder);
    assert_int_equal(RUN(folder, TRAIN("9"), "--out", "first"), 0);
    assert_int_equal(RUN(folder, "train", "first/checkpoint-00000009", "--data", "text", "--batch", "2", "--seq", "32",
                         "--steps", "2", "--progress", "json", "--out", "second"),
                     0);
    char *text = output(folder);
    assert_true(number_after(text, "\"loss\":") < 5.3); /* random weights begin at ln 257 = 5.55 */
    assert_true(text[0] == '{' && text[strlen(text) - 2] == '}');
    free(text);
}

static void measures_a_linear_layer(void **state)
{
    const temp_folder *folder = *state;
    assert_int_equal(RUN(folder, "measure", "--linear", "256x128"), 0);
    char *text = output(folder);
    assert_non_null(strstr(text, "32,768 parameters"));
    assert_non_null(strstr(text, "after the first step             262,144  8\n"));
    assert_null(strstr(text, "DIFFER"));
    free(text);
    for (int form = 0; form < LST_N_WEIGHT_FORMS; form++) {
        assert_int_equal(
            RUN(folder, "measure", "--linear", "64x96", "--weights", lst_weight_form_name((lst_weight_form)form)), 0);
        text = output(folder);
        assert_null(strstr(text, "DIFFER"));
        free(text);
    }
    assert_int_equal(RUN(folder, "measure", "--linear", "64by96"), 2);
    assert_int_equal(RUN(folder, "measure", "--linear", "64x96", "--batch", "3"), 2);
    assert_int_equal(RUN(folder, "measure"), 2);
}

static void measures_gradients(void **state)
{
    const temp_folder *folder = *state;
    prepare(folder);
    assert_int_equal(RUN(folder, "measure", "config.json", "--gradients"), 0);
    char *text = output(folder);
    assert_true(number_after(text, "Largest difference: ") < 2); /* per cent */
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_at_any_moment),       TEST(ctrl_c_saves_and_stops),  TEST(sigterm_saves_and_stops),
        TEST(second_ctrl_c_ends_at_once), TEST(disk_full_while_saving),  TEST(threads_do_not_change_a_bit),
        TEST(trains_on_from_a_folder),    TEST(measures_a_linear_layer), TEST(measures_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
