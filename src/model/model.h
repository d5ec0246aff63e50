/* SPDX-License-Identifier: MIT
 *
 * A decoder-only transformer in the buffers of a plan: forward, loss and backward of one step, evaluation, generation.
 *
 * The model finds each buffer by lst_plan_find, checks that the bytes it needs (from its own shapes) are the plan's,
 * and keeps the ledger in step as the phases of a step pass: what lives in a phase is held in it. The caller owns plan,
 * arena, ledger and pool; all must outlive the model. Optimizer state (LST_BUFFER_SLOT) is the caller's to bind and to
 * count; the optimizer's working memory (LST_BUFFER_STEP_SCRATCH) the caller's to bind, but counted here, as it comes
 * and goes with the phases; every other buffer of the plan is the model's.
 *
 * One step of training:
 *
 *     for each micro-batch:  fill model_ids(m, micro) and model_targets(m, micro)
 *     model_step(m, loss_scale, &hooks, &loss, &err)      gradients kept, or handed out through hooks.on_gradient
 *     model_enter(m, lst_phase_step(layers)); ... the optimizer steps ...
 *
 * Results are the same bits for any number of threads and each activation policy. A model belongs to one thread.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/ledger.h"
#include "leanstep/plan.h"
#include "leanstep/pool.h"
#include "leanstep/status.h"

typedef struct model model;

/* A target that is not counted. */
#define MODEL_IGNORE (-100)

/* Binds a model to `arena` (plan->arena_bytes, 64-byte aligned) and takes in the ledger what lives in the load phase.
 * Weights hold what the arena held: load them, or call model_init_random. A plan for generation (lst__plan_generation)
 * gives a model that can only generate, one for evaluation (lst__plan_evaluation) a model that can only evaluate.
 * LST_ERR_STATE names a buffer whose bytes differ from what the model needs. */
LST_MUST_USE lst_status model_create(model **out, const lst_plan *plan, void *arena, lst_ledger *ledger, lst_pool *pool,
                                     lst_error *err);
/* Gives back what the ledger holds for the model. NULL is allowed. */
void model_destroy(model *m);

/* Enters a phase: takes the buffers whose life begins, gives those whose life is over. model_step, model_evaluate and
 * model_generate call it themselves; the caller enters load, step and save. */
void model_enter(model *m, int phase);
/* For tests: fills every buffer with NaN as its life begins, so that a read before a write shows at once. */
void model_set_poison(model *m, bool poison);

/* ---- weights ---- */

/* Tensor `tensor` (index as in lst_arch_tensor_at), stored in lst_weight_form_codec(plan->recipe.weights). */
void *model_weight(model *m, size_t tensor);
/* Random weights as Hugging Face initialises the family: normal(0, init_range) for matrices (GPT-2's projections into
 * the residual stream divided by sqrt(2 L)), 1 for norms, 0 for biases; drawn in float32 from (seed, tensor, element)
 * and rounded to the stored form. */
void model_init_random(model *m, uint64_t seed);

/* The same values without a model: n float32 of one tensor from `first` on. */
typedef struct model_init {
    const lst_arch *arch;
    uint64_t seed;
    lst_pool *pool; /* NULL: one thread */
} model_init;
void model_init_part(const model_init *init, size_t tensor, size_t first, size_t n, float *out);

/* ---- a step ---- */

/* Token ids of a micro-batch, [batch, seq], to be filled by the caller before a step; each below vocab (checked). */
int32_t *model_ids(model *m, size_t micro);
/* Targets, [batch, seq]: the id that position (b, t) is to predict, i.e. ids one to the right; MODEL_IGNORE is not
 * counted. */
int32_t *model_targets(model *m, size_t micro);
/* Counted targets of all micro-batches: what the loss is divided by. */
size_t model_counted(const model *m);

typedef struct model_hooks {
    void *user;
    /* After the loss, before any on_gradient (so before the first update): the mean loss of the step, unscaled. A
     * status other than LST_OK ends the step with it; no gradient is handed out. May be NULL. */
    lst_status (*on_loss)(void *user, double loss, lst_error *err);
    /* One tensor's gradient is complete, over all micro-batches. `grad` is float32 under LST_GRAD_RELEASE (its buffer
     * is used again after the call, and the tensor's weights may be changed now), or in recipe.grads under
     * LST_GRAD_KEEP (valid to the end of the step; weights must not change before model_step returns). Called for every
     * tensor once, last layer first. A status other than LST_OK ends the step with it. May be NULL under
     * LST_GRAD_KEEP. */
    lst_status (*on_gradient)(void *user, size_t tensor, const void *grad, lst_codec codec, lst_error *err);
} model_hooks;

/* Forward of every micro-batch, loss, backward (layer outer, micro-batch inner). Gradients are those of
 * loss_scale * (sum of counted cross-entropies) / counted. *loss is the mean, unscaled; it may be non-finite (the
 * caller decides). LST_ERR_ARGUMENT for an id or target out of range (position named) or if no target is counted. */
LST_MUST_USE lst_status model_step(model *m, float loss_scale, const model_hooks *hooks, double *loss, lst_error *err);
/* A kept gradient (LST_GRAD_KEEP), in recipe.grads; valid after model_step until the next. NULL under
 * LST_GRAD_RELEASE. */
void *model_gradient(model *m, size_t tensor);

/* ---- evaluation ---- */

/* Sum of cross-entropies and number of counted targets of micro-batch 0 (as filled), forward only. */
LST_MUST_USE lst_status model_evaluate(model *m, double *loss_sum, size_t *counted, lst_error *err);
/* Logits [batch * seq, vocab] of micro-batch 0, forward only, into the caller's memory (for tests and inspection). */
LST_MUST_USE lst_status model_logits(model *m, float *logits, lst_error *err);

/* ---- gradient check ---- */

/* One weight nudged up and down by `nudge`, the loss at both, the rate between them, and backward's answer beside
 * it. */
typedef struct model_nudge {
    size_t tensor, element;
    double nudge;
    double weight;             /* before */
    double loss_before;        /* at the weight as it is */
    double loss_down, loss_up; /* at weight - nudge and weight + nudge (as stored: rounded) */
    double rate;               /* (loss_up - loss_down) / (what the stored weight really moved) */
    double backward;           /* the gradient that model_step computed */
} model_nudge;

/* Fills in everything but tensor, element and nudge, for micro-batch 0 as filled. Needs a plan with LST_GRAD_KEEP,
 * float32 gradients and accumulation 1. Weights are put back exactly. nudge 0 chooses one from the weights' size. */
LST_MUST_USE lst_status model_check_gradient(model *m, model_nudge *nudges, size_t n, lst_error *err);

/* ---- generation ---- */

typedef struct model_sampling {
    size_t max_tokens;  /* how many to write */
    double temperature; /* 0: greedy, the largest logit (the lowest id of equals) */
    size_t top_k;       /* 0: all; otherwise only the k largest logits */
    uint64_t seed;      /* token n is drawn from (seed, n): the same for any thread count */
    int32_t stop;       /* stop before writing this id; negative: never */
} model_sampling;

/* How many positions the cache holds: seq of the training plan, or what the generation plan was made for. When it is
 * full, the older half is forgotten and the rest is read again. */
size_t model_positions(const model *m);
/* Continues a prompt of n >= 1 ids (only its last positions are read if it is longer than the cache). on_token gets
 * each id as it is written; a status other than LST_OK ends generation with it. */
LST_MUST_USE lst_status model_generate(model *m, const int32_t *prompt, size_t n, const model_sampling *sampling,
                                       lst_status (*on_token)(void *user, int32_t id, lst_error *err), void *user,
                                       lst_error *err);

#endif
