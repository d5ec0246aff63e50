/* SPDX-License-Identifier: MIT */
#include "leanstep/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/fail.h"

/* How a run works. The word `ticket` holds (run number << 32 | next index). A thread takes a task by a compare-and-swap
 * that raises the index; it succeeds only while the run that it read is still the current one. So nobody waits for a
 * thread that is late: a run ends when `done` counts all its tasks, whoever did them. The fields of the run are written
 * while the ticket's index is CLOSED, and are read before the swap: if they belong to a newer run, the swap fails.
 *
 * Waiting: a bounded spin (small runs follow each other within microseconds), then sleep on a condition, so that an
 * idle pool costs nothing. */

#define CLOSED UINT32_MAX
/* The most tasks one ticket can count; a longer run is cut into several. */
#define MAX_TASKS ((size_t)1 << 31)
/* Looks before sleeping; with the pause in between about 50 microseconds on a Zen 3 core. Waking a sleeper costs about
 * as much, so spinning longer would lose more than it can win. */
#define SPIN_LOOKS 4000

#define CACHE_LINE 64

typedef struct worker {
    lst_pool *pool;
    size_t number;
    pthread_t thread;
} worker;

struct lst_pool {
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket;
    _Alignas(CACHE_LINE) atomic_size_t done;
    _Alignas(CACHE_LINE) atomic_size_t n_tasks;
    atomic_size_t first; /* index of the ticket's task 0 */
    _Atomic(lst_task_fn *) fn;
    _Atomic(void *) context;
    _Alignas(CACHE_LINE) atomic_size_t sleepers; /* workers on `work`, or about to be */
    atomic_bool caller_sleeps;
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t work, finished;
    size_t n_threads;
    size_t n_started; /* threads that exist, the caller not counted */
    unsigned spin_looks;
    worker *workers;
    void *block; /* what was allocated; the pool lies in it at a cache line */
};

static inline void pause_a_moment(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes and does tasks until none is left to take. */
static void do_tasks(lst_pool *pool, size_t number)
{
    for (;;) {
        uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
        uint32_t index = (uint32_t)ticket;
        size_t n_tasks = atomic_load_explicit(&pool->n_tasks, memory_order_acquire);
        size_t first = atomic_load_explicit(&pool->first, memory_order_acquire);
        lst_task_fn *fn = atomic_load_explicit(&pool->fn, memory_order_acquire);
        void *context = atomic_load_explicit(&pool->context, memory_order_acquire);
        if (index == CLOSED || index >= n_tasks)
            return;
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket + 1, memory_order_acq_rel,
                                                   memory_order_relaxed))
            continue;
        fn(context, first + index, number);
        if (atomic_fetch_add(&pool->done, 1) + 1 == n_tasks && atomic_load(&pool->caller_sleeps)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

static bool has_news(lst_pool *pool, uint32_t seen_run)
{
    uint64_t ticket = atomic_load(&pool->ticket);
    return ((uint32_t)(ticket >> 32) != seen_run && (uint32_t)ticket != CLOSED) || atomic_load(&pool->stop);
}

static void wait_for_news(lst_pool *pool, uint32_t seen_run)
{
    for (unsigned i = 0; i < pool->spin_looks; i++) {
        if (has_news(pool, seen_run))
            return;
        pause_a_moment();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!has_news(pool, seen_run))
        pthread_cond_wait(&pool->work, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    lst_pool *pool = self->pool;
    uint32_t seen_run = 0;
    for (;;) {
        wait_for_news(pool, seen_run);
        if (atomic_load(&pool->stop))
            return NULL;
        seen_run = (uint32_t)(atomic_load(&pool->ticket) >> 32);
        do_tasks(pool, self->number);
    }
}

static void wake_workers(lst_pool *pool, size_t n_wanted)
{
    size_t sleepers = atomic_load(&pool->sleepers);
    if (sleepers == 0)
        return;
    pthread_mutex_lock(&pool->mutex);
    if (n_wanted >= sleepers) {
        pthread_cond_broadcast(&pool->work);
    } else {
        for (size_t i = 0; i < n_wanted; i++)
            pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->mutex);
}

static void wait_until_done(lst_pool *pool, size_t n_tasks)
{
    for (unsigned i = 0; i < pool->spin_looks; i++) {
        if (atomic_load(&pool->done) == n_tasks)
            return;
        pause_a_moment();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->caller_sleeps, true);
    while (atomic_load(&pool->done) != n_tasks)
        pthread_cond_wait(&pool->finished, &pool->mutex);
    atomic_store(&pool->caller_sleeps, false);
    pthread_mutex_unlock(&pool->mutex);
}

/* The run number never is 0 while a run is open: workers start with having seen 0. */
static uint64_t next_run(uint64_t ticket)
{
    uint32_t run = (uint32_t)(ticket >> 32) + 1;
    return (uint64_t)(run == 0 ? 1 : run) << 32;
}

static void run_part(lst_pool *pool, size_t first, size_t n_tasks, lst_task_fn *fn, void *context)
{
    uint64_t run = next_run(atomic_load(&pool->ticket));
    atomic_store(&pool->ticket, run | CLOSED);
    atomic_store_explicit(&pool->done, 0, memory_order_release);
    atomic_store_explicit(&pool->n_tasks, n_tasks, memory_order_release);
    atomic_store_explicit(&pool->first, first, memory_order_release);
    atomic_store_explicit(&pool->fn, fn, memory_order_release);
    atomic_store_explicit(&pool->context, context, memory_order_release);
    atomic_store(&pool->ticket, run);
    wake_workers(pool, n_tasks - 1);
    do_tasks(pool, 0);
    wait_until_done(pool, n_tasks);
}

void lst_pool_run(lst_pool *pool, size_t n_tasks, lst_task_fn *fn, void *context)
{
    if (pool == NULL || pool->n_threads == 1 || n_tasks == 1) {
        for (size_t i = 0; i < n_tasks; i++)
            fn(context, i, 0);
        return;
    }
    for (size_t first = 0; first < n_tasks; first += MAX_TASKS) {
        size_t n = n_tasks - first < MAX_TASKS ? n_tasks - first : MAX_TASKS;
        run_part(pool, first, n, fn, context);
    }
}

size_t lst_pool_threads(const lst_pool *pool)
{
    return pool == NULL ? 1 : pool->n_threads;
}

static size_t usable_cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    /* More than 1,024 processors do not fit the set; then the call fails and one is a safe answer. */
    size_t n = sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
    lst_cgroup group;
    lst__cgroup_read(&group);
    if (group.cpus > 0 && (double)n > group.cpus)
        n = group.cpus < 1.5 ? 1 : (size_t)(group.cpus + 0.5);
    return n == 0 ? 1 : n;
}

/* Starts the threads with all signals blocked, so that Ctrl-C reaches the thread that handles it. */
static int start_workers(lst_pool *pool)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = 0;
    while (error == 0 && pool->n_started + 1 < pool->n_threads) {
        worker *next = &pool->workers[pool->n_started];
        *next = (worker){.pool = pool, .number = pool->n_started + 1};
        error = pthread_create(&next->thread, NULL, worker_main, next);
        pool->n_started += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static lst_pool *allocate(size_t n_threads)
{
    void *block = lst__alloc(1, sizeof(lst_pool) + CACHE_LINE);
    if (block == NULL)
        return NULL;
    lst_pool *pool = (lst_pool *)(((uintptr_t)block + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    pool->block = block;
    pool->workers = lst__alloc(n_threads, sizeof(worker));
    if (pool->workers == NULL) {
        lst__free(block);
        return NULL;
    }
    return pool;
}

lst_status lst_pool_create(lst_pool **out, size_t n_threads, lst_error *err)
{
    size_t n_cpus = usable_cpus();
    if (n_threads == 0)
        n_threads = n_cpus;
    if (n_threads > 4096)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "%zu threads asked for; this machine lets the process use %zu, and 4096 is the most",
                         n_threads, n_cpus);
    lst_pool *pool = allocate(n_threads);
    if (pool == NULL)
        return lst__fail_memory(err, "a thread pool", sizeof *pool + n_threads * sizeof(worker));
    pool->n_threads = n_threads;
    /* Spinning with more threads than processors only keeps the one that works from its processor. */
    pool->spin_looks = n_threads <= n_cpus ? SPIN_LOOKS : 0;
    atomic_store(&pool->ticket, CLOSED);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->finished, NULL);
    int error = start_workers(pool);
    if (error != 0) {
        size_t n_started = pool->n_started + 1;
        lst_pool_destroy(pool);
        return lst__fail_errno(err, error, "cannot start thread %zu of %zu; ask for fewer threads or raise ulimit -u",
                               n_started + 1, n_threads);
    }
    *out = pool;
    return LST_OK;
}

void lst_pool_destroy(lst_pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->stop, true);
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->mutex);
    lst__free(pool->workers);
    lst__free(pool->block);
}
