/* SPDX-License-Identifier: MIT
 *
 * Causal self-attention, grouped queries included, in O(T^2) time. Scores exist for a block of query rows of one head
 * at a time, in the worker's scratch; between forward and backward only the log-sum-exp of each row is kept.
 */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H

#include <stddef.h>

#include "model/work.h"

/* Rows of qkv and their gradient: heads * d of q, kv_heads * d of k, kv_heads * d of v. Query head h reads key head
 * h / (heads / kv_heads). */
typedef struct model_attention {
    size_t batch, seq, heads, kv_heads, head_dim;
} model_attention;

/* out [batch * seq, heads * d], lse [batch, heads, seq]. */
void model_attention_forward(const model_work *work, const model_attention *shape, float *out, float *lse,
                             const float *qkv);
/* d_qkv (written whole) from d_out; out and lse as forward left them. */
void model_attention_backward(const model_work *work, const model_attention *shape, float *d_qkv, const float *d_out,
                              const float *out, const float *lse, const float *qkv);

#endif
