/* SPDX-License-Identifier: MIT
 *
 * One transformer layer: norm, attention, residual; norm, MLP, residual. Forward in stages, so that backward can ask
 * for just those whose results the activation policy did not keep; the same code gives the same bits.
 */
#ifndef MODEL_BLOCK_H
#define MODEL_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "leanstep/arch.h"
#include "model/matmul.h"
#include "model/norm.h"
#include "model/work.h"
#include "plan/activations.h"

typedef struct model_block {
    const lst_arch *arch;
    const float *rotation; /* [seq, head_dim], or NULL with learned positions */
    lst_codec codec;       /* of all weights */
    const void *weight[LST_N_ROLES];
} model_block;

/* The parts of a layer, for whoever runs them in another order (generation). */
model_norm model_block_norm(const model_block *block, lst_role weight, lst_role bias);
model_norm model_block_head_norm(const model_block *block, lst_role weight);
model_linear model_block_linear(const model_block *block, lst_role weight, lst_role bias, size_t in, size_t out);
/* q, k and v into columns of one matrix: one linear layer (GPT-2) or three. Returns how many. */
typedef struct model_qkv_part {
    lst_role weight, bias;
    size_t column;
    model_linear linear;
} model_qkv_part;
size_t model_block_qkv(const model_block *block, model_qkv_part parts[3]);

enum model_stage {
    MODEL_STAGE_NORM1 = 1,
    MODEL_STAGE_ATTENTION = 2, /* q, k, v, attention, its projection: up to MIDDLE */
    MODEL_STAGE_NORM2 = 4,
    MODEL_STAGE_MLP = 8, /* gate and up */
    MODEL_STAGE_PRODUCT = 16,
    MODEL_STAGE_OUTPUT = 32,
    MODEL_STAGES_ALL = 63
};
/* What backward must compute again under a policy. */
unsigned model_stages_again(lst_act_policy policy);

typedef struct model_block_shape {
    size_t batch, seq;
} model_block_shape;

/* act[LST__N_ACTS] as plan/activations.h lists them; output (the next layer's input) only with MODEL_STAGE_OUTPUT. */
void model_block_forward(const model_work *work, const model_block *block, model_block_shape shape, float *const *act,
                         float *output, unsigned stages);

typedef struct model_block_grads {
    float *weight[LST_N_ROLES]; /* float32 sums */
    bool add;                   /* false for the first micro-batch: written, not added */
    float *dx;                  /* [M, C]: gradient of the output; becomes that of the input */
    float *norm;                /* scratch [M, C] */
    float *wide;                /* scratch [M, max(F, A + A + 2 G)] */
} model_block_grads;

/* act must be complete; UP and GATE are overwritten. */
void model_block_backward(const model_work *work, const model_block *block, model_block_shape shape, float *const *act,
                          const model_block_grads *grads);

#endif
