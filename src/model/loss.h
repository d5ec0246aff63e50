/* SPDX-License-Identifier: MIT
 *
 * Final norm, head and cross-entropy, a chunk of counted tokens at a time: logits, loss, their gradient in place,
 * gradient of the head's input and weights. Nothing of the vocabulary's width outlives a chunk, and rows that are not
 * counted cost nothing.
 */
#ifndef MODEL_LOSS_H
#define MODEL_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/norm.h"

typedef struct model_loss {
    const model_work *work;
    model_norm norm;
    model_linear head; /* in hidden, out vocab */
    size_t chunk;
    float *logits;    /* [chunk, vocab] */
    float *in;        /* [chunk, hidden]: normed rows */
    float *in_grad;   /* [chunk, hidden] */
    float *parts;     /* [LST__HEAD_PARTS, chunk, hidden], or NULL: the vocabulary is not large */
    float *stat;      /* [chunk, 2] */
    int32_t *rows;    /* [chunk]: which rows of the micro-batch */
    double *row_loss; /* [chunk] */
} model_loss;

typedef struct model_loss_grads {
    float scale; /* of the summed loss */
    float *d_norm, *d_norm_bias, *d_head;
    bool started; /* false before the first counted chunk of a step: gradients are written, not added */
} model_loss_grads;

/* Sum of the cross-entropies of the counted rows of x [rows, hidden], in the order of rows, in double. With grads, also
 * adds to dx [rows, hidden] and to the weights' gradients. */
double model_loss_run(const model_loss *loss, const float *x, const int32_t *targets, size_t n_rows, float *dx,
                      model_loss_grads *grads);
/* Logits of rows [first, first + n) of x, n at most chunk, into loss->logits. */
void model_loss_logits(const model_loss *loss, const float *x, size_t first, size_t n);

#endif
