/* SPDX-License-Identifier: MIT
 *
 * What the layers work with: threads, loops, and the scratch that the plan gave them.
 */
#ifndef MODEL_WORK_H
#define MODEL_WORK_H

#include <stddef.h>

#include "leanstep/codec.h"
#include "leanstep/pool.h"
#include "model/loops.h"

typedef struct model_work {
    lst_pool *pool;
    const model_loops *loops;
    float *scratch;       /* [threads, scratch_elems] */
    size_t scratch_elems; /* of one worker */
    float *vectors;       /* [2, vector_elems]: widened norm weights; NULL where weights are float32 */
    size_t vector_elems;
} model_work;

static inline float *model_scratch(const model_work *work, size_t worker)
{
    return work->scratch + worker * work->scratch_elems;
}

/* n stored numbers, from element `first` on, as float32. */
void model_widen(float *out, const void *stored, lst_codec codec, size_t first, size_t n);
/* A vector as float32: itself, or widened into slot 0 or 1 of work->vectors. NULL stays NULL. */
const float *model_vector(const model_work *work, int slot, const void *stored, lst_codec codec, size_t n);

/* Rows handed out in tasks of this many: a fixed number, so that no result depends on the number of threads. */
#define MODEL_TASK_ROWS 16

static inline size_t model_tasks(size_t n, size_t each)
{
    return (n + each - 1) / each;
}

#endif
