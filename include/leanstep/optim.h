/* SPDX-License-Identifier: MIT
 *
 * Optimizers: rules that turn a gradient into a step, on tensors the caller owns.
 *
 * The life of an optimizer:
 *
 *     lst_optim_create      describe tensors and options; nothing of a tensor's size is allocated
 *     lst_optim_state_bytes ask what the state will take, before it takes it
 *     lst_optim_bind        give it memory for the state (one block), or lst_optim_bind_slot slot by slot
 *     lst_optim_bind_weights give it the weights, tensor by tensor
 *     lst_optim_reset       state to its start: zero moments, masters from the weights, step counts 0
 *     per step:  lst_optim_begin, lst_optim_step_tensor for each tensor that has a gradient (or lst_optim_step for all)
 *     lst_optim_destroy
 *
 * Reference semantics are PyTorch 2.x; formulas stand at the head of each rule's file in src/optim/.
 * Results are bit-equal for any number of threads and any instruction set.
 */
#ifndef LEANSTEP_OPTIM_H
#define LEANSTEP_OPTIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/codec.h"
#include "leanstep/ledger.h"
#include "leanstep/pool.h"
#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rules, with the bytes of state that one parameter takes in float32 (formulas at the head of src/optim/<rule>.c):
 *
 *     sgd                  0   no state
 *     momentum             4   with dampening
 *     nesterov             4
 *     adam                 8   decay added to the gradient; 12 with amsgrad
 *     adamw                8   decoupled decay; 12 with amsgrad
 *     lion                 4   the sign of a moment
 *     rmsprop              4   8 with momentum, 12 centered too
 *     lars                 4   momentum, scaled by |weights| / |gradient| of each tensor
 *     lamb                 8   Adam, scaled by |weights| / |update| of each tensor
 *     adafactor           ~0   a second moment a row and a column: 4*(m + n) for m x n; 4 more with beta1 > 0
 *     adafactor-torch     ~0   the same as PyTorch understands it
 *     muon                 4   orthogonalised momentum for matrices, 8 for what AdamW steps; needs scratch
 *     adam-mini           ~4   AdamW with one second moment for a row, a head or a column
 *     schedule-free-adamw  8   no schedule; evaluate lst_optim_get_eval_weights_f32
 */
/* X(identifier, name on the command line and in files) */
#define LST_RULE_LIST(X)                                                                                               \
    X(SGD, "sgd")                                                                                                      \
    X(MOMENTUM, "momentum")                                                                                            \
    X(NESTEROV, "nesterov")                                                                                            \
    X(ADAM, "adam")                                                                                                    \
    X(ADAMW, "adamw")                                                                                                  \
    X(LION, "lion")                                                                                                    \
    X(RMSPROP, "rmsprop")                                                                                              \
    X(LARS, "lars")                                                                                                    \
    X(LAMB, "lamb")                                                                                                    \
    X(ADAFACTOR, "adafactor")                                                                                          \
    X(ADAFACTOR_TORCH, "adafactor-torch")                                                                              \
    X(MUON, "muon")                                                                                                    \
    X(ADAM_MINI, "adam-mini")                                                                                          \
    X(SCHEDULE_FREE, "schedule-free-adamw")

typedef enum lst_rule {
#define LST_X(id, name) LST_RULE_##id,
    LST_RULE_LIST(LST_X)
#undef LST_X
        LST_N_RULES
} lst_rule;

LST_API const char *lst_rule_name(lst_rule rule);
/* Finds a rule by name; LST_ERR_ARGUMENT lists the names there are. */
LST_API LST_MUST_USE lst_status lst_rule_find(const char *name, lst_rule *out, lst_error *err);

/* Hyper-parameters of one group, under PyTorch's names. A field that the rule does not use must hold the default given
 * by lst_hyper_default: an option without effect is an error. */
typedef struct lst_hyper {
    /* The step's size. lars has it inside its buffer; adafactor multiplies it by the size of the weights. */
    double lr;
    /* Decay of the moments. adafactor keeps a first moment where beta1 is above 0. */
    double beta1, beta2;
    /* Added to the root of the second moment. adafactor: added to g*g; adafactor-torch: the second moment is held above
     * its square; muon: the least norm that the iteration divides by. */
    double eps;
    /* momentum, nesterov, rmsprop, lars, muon; dampening: momentum alone, and not on a tensor's first gradient. */
    double momentum, dampening;
    /* Added to the gradient (L2) in sgd, momentum, nesterov, adam, rmsprop and lars, and to the direction in lamb and
     * schedule-free-adamw; weights are multiplied by 1 - lr*weight_decay in the others. */
    double weight_decay;
    double alpha;             /* rmsprop: what the second moment keeps */
    double trust_coefficient; /* lars: size of a step over size of the weights */
    double eps2;              /* adafactor: the least size of weights that a step is scaled by */
    double beta2_decay;       /* adafactor: 1 - beta2 of step t is t^beta2_decay; at most 0 */
    double clip_threshold;    /* adafactor: root mean square of an update beyond which it is scaled down */
    /* muon: iterations (a whole number) and their coefficients. */
    double ns_steps;
    double ns_a, ns_b, ns_c;
    /* schedule-free-adamw: warm-up (a whole number of steps); step k weighs k^r * lr^weight_lr_power in the average. */
    double warmup_steps;
    double r, weight_lr_power;
    bool amsgrad;         /* adam, adamw: the largest second moment so far counts; one more slot */
    bool maximize;        /* steps along the gradient instead of against it */
    bool centered;        /* rmsprop: the variance instead of the second moment; one more slot */
    bool exclude_1d;      /* lars, lamb: tensors of at most one dimension take no decay and no trust ratio */
    bool scale_parameter; /* adafactor: lr is multiplied by the root mean square of the weights */
    bool relative_step;   /* adafactor: min(1e-2, 1/sqrt(t)) in place of lr, which must be left alone */
    bool warmup_init;     /* adafactor with relative_step: min(1e-6*t, 1/sqrt(t)) */
    bool nesterov;        /* muon */
    bool match_rms;       /* muon: steps of the size of AdamW's, so that both take the same lr */
    bool adamw;           /* muon: AdamW steps this group's matrices too (embeddings, head) */
} lst_hyper;

/* X(field): all numbers and all switches of lst_hyper, for code that saves, loads or shows them. lr comes first. */
/* clang-format off */
#define LST_HYPER_NUMBER_LIST(X) \
    X(lr) \
    X(beta1) \
    X(beta2) \
    X(eps) \
    X(momentum) \
    X(dampening) \
    X(weight_decay) \
    X(alpha) \
    X(trust_coefficient) \
    X(eps2) \
    X(beta2_decay) \
    X(clip_threshold) \
    X(ns_steps) \
    X(ns_a) \
    X(ns_b) \
    X(ns_c) \
    X(warmup_steps) \
    X(r) \
    X(weight_lr_power)

#define LST_HYPER_SWITCH_LIST(X) \
    X(amsgrad) \
    X(maximize) \
    X(centered) \
    X(exclude_1d) \
    X(scale_parameter) \
    X(relative_step) \
    X(warmup_init) \
    X(nesterov) \
    X(match_rms) \
    X(adamw)
/* clang-format on */

LST_API void lst_hyper_default(lst_rule rule, lst_hyper *out);
/* Whether the rule uses the field of lst_hyper of this name. */
LST_API bool lst_rule_uses(lst_rule rule, const char *name);

#define LST_MAX_DIMS 8

/* One parameter as the caller describes it. The name is copied. */
typedef struct lst_tensor {
    const char *name;
    size_t n_dims; /* 0 for a scalar */
    size_t dims[LST_MAX_DIMS];
    size_t group; /* index into the groups */
    /* adam-mini: how many consecutive values share a second moment; must divide the number of values. 0: one row of a
     * matrix (the last dimension), all of a vector. 1: each its own (embedding, head). head_dim * hidden: an attention
     * head of q or k. LST_MOMENT_COLUMNS: the columns of a matrix share instead, where outputs are columns (stored [in,
     * out]). */
    size_t moment_block;
    bool f32_state; /* keep this tensor's moments in f32 whatever options.state says (embeddings, on request) */
} lst_tensor;
/* A tensor of fewer values keeps its moments in f32: it has little to save and much to lose. */
#define LST_SMALL_TENSOR 4096
#define LST_MOMENT_COLUMNS ((size_t)-1)

typedef struct lst_optim_options {
    size_t struct_size; /* sizeof(lst_optim_options): lets the struct grow */
    lst_rule rule;
    lst_weight_form weights;
    lst_codec grads; /* f32, bf16 or f16: what the gradient pointers passed to a step hold */
    lst_codec
        state; /* of the moments: f32, q8, q4, q8-dynamic or q8-dynamic-2048 (second moments in the unsigned form) */
    size_t n_groups;
    const lst_hyper *groups; /* copied */
    uint64_t seed;           /* for stochastic rounding; no effect where nothing rounds so */
    lst_pool *pool;          /* may be NULL: one thread. Must outlive the optimizer */
} lst_optim_options;

/* One tensor of state that the rule keeps for one parameter. */
typedef struct lst_slot {
    const char *name; /* "master", "exp_avg", ... = lst_bucket_name(bucket) */
    lst_bucket bucket;
    lst_codec codec;
    size_t n_elems;
    size_t bytes;
    void *memory; /* NULL until bound */
} lst_slot;

#define LST_MAX_SLOTS 5

typedef struct lst_optim lst_optim;

/* The slots one tensor would have: planner, allocator and checkpoint all call this. `out` has room for
 * LST_MAX_SLOTS. */
LST_API LST_MUST_USE lst_status lst_optim_slots(const lst_optim_options *options, const lst_tensor *tensor,
                                                lst_slot *out, size_t *n_slots, lst_error *err);

/* Bytes of working memory that a step of this tensor needs beside its state; an optimizer needs the most of its
 * tensors'. */
LST_API LST_MUST_USE lst_status lst_optim_scratch(const lst_optim_options *options, const lst_tensor *tensor,
                                                  size_t *bytes, lst_error *err);

LST_API LST_MUST_USE lst_status lst_optim_create(lst_optim **out, const lst_optim_options *options,
                                                 const lst_tensor *tensors, size_t n_tensors, lst_error *err);
LST_API void lst_optim_destroy(lst_optim *optim);

/* Exact bytes of all slots, master included; and by bucket. Known before any memory is bound. */
LST_API size_t lst_optim_state_bytes(const lst_optim *optim);
LST_API size_t lst_optim_bucket_bytes(const lst_optim *optim, lst_bucket bucket);
/* Bytes of one block for lst_optim_bind: the slots, each at a 64-byte boundary and staggered so that arrays that
 * stream together do not share an offset modulo 4,096. */
LST_API size_t lst_optim_block_bytes(const lst_optim *optim);

LST_API size_t lst_optim_tensor_count(const lst_optim *optim);
LST_API const lst_tensor *lst_optim_tensor(const lst_optim *optim, size_t tensor);
LST_API size_t lst_optim_slot_count(const lst_optim *optim, size_t tensor);
LST_API const lst_slot *lst_optim_slot(const lst_optim *optim, size_t tensor, size_t slot);

/* Memory for the state; the caller keeps ownership, and it must stay until lst_optim_destroy. 64-byte aligned. */
LST_API LST_MUST_USE lst_status lst_optim_bind(lst_optim *optim, void *block, size_t bytes, lst_error *err);
LST_API LST_MUST_USE lst_status lst_optim_bind_slot(lst_optim *optim, size_t tensor, size_t slot, void *memory,
                                                    lst_error *err);
/* Working memory that a step needs beside the state: 0 for element-wise rules. One buffer serves all tensors in turn;
 * it holds nothing between steps. 64-byte aligned. */
LST_API size_t lst_optim_scratch_bytes(const lst_optim *optim);
LST_API LST_MUST_USE lst_status lst_optim_bind_scratch(lst_optim *optim, void *memory, size_t bytes, lst_error *err);
/* Weights of one tensor, in lst_weight_form_codec(options.weights); updated in place by a step. */
LST_API LST_MUST_USE lst_status lst_optim_bind_weights(lst_optim *optim, size_t tensor, void *weights, lst_error *err);

/* Zero moments, masters taken from the weights as they are now, step counts 0. */
LST_API LST_MUST_USE lst_status lst_optim_reset(lst_optim *optim, lst_error *err);
/* As lst_optim_reset for one tensor's master, from exact float32 values (say, a float32 checkpoint): also sets
 * the weights to their rounding. */
LST_API LST_MUST_USE lst_status lst_optim_set_weights_f32(lst_optim *optim, size_t tensor, const float *values,
                                                          lst_error *err);
/* The float32 value of the weights as the optimizer knows them (master where there is one). n = elements. */
LST_API LST_MUST_USE lst_status lst_optim_get_weights_f32(const lst_optim *optim, size_t tensor, float *out,
                                                          lst_error *err);

/* The weights to evaluate and publish: the average that schedule-free-adamw keeps beside the weights that gradients are
 * taken at; lst_optim_get_weights_f32 for every other rule. */
LST_API LST_MUST_USE lst_status lst_optim_get_eval_weights_f32(const lst_optim *optim, size_t tensor, float *out,
                                                               lst_error *err);

LST_API LST_MUST_USE lst_status lst_optim_set_lr(lst_optim *optim, size_t group, double lr, lst_error *err);
LST_API const lst_hyper *lst_optim_group(const lst_optim *optim, size_t group);

/* What is done to a gradient as it is read: g * unscale (float32), then * clip (float32), as GradScaler's unscale_
 * and clip_grad_norm_ would have done to it in place. {1, 1} leaves it as it is. */
typedef struct lst_grad_scale {
    float unscale;
    float clip;
} lst_grad_scale;

/* Begins a step: every tensor may be stepped once until the next begin. */
LST_API LST_MUST_USE lst_status lst_optim_begin(lst_optim *optim, lst_error *err);
/* Steps one tensor now: counts its step, updates its state and weights. A tensor not stepped between two begins
 * has no gradient: it is not decayed and its step is not counted (as in PyTorch). */
LST_API LST_MUST_USE lst_status lst_optim_step_tensor(lst_optim *optim, size_t tensor, const void *grad,
                                                      lst_grad_scale scale, lst_error *err);
/* begin + step_tensor for every non-NULL grads[i]. */
LST_API LST_MUST_USE lst_status lst_optim_step(lst_optim *optim, const void *const *grads, lst_grad_scale scale,
                                               lst_error *err);

LST_API int64_t lst_optim_steps(const lst_optim *optim, size_t tensor); /* steps counted for this tensor */
LST_API LST_MUST_USE lst_status lst_optim_set_steps(lst_optim *optim, size_t tensor, int64_t steps, lst_error *err);
/* Number of lst_optim_begin calls so far: what stochastic rounding draws from. Saved and restored with a checkpoint. */
LST_API int64_t lst_optim_begun(const lst_optim *optim);
LST_API void lst_optim_set_begun(lst_optim *optim, int64_t begun);

/* ---- gradients: norm, clipping, loss scale ---- */

/* What lst_grads_check found. */
typedef struct lst_grads_report {
    size_t n_tensors;    /* tensors with a NaN or infinity */
    size_t first_tensor; /* the first of them; SIZE_MAX if none */
} lst_grads_report;
/* Looks for non-finite values in the gradients of a whole step (NULL: no gradient). LST_ERR_NONFINITE names the first
 * tensor and says how many there are; *report (may be NULL) is filled in either way. Steps nothing: a caller that wants
 * PyTorch's GradScaler policy calls this (or lst_grad_sum_squares) first and skips the whole step on failure, leaving
 * weights, state and counters untouched. A step on a non-finite gradient is computed as it stands and spreads it. */
LST_API LST_MUST_USE lst_status lst_grads_check(const lst_optim *optim, const void *const *grads,
                                                lst_grads_report *report, lst_error *err);

/* Sum of squares of one gradient after unscaling, accumulated in double in fixed blocks (same for any thread count),
 * and whether every element (before unscaling) is finite. */
LST_API void lst_grad_sum_squares(const void *grad, lst_codec codec, size_t n_elems, float unscale, lst_pool *pool,
                                  double *sum_squares, bool *finite);
/* Largest magnitude, for the infinity norm; NaN if any element is. */
LST_API double lst_grad_max_abs(const void *grad, lst_codec codec, size_t n_elems, float unscale, lst_pool *pool);
/* The coefficient of torch.nn.utils.clip_grad_norm_: min(1, max_norm / (total_norm + 1e-6)), in float32. */
LST_API float lst_clip_coef(double total_norm, double max_norm);

/* torch.amp.GradScaler: scale, growth, backoff, tracker. Exact, including its refusal to double to infinity. */
typedef struct lst_loss_scale {
    float scale;
    double growth_factor, backoff_factor;
    int64_t growth_interval;
    int64_t growth_tracker;
} lst_loss_scale;
LST_API void lst_loss_scale_default(lst_loss_scale *out);      /* 65536, 2, 0.5, 2000, 0 */
LST_API float lst_loss_scale_unscale(const lst_loss_scale *s); /* float(1 / double(scale)) */
LST_API void lst_loss_scale_update(lst_loss_scale *s, bool found_nonfinite);

/* ---- learning-rate schedules (transformers' get_scheduler family) ---- */

/* X(identifier, name) ; golden_schedules names them as transformers does */
#define LST_SCHEDULE_LIST(X)                                                                                           \
    X(CONSTANT, "constant")                                                                                            \
    X(LINEAR, "linear")                                                                                                \
    X(COSINE, "cosine")                                                                                                \
    X(COSINE_MIN, "cosine_with_min_lr")                                                                                \
    X(COSINE_MIN_EARLY, "cosine_warmup_with_min_lr")                                                                   \
    X(COSINE_RESTARTS, "cosine_with_restarts")                                                                         \
    X(POLYNOMIAL, "polynomial")                                                                                        \
    X(INVERSE_SQRT, "inverse_sqrt")                                                                                    \
    X(WARMUP_STABLE_DECAY, "warmup_stable_decay")

typedef enum lst_schedule_kind {
#define LST_X(id, name) LST_SCHEDULE_##id,
    LST_SCHEDULE_LIST(LST_X)
#undef LST_X
        LST_N_SCHEDULES
} lst_schedule_kind;

/* How the last part of warmup_stable_decay falls. X(identifier, name) */
#define LST_DECAY_LIST(X)                                                                                              \
    X(COSINE, "cosine")                                                                                                \
    X(LINEAR, "linear")                                                                                                \
    X(ONE_MINUS_SQRT, "1-sqrt")

typedef enum lst_decay_kind {
#define LST_X(id, name) LST_DECAY_##id,
    LST_DECAY_LIST(LST_X)
#undef LST_X
        LST_N_DECAYS
} lst_decay_kind;

/* Fields that a kind does not use are left 0; 0 is a field's own default where one is named. Rates are factors of the
 * base rate. With warm-up the first step has rate 0 (as in transformers), except where noted. */
typedef struct lst_schedule {
    lst_schedule_kind kind;
    int64_t warmup_steps;
    int64_t total_steps; /* no effect on constant and inverse_sqrt */
    double cycles;       /* cosine: 0 means 0.5, one fall from 1 to 0; cosine_with_restarts: 0 means 1 */
    double min_rate;     /* the two cosines with a floor, warmup_stable_decay, polynomial (its lr_end) */
    double warmup_rate;  /* cosine_warmup_with_min_lr: rate of the first step; 0 means 1 / warmup_steps */
    double power;        /* polynomial: 0 means 1 */
    int64_t decay_steps; /* warmup_stable_decay: steps of its last part */
    lst_decay_kind decay;
} lst_schedule;

LST_API const char *lst_schedule_name(lst_schedule_kind kind);
/* Finds a kind by name; LST_ERR_ARGUMENT lists the names there are. */
LST_API LST_MUST_USE lst_status lst_schedule_find(const char *name, lst_schedule_kind *out, lst_error *err);
/* Refuses negative counts, warm-up beyond the total, a stable part of negative length, rates outside [0, 1], and fields
 * that the kind does not use. */
LST_API LST_MUST_USE lst_status lst_schedule_check(const lst_schedule *schedule, lst_error *err);
/* Multiplier of the base rate for optimizer step `step` (0 for the first), in double. Defined past the total too: there
 * linear and restarts stay at 0, the floors at their floor, and a cosine rises again, as in transformers. */
LST_API double lst_schedule_rate(const lst_schedule *schedule, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
