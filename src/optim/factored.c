/* SPDX-License-Identifier: MIT */
#include "optim/factored.h"

#define TASK_ELEMS 32768
/* Columns whose sums one task keeps: a run of a row is 1 KiB of gradient, and even narrow matrices make several
 * tasks. */
#define STRIPE 256

void lst__factored_shape(const lst_tensor *tensor, lst__factored *out)
{
    out->rows = tensor->dims[tensor->n_dims - 2];
    out->columns = tensor->dims[tensor->n_dims - 1];
    out->batch = lst__tensor_n(tensor) / (out->rows * out->columns);
}

static size_t at_least_one(size_t n)
{
    return n > 0 ? n : 1;
}

static size_t rows_of_task(const lst__factored *f)
{
    return at_least_one(TASK_ELEMS / f->columns);
}

static void row_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    const lst__factored *f = context;
    const size_t begin = index * rows_of_task(f), all = f->batch * f->rows;
    const size_t end = all - begin < rows_of_task(f) ? all : begin + rows_of_task(f);
    float buffer[LST__TILE];
    for (size_t row = begin; row < end; row++) {
        double sum = 0;
        for (size_t column = 0; column < f->columns; column += LST__TILE) {
            const size_t n = f->columns - column < LST__TILE ? f->columns - column : LST__TILE;
            const float *g = lst__load_grad(f->step, row * f->columns + column, n, buffer);
            sum += f->step->kernels->sum_squares(g, n);
        }
        f->row[row] = (float)(f->keep * (double)f->row[row] + f->take * (sum / (double)f->columns + f->added));
    }
}

static size_t stripes(const lst__factored *f)
{
    return (f->columns + STRIPE - 1) / STRIPE;
}

static size_t matrices_of_task(const lst__factored *f)
{
    return at_least_one(TASK_ELEMS / f->rows / f->columns);
}

static void column_stripe(const lst__factored *f, size_t matrix, size_t column, size_t n)
{
    double sums[STRIPE] = {0};
    float buffer[STRIPE];
    for (size_t row = 0; row < f->rows; row++) {
        const float *g = lst__load_grad(f->step, (matrix * f->rows + row) * f->columns + column, n, buffer);
        for (size_t i = 0; i < n; i++)
            sums[i] += (double)g[i] * (double)g[i];
    }
    float *statistic = f->column + matrix * f->columns + column;
    for (size_t i = 0; i < n; i++)
        statistic[i] = (float)(f->keep * (double)statistic[i] + f->take * (sums[i] / (double)f->rows + f->added));
}

static void column_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    const lst__factored *f = context;
    const size_t column = index % stripes(f) * STRIPE, begin = index / stripes(f) * matrices_of_task(f);
    const size_t end = f->batch - begin < matrices_of_task(f) ? f->batch : begin + matrices_of_task(f);
    for (size_t matrix = begin; matrix < end; matrix++)
        column_stripe(f, matrix, column, f->columns - column < STRIPE ? f->columns - column : STRIPE);
}

void lst__factored_update(const lst__factored *f)
{
    const size_t all_rows = f->batch * f->rows, a_task = rows_of_task(f), matrices = matrices_of_task(f);
    if (f->row)
        lst_pool_run(f->step->pool, (all_rows + a_task - 1) / a_task, row_task, (void *)f);
    lst_pool_run(f->step->pool, (f->batch + matrices - 1) / matrices * stripes(f), column_task, (void *)f);
}

double lst__factored_row_mean(const lst__factored *f, size_t matrix)
{
    double sum = 0;
    for (size_t row = 0; row < f->rows; row++)
        sum += (double)f->row[matrix * f->rows + row];
    return sum / (double)f->rows;
}

lst__row_run lst__row_run_at(const lst__factored *f, const lst__tile *tile, size_t at)
{
    const size_t index = tile->first + at, row = index / f->columns, column = index % f->columns;
    const size_t left = tile->n - at, here = f->columns - column;
    return (lst__row_run){.row = row, .matrix = row / f->rows, .column = column, .n = here < left ? here : left};
}
