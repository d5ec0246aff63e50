/* SPDX-License-Identifier: MIT */
#include "model/embed.h"

#include <string.h>

#define SUM_COLS 64 /* columns a task of backward: 4 cache lines, so that tasks share none */
#define ZERO_ELEMS 262144

typedef struct embed_job {
    const model_work *work;
    const model_embedding *e;
    const int32_t *ids;
    const float *dx;
    float *x, *d_tokens, *d_positions;
    size_t rows, seq, first;
} embed_job;

static void forward_task(void *context, size_t index, size_t worker)
{
    const embed_job *j = context;
    size_t n = j->e->hidden;
    float *position = model_scratch(j->work, worker);
    size_t begin = index * MODEL_TASK_ROWS, end = j->rows - begin < MODEL_TASK_ROWS ? j->rows : begin + MODEL_TASK_ROWS;
    for (size_t r = begin; r < end; r++) {
        float *x = j->x + r * n;
        model_widen(x, j->e->tokens, j->e->codec, (size_t)j->ids[r] * n, n);
        if (j->e->positions) {
            model_widen(position, j->e->positions, j->e->codec, (j->first + r % j->seq) * n, n);
            j->work->loops->add(x, position, n);
        }
    }
}

void model_embed_forward(const model_work *work, const model_embedding *e, float *x, const int32_t *ids, size_t rows,
                         size_t seq, size_t first)
{
    embed_job j = {.work = work, .e = e, .ids = ids, .x = x, .rows = rows, .seq = seq, .first = first};
    lst_pool_run(work->pool, model_tasks(rows, MODEL_TASK_ROWS), forward_task, &j);
}

/* A panel of columns, every row in order: two rows may hold the same token. */
static void backward_task(void *context, size_t index, size_t worker)
{
    const embed_job *j = context;
    size_t n = j->e->hidden, col = index * SUM_COLS, cols = n - col < SUM_COLS ? n - col : SUM_COLS;
    (void)worker;
    for (size_t r = 0; r < j->rows; r++) {
        const float *dx = j->dx + r * n + col;
        j->work->loops->add(j->d_tokens + (size_t)j->ids[r] * n + col, dx, cols);
        if (j->d_positions)
            j->work->loops->add(j->d_positions + r % j->seq * n + col, dx, cols);
    }
}

void model_embed_backward(const model_work *work, const model_embedding *e, float *d_tokens, float *d_positions,
                          const float *dx, const int32_t *ids, size_t rows, size_t seq)
{
    embed_job j = {.work = work,
                   .e = e,
                   .ids = ids,
                   .dx = dx,
                   .d_tokens = d_tokens,
                   .d_positions = d_positions,
                   .rows = rows,
                   .seq = seq};
    lst_pool_run(work->pool, model_tasks(e->hidden, SUM_COLS), backward_task, &j);
}

typedef struct zero_job {
    float *x;
    size_t n;
} zero_job;

static void zero_task(void *context, size_t index, size_t worker)
{
    const zero_job *j = context;
    size_t first = index * ZERO_ELEMS, n = j->n - first < ZERO_ELEMS ? j->n - first : ZERO_ELEMS;
    (void)worker;
    memset(j->x + first, 0, n * sizeof *j->x);
}

void model_zero(const model_work *work, float *x, size_t n)
{
    lst_pool_run(work->pool, model_tasks(n, ZERO_ELEMS), zero_task, &(zero_job){.x = x, .n = n});
}
