/* SPDX-License-Identifier: MIT */
#include "model/rope.h"

#include <math.h>

/* f_i = theta^(-2i/d); Llama 3 divides the slow ones by factor, keeps the fast ones, and blends linearly between, by
 * how many turns a frequency makes over the original context. */
static double frequency(const lst_arch *arch, size_t i)
{
    const double two_pi = 6.283185307179586476925;
    double f = pow(arch->rope_theta, -2.0 * (double)i / (double)arch->head_dim);
    if (!arch->rope_scaling.llama3)
        return f;
    double turns = (double)arch->rope_scaling.original_positions * f / two_pi;
    double low = arch->rope_scaling.low_freq_factor, high = arch->rope_scaling.high_freq_factor;
    double s = (turns - low) / (high - low);
    s = s < 0.0 ? 0.0 : s > 1.0 ? 1.0 : s;
    return (1.0 - s) * f / arch->rope_scaling.factor + s * f;
}

void model_rope_table(const lst_arch *arch, float *table, size_t positions)
{
    size_t d = arch->head_dim, half = d / 2;
    for (size_t i = 0; i < half; i++) {
        double f = frequency(arch, i);
        for (size_t t = 0; t < positions; t++) {
            table[t * d + i] = (float)cos((double)t * f);
            table[t * d + half + i] = (float)sin((double)t * f);
        }
    }
}

typedef struct rope_job {
    const model_work *work;
    const float *table;
    model_rows x;
    const model_rope_shape *shape;
    float sign;
} rope_job;

static void rope_task(void *context, size_t index, size_t worker)
{
    const rope_job *j = context;
    const model_rope_shape *s = j->shape;
    (void)worker;
    size_t begin = index * MODEL_TASK_ROWS;
    size_t end = s->rows - begin < MODEL_TASK_ROWS ? s->rows : begin + MODEL_TASK_ROWS;
    for (size_t r = begin; r < end; r++)
        for (size_t h = 0; h < s->heads; h++)
            j->work->loops->rotate(j->x.data + r * j->x.stride + h * s->head_dim,
                                   j->table + (s->first + r % s->seq) * s->head_dim, s->head_dim, j->sign);
}

void model_rope(const model_work *work, const float *table, model_rows x, const model_rope_shape *shape, float sign)
{
    rope_job j = {.work = work, .table = table, .x = x, .shape = shape, .sign = sign};
    lst_pool_run(work->pool, model_tasks(shape->rows, MODEL_TASK_ROWS), rope_task, &j);
}
