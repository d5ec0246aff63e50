/* SPDX-License-Identifier: MIT */
#include "model/loss.h"

#include "model/model.h"

#define TASK_ELEMS 16384 /* logits a task, at least one row */

typedef struct entropy_job {
    const model_loss *loss;
    const int32_t *targets;
    size_t n, task_rows;
    float scale;
    bool backward;
} entropy_job;

static void entropy_task(void *context, size_t index, size_t worker)
{
    const entropy_job *j = context;
    const model_loops *loops = j->loss->work->loops;
    size_t vocab = j->loss->head.out, begin = index * j->task_rows;
    size_t end = j->n - begin < j->task_rows ? j->n : begin + j->task_rows;
    (void)worker;
    for (size_t r = begin; r < end; r++) {
        float *z = j->loss->logits + r * vocab;
        size_t target = (size_t)j->targets[j->loss->rows[r]];
        double lse = loops->log_sum_exp(z, vocab);
        j->loss->row_loss[r] = lse - (double)z[target];
        if (!j->backward)
            continue;
        loops->cross_entropy_backward(z, vocab, lse, j->scale);
        z[target] -= j->scale;
    }
}

static void cross_entropy(const model_loss *loss, const int32_t *targets, size_t n, const model_loss_grads *grads)
{
    entropy_job j = {
        .loss = loss, .targets = targets, .n = n, .backward = grads != NULL, .scale = grads ? grads->scale : 0.0f};
    j.task_rows = loss->head.out < TASK_ELEMS ? TASK_ELEMS / loss->head.out : 1;
    lst_pool_run(loss->work->pool, model_tasks(n, j.task_rows), entropy_task, &j);
}

static void chunk_forward(const model_loss *loss, const float *x, size_t n)
{
    size_t hidden = loss->head.in;
    model_rows in = {loss->in, hidden}, none = {NULL, 0};
    model_norm_forward(loss->work, &loss->norm, in, loss->stat, (model_rows){(float *)x, hidden},
                       (model_norm_rows){n, loss->rows});
    model_linear_forward(loss->work, &loss->head, (model_rows){loss->logits, loss->head.out}, in, n, none);
}

static void chunk_backward(const model_loss *loss, const float *x, float *dx, size_t n, model_loss_grads *grads)
{
    size_t hidden = loss->head.in;
    model_rows in = {loss->in, hidden}, in_grad = {loss->in_grad, hidden}, dz = {loss->logits, loss->head.out};
    if (loss->parts)
        model_linear_backward_input_deep(loss->work, &loss->head, in_grad, dz, n, loss->parts);
    else
        model_linear_backward_input(loss->work, &loss->head, in_grad, dz, n, false);
    model_linear_backward_weight(loss->work, &loss->head, grads->d_head, NULL, dz, in, n, grads->started);
    model_norm_grads norm = {.dx = {dx, hidden}, .dw = grads->d_norm, .db = grads->d_norm_bias, .add = grads->started};
    model_norm_backward(loss->work, &loss->norm, &norm, in_grad, (model_rows){(float *)x, hidden}, loss->stat,
                        (model_norm_rows){n, loss->rows});
    grads->started = true;
}

double model_loss_run(const model_loss *loss, const float *x, const int32_t *targets, size_t n_rows, float *dx,
                      model_loss_grads *grads)
{
    double sum = 0.0;
    for (size_t row = 0; row < n_rows;) {
        size_t n = 0;
        for (; row < n_rows && n < loss->chunk; row++)
            if (targets[row] != MODEL_IGNORE)
                loss->rows[n++] = (int32_t)row;
        if (!n)
            break;
        chunk_forward(loss, x, n);
        cross_entropy(loss, targets, n, grads);
        for (size_t r = 0; r < n; r++)
            sum += loss->row_loss[r];
        if (grads)
            chunk_backward(loss, x, dx, n, grads);
    }
    return sum;
}

void model_loss_logits(const model_loss *loss, const float *x, size_t first, size_t n)
{
    for (size_t r = 0; r < n; r++)
        loss->rows[r] = (int32_t)(first + r);
    chunk_forward(loss, x, n);
}
