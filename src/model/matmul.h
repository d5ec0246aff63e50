/* SPDX-License-Identifier: MIT
 *
 * Linear layers: y = x W^T + b, and backward. Every product is cut into panels of fixed size, each one single-threaded
 * sgemm, handed out by the pool: the same bits for any number of threads. Low-precision weights are widened panel by
 * panel into the worker's scratch; there is no float32 copy of a matrix.
 */
#ifndef MODEL_MATMUL_H
#define MODEL_MATMUL_H

#include <stdbool.h>
#include <stddef.h>

#include "model/work.h"

typedef struct model_linear {
    const void *weight; /* [out, in], or [in, out] with conv1d */
    const void *bias;   /* [out] or NULL */
    lst_codec codec;    /* of both */
    bool conv1d;
    size_t in, out;
} model_linear;

/* A matrix of float32 rows: row r begins at data + r * stride. */
typedef struct model_rows {
    float *data;
    size_t stride;
} model_rows;

/* Tells BLAS to stay single-threaded; once per process is enough, more does no harm. */
void model_matmul_init(void);

/* y[rows, out] = x[rows, in] W^T + b (+ residual[rows, out] if its data is not NULL). */
void model_linear_forward(const model_work *work, const model_linear *linear, model_rows y, model_rows x, size_t rows,
                          model_rows residual);
/* dx[rows, in] = dy[rows, out] W; with add, +=. */
void model_linear_backward_input(const model_work *work, const model_linear *linear, model_rows dx, model_rows dy,
                                 size_t rows, bool add);
/* The same where out is far larger than in (a head): out is summed in LST__HEAD_PARTS parts at once, then in one order.
 * parts [LST__HEAD_PARTS, rows, in]. */
void model_linear_backward_input_deep(const model_work *work, const model_linear *linear, model_rows dx, model_rows dy,
                                      size_t rows, float *parts);
/* dw = dy^T x in the weight's own layout, db = column sums of dy (NULL: no bias); with add, +=. */
void model_linear_backward_weight(const model_work *work, const model_linear *linear, float *dw, float *db,
                                  model_rows dy, model_rows x, size_t rows, bool add);

#endif
