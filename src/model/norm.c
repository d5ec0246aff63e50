/* SPDX-License-Identifier: MIT */
#include "model/norm.h"

#include <string.h>

#define SUM_COLS 128

typedef struct norm_job {
    const model_work *work;
    const model_norm *norm;
    const float *weight, *bias;
    model_rows out, dy, x;
    float *stat, *dw, *db;
    size_t rows, heads;
    const int32_t *pick;
    bool add;
} norm_job;

/* Row r of the norm's input, or of its gradient. */
static float *input_row(const norm_job *j, model_rows x, size_t r)
{
    return x.data + (j->pick ? (size_t)j->pick[r] : r) * x.stride;
}

static size_t last_row(size_t first, size_t rows)
{
    return rows - first < MODEL_TASK_ROWS ? rows : first + MODEL_TASK_ROWS;
}

static norm_job job_of(const model_work *work, const model_norm *norm, size_t rows)
{
    return (norm_job){.work = work,
                      .norm = norm,
                      .rows = rows,
                      .weight = model_vector(work, 0, norm->weight, norm->codec, norm->n),
                      .bias = model_vector(work, 1, norm->bias, norm->codec, norm->n)};
}

/* ---- whole rows ---- */

static void forward_task(void *context, size_t index, size_t worker)
{
    const norm_job *j = context;
    (void)worker;
    for (size_t r = index * MODEL_TASK_ROWS, end = last_row(r, j->rows); r < end; r++) {
        const float *x = input_row(j, j->x, r);
        float *y = j->out.data + r * j->out.stride;
        if (j->bias)
            j->work->loops->layer_norm(x, j->weight, j->bias, y, j->stat + 2 * r, j->norm->n, j->norm->eps);
        else
            j->work->loops->rms_norm(x, j->weight, y, j->stat + 2 * r, j->norm->n, j->norm->eps);
    }
}

void model_norm_forward(const model_work *work, const model_norm *norm, model_rows y, float *stat, model_rows x,
                        model_norm_rows rows)
{
    norm_job j = job_of(work, norm, rows.rows);
    j.pick = rows.pick;
    j.out = y;
    j.x = x;
    j.stat = stat;
    lst_pool_run(work->pool, model_tasks(rows.rows, MODEL_TASK_ROWS), forward_task, &j);
}

static void input_task(void *context, size_t index, size_t worker)
{
    const norm_job *j = context;
    const model_loops *loops = j->work->loops;
    (void)worker;
    for (size_t r = index * MODEL_TASK_ROWS, end = last_row(r, j->rows); r < end; r++)
        (j->bias ? loops->layer_norm_backward
                 : loops->rms_norm_backward)(input_row(j, j->out, r), j->dy.data + r * j->dy.stride,
                                             input_row(j, j->x, r), j->weight, j->stat + 2 * r, j->norm->n);
}

/* Sums over rows, a panel of columns a task. */
static void weight_task(void *context, size_t index, size_t worker)
{
    const norm_job *j = context;
    (void)worker;
    size_t col = index * SUM_COLS, n = j->norm->n - col < SUM_COLS ? j->norm->n - col : SUM_COLS;
    double dw[SUM_COLS] = {0}, db[SUM_COLS] = {0};
    for (size_t r = 0; r < j->rows; r++)
        j->work->loops->norm_weights_backward(dw, j->db ? db : NULL, j->dy.data + r * j->dy.stride + col,
                                              input_row(j, j->x, r) + col, j->stat + 2 * r, n);
    for (size_t i = 0; i < n; i++)
        j->dw[col + i] = (float)(j->add ? j->dw[col + i] + dw[i] : dw[i]);
    for (size_t i = 0; j->db && i < n; i++)
        j->db[col + i] = (float)(j->add ? j->db[col + i] + db[i] : db[i]);
}

void model_norm_backward(const model_work *work, const model_norm *norm, const model_norm_grads *grads, model_rows dy,
                         model_rows x, const float *stat, model_norm_rows rows)
{
    norm_job j = job_of(work, norm, rows.rows);
    j.pick = rows.pick;
    j.out = grads->dx;
    j.dy = dy;
    j.x = x;
    j.stat = (float *)stat;
    j.dw = grads->dw;
    j.db = grads->db;
    j.add = grads->add;
    lst_pool_run(work->pool, model_tasks(norm->n, SUM_COLS), weight_task, &j);
    lst_pool_run(work->pool, model_tasks(rows.rows, MODEL_TASK_ROWS), input_task, &j);
}

/* ---- head by head ---- */

static void head_forward_task(void *context, size_t index, size_t worker)
{
    const norm_job *j = context;
    (void)worker;
    size_t n = j->norm->n;
    for (size_t r = index * MODEL_TASK_ROWS, end = last_row(r, j->rows); r < end; r++) {
        float *raw = j->x.data + r * j->x.stride, *x = j->out.data + r * j->out.stride, stat[2];
        memcpy(raw, x, j->heads * n * sizeof *x);
        for (size_t h = 0; h < j->heads; h++)
            j->work->loops->rms_norm(raw + h * n, j->weight, x + h * n, stat, n, j->norm->eps);
    }
}

void model_head_norm_forward(const model_work *work, const model_norm *norm, model_rows x, model_rows raw, size_t rows,
                             size_t heads)
{
    norm_job j = job_of(work, norm, rows);
    j.out = x;
    j.x = raw;
    j.heads = heads;
    lst_pool_run(work->pool, model_tasks(rows, MODEL_TASK_ROWS), head_forward_task, &j);
}

/* The statistics of a head are computed again rather than kept: a head is short. */
static void head_input_task(void *context, size_t index, size_t worker)
{
    const norm_job *j = context;
    size_t n = j->norm->n;
    float *scratch = model_scratch(j->work, worker), stat[2];
    for (size_t r = index * MODEL_TASK_ROWS, end = last_row(r, j->rows); r < end; r++)
        for (size_t h = 0; h < j->heads; h++) {
            float *dx = j->out.data + r * j->out.stride + h * n;
            const float *raw = j->x.data + r * j->x.stride + h * n;
            j->work->loops->rms_norm(raw, j->weight, scratch, stat, n, j->norm->eps);
            memcpy(scratch, dx, n * sizeof *dx);
            memset(dx, 0, n * sizeof *dx);
            j->work->loops->rms_norm_backward(dx, scratch, raw, j->weight, stat, n);
        }
}

static void head_weight_task(void *context, size_t index, size_t worker)
{
    const norm_job *j = context;
    size_t n = j->norm->n;
    double *sum = (double *)(void *)model_scratch(j->work, worker);
    float *y = (float *)(sum + n), stat[2];
    (void)index;
    memset(sum, 0, n * sizeof *sum);
    for (size_t r = 0; r < j->rows; r++)
        for (size_t h = 0; h < j->heads; h++) {
            const float *raw = j->x.data + r * j->x.stride + h * n;
            j->work->loops->rms_norm(raw, j->weight, y, stat, n, j->norm->eps);
            j->work->loops->norm_weights_backward(sum, NULL, j->out.data + r * j->out.stride + h * n, raw, stat, n);
        }
    for (size_t i = 0; i < n; i++)
        j->dw[i] = (float)(j->add ? j->dw[i] + sum[i] : sum[i]);
}

void model_head_norm_backward(const model_work *work, const model_norm *norm, model_rows dx, model_rows raw, float *dw,
                              size_t rows, size_t heads, bool add)
{
    norm_job j = job_of(work, norm, rows);
    j.out = dx;
    j.x = raw;
    j.heads = heads;
    j.dw = dw;
    j.add = add;
    lst_pool_run(work->pool, 1, head_weight_task, &j);
    lst_pool_run(work->pool, model_tasks(rows, MODEL_TASK_ROWS), head_input_task, &j);
}
