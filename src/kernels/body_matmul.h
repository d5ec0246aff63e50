/* SPDX-License-Identifier: MIT
 *
 * A small block of a matrix product, the accumulators in registers. Every element of the result is summed over k in
 * order, without fused operations, so it has the same bits in every variant. A row of the block is two vectors of the
 * compiler's extension, which it cuts into what the instruction set has: left to itself it found no good shape.
 */
#include <string.h>

typedef float matmul_lanes __attribute__((vector_size(32)));

static void matmul(size_t k, const float *a, const float *b, float *c)
{
    matmul_lanes sums[LST__MATMUL_ROWS][2] = {{{0}}};
    for (size_t p = 0; p < k; p++, a += LST__MATMUL_ROWS, b += LST__MATMUL_COLUMNS) {
        matmul_lanes left, right;
        memcpy(&left, b, sizeof left);
        memcpy(&right, b + LST__MATMUL_COLUMNS / 2, sizeof right);
        for (size_t i = 0; i < LST__MATMUL_ROWS; i++) {
            sums[i][0] += a[i] * left;
            sums[i][1] += a[i] * right;
        }
    }
    memcpy(c, sums, sizeof sums);
}

static void fill_matmul(lst__kernels *k)
{
    k->matmul = matmul;
}
