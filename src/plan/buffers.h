/* SPDX-License-Identifier: MIT
 *
 * How a plan is filled: begin, add buffers, finish. lst_plan_create does so for a training run; generation has its own.
 */
#ifndef LST_PLAN_BUFFERS_H
#define LST_PLAN_BUFFERS_H

#include "leanstep/plan.h"

/* An empty plan of arch (NULL: a bare parameter count, n_params set by the caller) and recipe, both copied, unchecked.
 * LST_ERR_UNSUPPORTED if the layers need more than LST_MAX_PHASES phases. */
LST_MUST_USE lst_status lst__plan_begin(lst_plan **out, const lst_arch *arch, const lst_recipe *recipe, lst_error *err);

/* Adds a copy of *buffer. bytes is computed from codec and dims (products checked for overflow); a buffer of no
 * elements is refused, as is a life that ends before it begins. offset is ignored. */
LST_MUST_USE lst_status lst__plan_add(lst_plan *plan, const lst_buffer *buffer, lst_error *err);

/* Sorts the buffers by (kind, layer, index), refuses two with the same three, lays them out and fills in the totals. */
LST_MUST_USE lst_status lst__plan_finish(lst_plan *plan, lst_error *err);

/* Weights of every tensor, from load to save: WEIGHT, layer -1, index = tensor, in the weight form's codec. */
LST_MUST_USE lst_status lst__plan_weights(lst_plan *plan, lst_error *err);

/* Optimizer state: SLOT, layer = slot number, index = tensor, as lst_optim_slots says. Load to save. And the working
 * memory of a step where the rule needs any: STEP_SCRATCH, layer -1, index 0. */
LST_MUST_USE lst_status lst__plan_slots(lst_plan *plan, lst_error *err);

/* Gradients.
 *
 * LST_GRAD_KEEP: GRADIENT, layer -1, index = tensor, in recipe.grads, load to save. If recipe.grads is f32 the sums
 * over micro-batches are made in them, and that is all. Otherwise sums are made in float32 in the buffers below, which
 * are rounded into the kept ones when complete.
 * LST_GRAD_RELEASE: only the float32 buffers below.
 *
 * LAYER_GRADIENT, layer -1, index = role: one tensor of the layer at work, shared by all layers in turn.
 *     roles of a layer: backward of layers L-1..0; NORMF_W, NORMF_B: loss; POSITIONS: embed backward.
 * EMBED_GRADIENT, layer -1, index 0, [V, C]: untied: embed backward. Tied: loss to embed backward (head's part
 *     first, then the embedding's).
 * HEAD_GRADIENT, layer -1, index 0, [V, C]: untied: loss. Tied: none. */
LST_MUST_USE lst_status lst__plan_gradients(lst_plan *plan, lst_error *err);

/* Gives every buffer its offset and sets plan->arena_bytes. Offsets are multiples of 64; no two buffers that live in a
 * common phase overlap; buffers of one tensor that stream together in a step (weight, slots, gradient) differ modulo
 * 4,096. */
LST_MUST_USE lst_status lst__plan_layout(lst_plan *plan, lst_error *err);

#endif
