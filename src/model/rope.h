/* SPDX-License-Identifier: MIT
 *
 * Rotary positions, half-split as Hugging Face lays them out: (x[i], x[i + d/2]) turns by position * frequency[i].
 */
#ifndef MODEL_ROPE_H
#define MODEL_ROPE_H

#include <stddef.h>

#include "leanstep/arch.h"
#include "model/matmul.h"
#include "model/work.h"

/* table [positions, head_dim]: d/2 cosines, then d/2 sines of each position; angles in double, rounded once. */
void model_rope_table(const lst_arch *arch, float *table, size_t positions);
/* Row r of x is at position first + r % seq, and begins with `heads` heads. */
typedef struct model_rope_shape {
    size_t rows, seq, first, heads, head_dim;
} model_rope_shape;

/* Turns the heads of each row in place; sign -1 turns back (backward). */
void model_rope(const model_work *work, const float *table, model_rows x, const model_rope_shape *shape, float sign);

#endif
