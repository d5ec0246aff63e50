/* SPDX-License-Identifier: MIT
 *
 * A small thread pool whose results cannot depend on the number of threads: work is cut into numbered tasks by
 * the caller (never by thread), and a task may write only what its number owns. A sum over tasks is taken afterwards,
 * in the order of the numbers.
 *
 *     static void scale(void *context, size_t index, size_t worker)
 *     {
 *         float *x = (float *)context + index * 4096;      // 4,096 values a task, whatever the number of threads
 *         (void)worker;
 *         for (size_t i = 0; i < 4096; i++)
 *             x[i] *= 2;
 *     }
 *     ...
 *     lst_pool_run(pool, n_values / 4096, scale, values);
 *
 * Threads that have nothing to do spin for some microseconds and then sleep: many small runs in a row are cheap (about
 * 2 microseconds each on a Zen 3 machine), an idle pool costs nothing. Worker threads take no signals.
 */
#ifndef LEANSTEP_POOL_H
#define LEANSTEP_POOL_H

#include <stddef.h>

#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lst_pool lst_pool;

/* A task: `index` in [0, n_tasks) says which part of the work; `worker` in [0, n_threads) only picks scratch. */
typedef void lst_task_fn(void *context, size_t index, size_t worker);

/* n_threads >= 1, the calling thread included (so 1 starts no thread). 0 means: as many as the process may use (its CPU
 * affinity, and the cgroup's CPU quota). Fails with LST_ERR_MEMORY or LST_ERR_IO if the threads cannot be had; it never
 * makes do with fewer. */
LST_API LST_MUST_USE lst_status lst_pool_create(lst_pool **out, size_t n_threads, lst_error *err);
LST_API void lst_pool_destroy(lst_pool *pool);         /* NULL is allowed */
LST_API size_t lst_pool_threads(const lst_pool *pool); /* 1 for NULL */

/* Runs fn for every index in [0, n_tasks) and returns when all are done. pool NULL runs inline. Not re-entrant:
 * one run at a time per pool, and never from inside a task. */
LST_API void lst_pool_run(lst_pool *pool, size_t n_tasks, lst_task_fn *fn, void *context);

#ifdef __cplusplus
}
#endif
#endif
