/* SPDX-License-Identifier: MIT
 *
 * float32 matrix products whose bits depend on nothing but the numbers: what orthogonalised momentum needs inside a
 * step. (The model's products go through CBLAS, which is faster and does not promise that.)
 */
#ifndef LST_OPTIM_MATMUL_H
#define LST_OPTIM_MATMUL_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"
#include "leanstep/pool.h"

/* out = scale*base + by*(a . b), row-major: a is rows x inner, b inner x columns (or, transposed, columns x inner),
 * base and out rows x columns. base may be NULL (scale 0) and may not be out. */
typedef struct lst__matmul {
    size_t rows, columns, inner;
    const float *a, *b;
    bool b_transposed;
    const float *base;
    float scale, by;
    float *out;
} lst__matmul;

void lst__matmul_run(const lst__matmul *job, const lst__kernels *kernels, lst_pool *pool);

#endif
