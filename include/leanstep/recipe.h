/* SPDX-License-Identifier: MIT
 *
 * Recipe: everything that decides the bytes and the numbers of a run, apart from the model's shape and the data.
 */
#ifndef LEANSTEP_RECIPE_H
#define LEANSTEP_RECIPE_H

#include "leanstep/arch.h"
#include "leanstep/codec.h"
#include "leanstep/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, name, what backward finds of a layer) */
#define LST_ACT_POLICY_LIST(X)                                                                                         \
    X(KEEP, "keep", "everything backward needs is kept")                                                               \
    X(POINTWISE, "pointwise", "norm outputs and activation products are computed again")                               \
    X(INPUTS, "inputs", "only each layer's input is kept; its forward runs again")

typedef enum lst_act_policy {
#define LST_X(id, name, text) LST_ACT_##id,
    LST_ACT_POLICY_LIST(LST_X)
#undef LST_X
        LST_N_ACT_POLICIES
} lst_act_policy;

/* X(identifier, name, what happens to a gradient) */
#define LST_GRAD_MODE_LIST(X)                                                                                          \
    X(KEEP, "keep", "kept until the step: exact global clipping")                                                      \
    X(RELEASE, "release", "handed to the optimizer layer by layer; its buffer is used again")

typedef enum lst_grad_mode {
#define LST_X(id, name, text) LST_GRAD_##id,
    LST_GRAD_MODE_LIST(LST_X)
#undef LST_X
        LST_N_GRAD_MODES
} lst_grad_mode;

typedef struct lst_recipe {
    lst_rule rule;
    lst_hyper hyper; /* of the group that decays; norms and biases have weight_decay 0 */
    lst_weight_form weights;
    lst_codec grads;     /* how kept gradients are stored; released ones are always float32 */
    lst_codec state;     /* of the moments; tensors of fewer than LST_SMALL_TENSOR values keep theirs in f32 */
    bool f32_embeddings; /* embeddings and head keep their moments in f32 too */
    lst_act_policy activations;
    lst_grad_mode grad_mode;
    double clip_norm;    /* 0: no clipping. Only with LST_GRAD_KEEP */
    bool loss_scale;     /* dynamic loss scaling (f16 only) */
    size_t batch;        /* B: sequences a micro-batch */
    size_t seq;          /* T: tokens a sequence */
    size_t accumulation; /* micro-batches a step */
    size_t loss_chunk;   /* tokens a chunk of the loss; decides the logits buffer */
    size_t threads;      /* decides per-worker scratch; never the numbers */
} lst_recipe;

LST_API void lst_recipe_default(lst_recipe *out);

/* How a recipe's tensors are described to the optimizer: planner and trainer both ask here. Group 0 decays; group 1
 * (norms, biases) does not; group 2, of muon alone, holds embeddings and head, which AdamW steps. Returns the number of
 * groups. */
#define LST_RECIPE_GROUPS 3
LST_API size_t lst_recipe_groups(const lst_recipe *recipe, lst_hyper out[LST_RECIPE_GROUPS]);
/* The tensor with its group and, for adam-mini, the block that shares a second moment. The name stays tensor's own. */
LST_API void lst_recipe_tensor(const lst_recipe *recipe, const lst_arch *arch, const lst_arch_tensor *tensor,
                               lst_tensor *out);
/* Refuses contradictions and options without effect, by name, with the choices there are. */
LST_API LST_MUST_USE lst_status lst_recipe_check(const lst_recipe *recipe, const lst_arch *arch, lst_error *err);

#ifdef __cplusplus
}
#endif
#endif
