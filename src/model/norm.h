/* SPDX-License-Identifier: MIT
 *
 * RMSNorm and LayerNorm over the rows of a matrix, or over each head of a row.
 */
#ifndef MODEL_NORM_H
#define MODEL_NORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/matmul.h"
#include "model/work.h"

typedef struct model_norm {
    const void *weight, *bias; /* [n]; bias NULL: RMSNorm, otherwise LayerNorm */
    lst_codec codec;
    size_t n;
    double eps;
} model_norm;

/* Where the rows of a norm's input lie: row r is row `pick[r]` of x and dx, or r itself if pick is NULL. */
typedef struct model_norm_rows {
    size_t rows;
    const int32_t *pick;
} model_norm_rows;

/* y = norm(x), stat [rows, 2] = mean and 1 / deviation of each row. */
void model_norm_forward(const model_work *work, const model_norm *norm, model_rows y, float *stat, model_rows x,
                        model_norm_rows rows);

typedef struct model_norm_grads {
    model_rows dx;  /* += gradient of the input */
    float *dw, *db; /* = gradient of weight and bias (db NULL for RMSNorm); += with add */
    bool add;
} model_norm_grads;

void model_norm_backward(const model_work *work, const model_norm *norm, const model_norm_grads *grads, model_rows dy,
                         model_rows x, const float *stat, model_norm_rows rows);

/* The norm of each of `heads` heads of x's rows, in place, after x was copied to raw (same columns). */
void model_head_norm_forward(const model_work *work, const model_norm *norm, model_rows x, model_rows raw, size_t rows,
                             size_t heads);
/* dx, the gradient of the normed heads, becomes that of raw; dw = gradient, with add +=. */
void model_head_norm_backward(const model_work *work, const model_norm *norm, model_rows dx, model_rows raw, float *dw,
                              size_t rows, size_t heads, bool add);

#endif
