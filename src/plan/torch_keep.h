/* SPDX-License-Identifier: MIT
 *
 * The rules by which linears, adapters and the head keep tensors, shared by the families' layers.
 */
#ifndef LST_PLAN_TORCH_KEEP_H
#define LST_PLAN_TORCH_KEEP_H

#include "plan/torch.h"

/* n Python numbers that autograd wraps: 8 bytes each. Checkpointing keeps them too. */
void lst__torch_keep_scalars(lst__kept *out, uint64_t n);
/* Bytes of an element of a dropout mask. */
uint64_t lst__torch_mask_size(const lst__torch *c);
/* The targets that are modules of their own: a fused projection answers to one of its parts. */
unsigned lst__torch_fused_targets(const lst__torch *c);
/* What the linears of `readers` keep of a common input. `input_grad`: a gradient flows to it. `kept`: another
 * operation keeps this very tensor. */
void lst__torch_keep_input(const lst__torch *c, const char *what, uint64_t width, unsigned readers, bool input_grad,
                           bool kept, lst__kept *out);
void lst__torch_keep_head(const lst__torch *c, lst__kept *out);
/* Autocast's bfloat16 copies of one layer's weights that backward needs. */
uint64_t lst__torch_cast_bytes(const lst__torch *c, bool first);
void lst__torch_gpt2_attention(const lst__torch *c, bool input_grad, lst__kept *out);
void lst__torch_gpt2_outside(const lst__torch *c, lst__kept *out);

#endif
