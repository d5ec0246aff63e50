/* SPDX-License-Identifier: MIT
 *
 * Token and position embeddings.
 */
#ifndef MODEL_EMBED_H
#define MODEL_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/work.h"

typedef struct model_embedding {
    const void *tokens;    /* [vocab, hidden] */
    const void *positions; /* [max_positions, hidden] or NULL */
    lst_codec codec;
    size_t vocab, hidden;
} model_embedding;

/* x [rows, hidden]; row r is at position first + r % seq. */
void model_embed_forward(const model_work *work, const model_embedding *e, float *x, const int32_t *ids, size_t rows,
                         size_t seq, size_t first);
/* Adds the rows of dx to d_tokens [vocab, hidden]; d_positions [max_positions, hidden] (NULL: none) likewise. */
void model_embed_backward(const model_work *work, const model_embedding *e, float *d_tokens, float *d_positions,
                          const float *dx, const int32_t *ids, size_t rows, size_t seq);
/* Zeroes n floats with all threads. */
void model_zero(const model_work *work, float *x, size_t n);

#endif
