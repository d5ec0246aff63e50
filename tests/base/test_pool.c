/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "leanstep/pool.h"

/* The pool: every task exactly once, the same results for any number of threads, many small runs, clean failure. */

#define MAX_TASKS 3000

typedef struct job {
    size_t n_threads;
    uint64_t values[MAX_TASKS];
    atomic_uint times[MAX_TASKS];
    atomic_uint bad_worker;
} job;

static void fill_task(void *context, size_t index, size_t worker)
{
    job *j = context;
    if (worker >= j->n_threads)
        atomic_fetch_add(&j->bad_worker, 1);
    atomic_fetch_add(&j->times[index], 1);
    j->values[index] = lst__random_u64(1, 2, index);
}

static void run_and_check(lst_pool *pool, job *j, size_t n_tasks)
{
    memset(j, 0, sizeof *j);
    j->n_threads = lst_pool_threads(pool);
    lst_pool_run(pool, n_tasks, fill_task, j);
    for (size_t i = 0; i < MAX_TASKS; i++) {
        assert_int_equal(atomic_load(&j->times[i]), i < n_tasks);
        assert_true(j->values[i] == (i < n_tasks ? lst__random_u64(1, 2, i) : 0));
    }
    assert_int_equal(atomic_load(&j->bad_worker), 0);
}

static void test_every_task_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 1000, MAX_TASKS};
    job *j = malloc(sizeof *j);
    for (size_t n_threads = 0; n_threads <= 5; n_threads++) {
        lst_pool *pool = NULL;
        lst_error err;
        /* the turn of 0 is the pool that is NULL */
        if (n_threads > 0)
            assert_int_equal(lst_pool_create(&pool, n_threads, &err), LST_OK);
        assert_int_equal(lst_pool_threads(pool), n_threads == 0 ? 1 : n_threads);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            run_and_check(pool, j, sizes[s]);
        lst_pool_destroy(pool);
    }
    free(j);
}

static void add_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    atomic_fetch_add((_Atomic uint64_t *)context, index + 1);
}

static void test_many_small_runs(void **state)
{
    (void)state;
    for (size_t n_threads = 1; n_threads <= 4; n_threads++) {
        lst_pool *pool;
        assert_int_equal(lst_pool_create(&pool, n_threads, NULL), LST_OK);
        _Atomic uint64_t sum = 0;
        uint64_t expected = 0;
        for (size_t run = 0; run < 20000; run++) {
            size_t n = run % 6;
            expected += n * (n + 1) / 2;
            lst_pool_run(pool, n, add_task, &sum);
            assert_true(atomic_load(&sum) == expected);
            if (run % 997 == 0) { /* long enough for the workers to fall asleep */
                struct timespec pause = {0, 2000000};
                nanosleep(&pause, NULL);
            }
        }
        lst_pool_destroy(pool);
    }
}

static void slow_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    struct timespec pause = {0, index % 2 == 0 ? 3000000 : 10000};
    nanosleep(&pause, NULL);
    atomic_fetch_add((_Atomic uint64_t *)context, 1);
}

static void test_caller_waits_for_slow_tasks(void **state)
{
    (void)state;
    lst_pool *pool;
    assert_int_equal(lst_pool_create(&pool, 3, NULL), LST_OK);
    for (size_t run = 0; run < 40; run++) {
        _Atomic uint64_t n_done = 0;
        lst_pool_run(pool, 4, slow_task, &n_done);
        assert_true(atomic_load(&n_done) == 4);
    }
    lst_pool_destroy(pool);
}

static void test_idle_burns_nothing(void **state)
{
    (void)state;
    lst_pool *pool;
    assert_int_equal(lst_pool_create(&pool, 4, NULL), LST_OK);
    _Atomic uint64_t sum = 0;
    lst_pool_run(pool, 100, add_task, &sum);
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
    clock_t before = clock();
    pause.tv_nsec = 300000000;
    nanosleep(&pause, NULL);
    double used_s = (double)(clock() - before) / CLOCKS_PER_SEC;
    assert_true(used_s < 0.02);
    lst_pool_destroy(pool);
}

static void test_create_and_destroy(void **state)
{
    (void)state;
    lst_pool_destroy(NULL);
    for (size_t i = 0; i < 200; i++) {
        lst_pool *pool;
        assert_int_equal(lst_pool_create(&pool, 1 + i % 4, NULL), LST_OK);
        _Atomic uint64_t sum = 0;
        if (i % 3 == 0)
            lst_pool_run(pool, 3, add_task, &sum);
        lst_pool_destroy(pool);
    }
    lst_pool *pool;
    assert_int_equal(lst_pool_create(&pool, 0, NULL), LST_OK);
    assert_true(lst_pool_threads(pool) >= 1);
    lst_pool_destroy(pool);
}

static void test_failures_are_reported(void **state)
{
    (void)state;
    lst_pool *pool = NULL;
    lst_error err;
    assert_int_equal(lst_pool_create(&pool, 100000, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "100000 threads"));
    for (uint64_t n = 1; n <= 2; n++) {
        lst__fault_arm(n);
        assert_int_equal(lst_pool_create(&pool, 2, &err), LST_ERR_MEMORY);
        assert_true(lst__fault_struck());
        assert_null(pool);
    }
    lst__fault_arm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_once),
        cmocka_unit_test(test_many_small_runs),
        cmocka_unit_test(test_caller_waits_for_slow_tasks),
        cmocka_unit_test(test_idle_burns_nothing),
        cmocka_unit_test(test_create_and_destroy),
        cmocka_unit_test(test_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
