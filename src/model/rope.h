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
/* Turns `heads` heads of each row in place; row r is at position first + r % seq. sign -1 turns back (backward). */
void model_rope(const model_work *work, const float *table, model_rows x, size_t rows, size_t seq, size_t first,
                size_t heads, size_t head_dim, float sign);

#endif
