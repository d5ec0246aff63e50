/* SPDX-License-Identifier: MIT
 *
 * The buffers that the arithmetic of a step needs besides weights, gradients and state: activations, loss, workspace,
 * data. Planner and model both take their sizes from here.
 *
 * In comments: M = batch * seq rows of a micro-batch, C hidden, F ffn, A = heads * head_dim, G = kv_heads * head_dim,
 * V vocab. All are float32 unless said otherwise.
 */
#ifndef LST_PLAN_ACTIVATIONS_H
#define LST_PLAN_ACTIVATIONS_H

#include <stddef.h>

#include "leanstep/plan.h"

/* Activations of one layer (LST_BUFFER_ACT, layer, index = which), micro-batch after micro-batch.
 *
 *     INPUT    of the layer; of layer L: input of the final norm     MIDDLE   input of norm 2
 *     STAT1/2  mean and 1 / deviation of each row                    GATE     SwiGLU only
 *     QKV      after q/k norm and rotation; columns: q heads,        UP       GPT-2: before GELU
 *              k heads, v heads                                      PRODUCT  silu(gate) * up, or gelu(up)
 *     QK_RAW   q and k before their norm; only with qk_norm          LSE      [batch, heads, seq]
 *
 * X(identifier, name, elements, least policy at which it is not kept for backward). What a policy does not keep is one
 * buffer for all layers and micro-batches (LST__SCRATCH_FORWARD and _BACKWARD below). */
#define LST__ACT_LIST(X)                                                                                               \
    X(INPUT, "input", M *C, NEVER)                                                                                     \
    X(STAT1, "norm 1 statistics", M * 2, INPUTS)                                                                       \
    X(NORM1, "norm 1 output", M *C, POINTWISE)                                                                         \
    X(QKV, "q, k, v", M *(A + 2 * G), INPUTS)                                                                          \
    X(QK_RAW, "q, k before norm", raw *M *(A + G), INPUTS)                                                             \
    X(ATTENTION, "attention output", M *A, INPUTS)                                                                     \
    X(LSE, "attention log-sum-exp", M *heads, INPUTS)                                                                  \
    X(MIDDLE, "input of norm 2", M *C, INPUTS)                                                                         \
    X(STAT2, "norm 2 statistics", M * 2, INPUTS)                                                                       \
    X(NORM2, "norm 2 output", M *C, POINTWISE)                                                                         \
    X(GATE, "gate", gated *M *F, INPUTS)                                                                               \
    X(UP, "up", M *F, INPUTS)                                                                                          \
    X(PRODUCT, "activation product", M *F, POINTWISE)

typedef enum lst__act {
#define LST_X(id, name, elems, dropped) LST__ACT_##id,
    LST__ACT_LIST(LST_X)
#undef LST_X
        LST__N_ACTS
} lst__act;

/* Of one micro-batch; 0: this architecture has none. */
size_t lst__act_elems(const lst_arch *arch, const lst_recipe *recipe, lst__act act);
/* Whether the policy keeps it from forward to backward, in a buffer of its own for each layer. */
int lst__act_kept(lst_act_policy policy, lst__act act);

/* Scratch (LST_BUFFER_SCRATCH, layer -1, index = which). N = loss chunk.
 *
 *     ROTATION    [seq, head_dim]: cos half, sin half                GRAD_X     [accumulation, M, C]
 *     WORKER      [threads, lst__worker_elems]                       GRAD_NORM  [M, C]
 *     VECTORS     norm weights and biases in float32; none where     GRAD_WIDE  [M, max(F, A + A + 2 G)]
 *                 weights are float32                                LOGITS     [N, V]
 *     HEAD_PARTS  [LST__HEAD_PARTS, N, C], for a large vocabulary    HEAD_IN, HEAD_GRAD  [N, C]
 *     HEAD_ROWS   [N] losses in double, then [N] int32 rows          HEAD_STAT  [N, 2]
 *     GENERATION  lst__generation_elems: key/value cache and rows in flight
 *
 * X(identifier, name, bucket, first phase, last phase) */
#define LST__SCRATCH_LIST(X)                                                                                           \
    X(ROTATION, "rotation table", WORKSPACE, LOAD, SAVE)                                                               \
    X(WORKER, "worker scratch", WORKSPACE, LOAD, SAVE)                                                                 \
    X(VECTORS, "widened vectors", WORKSPACE, LOAD, SAVE)                                                               \
    X(GRAD_X, "gradient of the residual stream", ACTIVATIONS, LOSS, EMBED_BACKWARD)                                    \
    X(GRAD_NORM, "gradient of a norm's output", WORKSPACE, BACKWARD_FIRST, BACKWARD_LAST)                              \
    X(GRAD_WIDE, "gradient inside a layer", WORKSPACE, BACKWARD_FIRST, BACKWARD_LAST)                                  \
    X(LOGITS, "logits of a chunk", LOSS, LOSS, LOSS)                                                                   \
    X(HEAD_IN, "head input of a chunk", LOSS, LOSS, LOSS)                                                              \
    X(HEAD_GRAD, "its gradient", LOSS, LOSS, LOSS)                                                                     \
    X(HEAD_PARTS, "its partial sums", LOSS, LOSS, LOSS)                                                                \
    X(HEAD_STAT, "its statistics", LOSS, LOSS, LOSS)                                                                   \
    X(HEAD_ROWS, "its rows", LOSS, LOSS, LOSS)                                                                         \
    X(GENERATION, "generation", WORKSPACE, SAVE, SAVE)

typedef enum lst__scratch {
#define LST_X(id, name, bucket, first, last) LST__SCRATCH_##id,
    LST__SCRATCH_LIST(LST_X)
#undef LST_X
    /* Then, for each activation that is not kept: the one used in forward and the one used in backward. */
    LST__SCRATCH_FORWARD,
    LST__SCRATCH_BACKWARD = LST__SCRATCH_FORWARD + LST__N_ACTS,
    LST__N_SCRATCH = LST__SCRATCH_BACKWARD + LST__N_ACTS
} lst__scratch;

/* What a plan is for: steps, the loss alone, or writing. */
typedef enum lst__purpose { LST__TRAINS, LST__EVALUATES, LST__GENERATES } lst__purpose;
/* Whether a scratch buffer belongs to such a plan. */
int lst__scratch_used(lst__purpose purpose, lst__scratch which);

/* Data (LST_BUFFER_DATA, layer -1): token ids and targets of every micro-batch, int32 [accumulation, batch, seq]. */
enum { LST__DATA_IDS, LST__DATA_TARGETS };

/* Elements (of 4 bytes) of a scratch buffer; 0: this run has none. */
size_t lst__scratch_elems(const lst_arch *arch, const lst_recipe *recipe, lst__scratch which);

/* Tokens of a chunk of the loss: the recipe's, but never more than a micro-batch has. */
size_t lst__loss_chunk(const lst_recipe *recipe);

/* Matrix products widen low-precision weights in panels of at most LST__PANEL_ELEMS (1 MiB);
 * attention works on LST__QUERY_ROWS rows at a time. Fixed numbers: a result never depends on the number of threads. */
#define LST__PANEL_ELEMS ((size_t)256 * 1024)
#define LST__QUERY_ROWS 64
/* Scratch of one worker: a widened panel, two blocks of attention scores, a row; whichever is largest. */
size_t lst__worker_elems(const lst_arch *arch, const lst_recipe *recipe);
/* The gradient of the head's input sums over the vocabulary: from this many tokens on, in so many parts at once. */
#define LST__HEAD_PARTS 8
#define LST__HEAD_PARTS_FROM 8192
/* One of the two widened vectors (a norm's weight and bias). */
size_t lst__vector_elems(const lst_arch *arch);

/* Generation feeds up to LST__GENERATION_ROWS (R) tokens at once. Its parts, in one buffer. P = positions (recipe.seq).
 * CONTEXT: int32, the tokens in the cache; SORTED: a copy of the logits for top-k; CACHE: [layers, P, k then v heads].

 * X(identifier, elements) */
#define LST__GENERATION_ROWS 32
#define LST__GENERATION_LIST(X)                                                                                        \
    X(INPUT, R *C)                                                                                                     \
    X(NORM, R *C)                                                                                                      \
    X(QKV, R *(A + 2 * G))                                                                                             \
    X(QK_RAW, raw *R *(A + G))                                                                                         \
    X(ATTENTION, R *A)                                                                                                 \
    X(MIDDLE, R *C)                                                                                                    \
    X(GATE, gated *R *F)                                                                                               \
    X(UP, R *F)                                                                                                        \
    X(PRODUCT, R *F)                                                                                                   \
    X(STAT, R * 2)                                                                                                     \
    X(LOGITS, V)                                                                                                       \
    X(SORTED, V)                                                                                                       \
    X(CONTEXT, P)                                                                                                      \
    X(CACHE, L *P *(2 * G))

typedef enum lst__generation_part {
#define LST_X(id, elems) LST__GENERATION_##id,
    LST__GENERATION_LIST(LST_X)
#undef LST_X
        LST__N_GENERATION_PARTS
} lst__generation_part;

/* Where each part begins (NULL: not asked), in elements; returns the total. */
size_t lst__generation_elems(const lst_arch *arch, size_t positions, size_t begin[LST__N_GENERATION_PARTS]);

/* Adds all of the above to a training plan. */
LST_MUST_USE lst_status lst__plan_activations(lst_plan *plan, lst_error *err);
/* A plan of weights (in recipe form `form`), scratch and key/value cache for `positions` tokens (2
 * to max_positions): enough to generate. */
LST_MUST_USE lst_status lst__plan_generation(lst_plan **out, const lst_arch *arch, lst_weight_form form,
                                             size_t positions, size_t threads, lst_error *err);
/* A plan of weights and what one forward and the loss of [batch, seq] need: no gradients, no state. Each layer's input
 * lives until the layer is done. */
LST_MUST_USE lst_status lst__plan_evaluation(lst_plan **out, const lst_arch *arch, const lst_recipe *recipe,
                                             lst_error *err);

#endif
