/* SPDX-License-Identifier: MIT */
#include "model/mlp.h"

#define TASK_ELEMS 16384

typedef struct mlp_job {
    const model_loops *loops;
    float *product, *gate, *up;
    size_t n;
} mlp_job;

static size_t part(const mlp_job *j, size_t index)
{
    size_t first = index * TASK_ELEMS;
    return j->n - first < TASK_ELEMS ? j->n - first : TASK_ELEMS;
}

static void forward_task(void *context, size_t index, size_t worker)
{
    const mlp_job *j = context;
    size_t first = index * TASK_ELEMS;
    (void)worker;
    if (j->gate)
        j->loops->swiglu(j->product + first, j->gate + first, j->up + first, part(j, index));
    else
        j->loops->gelu(j->product + first, j->up + first, part(j, index));
}

void model_mlp_forward(const model_work *work, float *product, const float *gate, const float *up, size_t n)
{
    mlp_job j = {.loops = work->loops, .product = product, .gate = (float *)gate, .up = (float *)up, .n = n};
    lst_pool_run(work->pool, model_tasks(n, TASK_ELEMS), forward_task, &j);
}

static void backward_task(void *context, size_t index, size_t worker)
{
    const mlp_job *j = context;
    size_t first = index * TASK_ELEMS;
    (void)worker;
    if (j->gate)
        j->loops->swiglu_backward(j->gate + first, j->up + first, j->product + first, part(j, index));
    else
        j->loops->gelu_backward(j->up + first, j->product + first, part(j, index));
}

void model_mlp_backward(const model_work *work, float *gate, float *up, const float *d_product, size_t n)
{
    mlp_job j = {.loops = work->loops, .product = (float *)d_product, .gate = gate, .up = up, .n = n};
    lst_pool_run(work->pool, model_tasks(n, TASK_ELEMS), backward_task, &j);
}
