/* SPDX-License-Identifier: MIT */
#include "optim/matmul.h"

#include <string.h>

/* A task computes a block of the result, packing what it needs of a and b chunk by chunk of the inner dimension: 48 KiB
 * and
 * 64 KiB. Sums go over a chunk in order, then chunk by chunk. */
enum { ROWS = 8 * LST__MATMUL_ROWS, COLUMNS = 4 * LST__MATMUL_COLUMNS, CHUNK = 256 };

typedef struct context {
    const lst__matmul *job;
    const lst__kernels *kernels;
    size_t blocks_across;
} context;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Rows [first, first + ROWS) of a, columns [at, at + n): strips of LST__MATMUL_ROWS rows, each n x LST__MATMUL_ROWS;
 * beyond the edge zeros. */
static void pack_a(const lst__matmul *job, size_t first, size_t at, size_t n, float *out)
{
    const size_t rows = least(ROWS, job->rows - first);
    memset(out, 0, ROWS * n * sizeof *out);
    for (size_t i = 0; i < rows; i++) {
        const float *from = job->a + (first + i) * job->inner + at;
        float *to = out + i / LST__MATMUL_ROWS * LST__MATMUL_ROWS * n + i % LST__MATMUL_ROWS;
        for (size_t k = 0; k < n; k++)
            to[k * LST__MATMUL_ROWS] = from[k];
    }
}

static void pack_b(const lst__matmul *job, size_t first, size_t at, size_t n, float *out)
{
    const size_t columns = least(COLUMNS, job->columns - first);
    memset(out, 0, COLUMNS * n * sizeof *out);
    for (size_t j = 0; j < columns; j++) {
        float *to = out + j / LST__MATMUL_COLUMNS * LST__MATMUL_COLUMNS * n + j % LST__MATMUL_COLUMNS;
        const float *from =
            job->b_transposed ? job->b + (first + j) * job->inner + at : job->b + at * job->columns + first + j;
        const size_t apart = job->b_transposed ? 1 : job->columns;
        for (size_t k = 0; k < n; k++)
            to[k * LST__MATMUL_COLUMNS] = from[k * apart];
    }
}

/* sums (ROWS x COLUMNS, in blocks of the kernel's size) += the packed chunk's product. */
static void add_chunk(const lst__kernels *kernels, size_t n, const float *a, const float *b, float *sums)
{
    enum { BLOCK = LST__MATMUL_ROWS * LST__MATMUL_COLUMNS };
    float part[BLOCK];
    for (size_t i = 0; i < ROWS / LST__MATMUL_ROWS; i++)
        for (size_t j = 0; j < COLUMNS / LST__MATMUL_COLUMNS; j++, sums += BLOCK) {
            kernels->matmul(n, a + i * LST__MATMUL_ROWS * n, b + j * LST__MATMUL_COLUMNS * n, part);
            for (size_t k = 0; k < BLOCK; k++)
                sums[k] += part[k];
        }
}

static void write_block(const lst__matmul *job, size_t row, size_t column, const float *sums)
{
    const size_t rows = least(ROWS, job->rows - row), columns = least(COLUMNS, job->columns - column);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const size_t block = i / LST__MATMUL_ROWS * (COLUMNS / LST__MATMUL_COLUMNS) + j / LST__MATMUL_COLUMNS;
            const float sum =
                sums[(block * LST__MATMUL_ROWS + i % LST__MATMUL_ROWS) * LST__MATMUL_COLUMNS + j % LST__MATMUL_COLUMNS];
            const size_t at = (row + i) * job->columns + column + j;
            job->out[at] = job->base ? job->scale * job->base[at] + job->by * sum : job->by * sum;
        }
}

static void block_task(void *user, size_t index, size_t worker)
{
    (void)worker;
    const context *c = user;
    const size_t row = index / c->blocks_across * ROWS, column = index % c->blocks_across * COLUMNS;
    float a[ROWS * CHUNK], b[COLUMNS * CHUNK], sums[ROWS * COLUMNS] = {0};
    for (size_t at = 0; at < c->job->inner; at += CHUNK) {
        const size_t n = least(CHUNK, c->job->inner - at);
        pack_a(c->job, row, at, n, a);
        pack_b(c->job, column, at, n, b);
        add_chunk(c->kernels, n, a, b, sums);
    }
    write_block(c->job, row, column, sums);
}

void lst__matmul_run(const lst__matmul *job, const lst__kernels *kernels, lst_pool *pool)
{
    context c = {job, kernels, (job->columns + COLUMNS - 1) / COLUMNS};
    lst_pool_run(pool, (job->rows + ROWS - 1) / ROWS * c.blocks_across, block_task, &c);
}
