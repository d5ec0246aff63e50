/* SPDX-License-Identifier: MIT
 *
 * What a rule is. A rule knows arithmetic: which hyper-parameters it reads, which slots it keeps for a tensor, and how
 * a step goes. It knows nothing of codecs, homes or threads: those are pass.h's business.
 *
 * Two forms. An element-wise rule names a loop of the kernels table and the scalars to run it with. A rule that looks
 * at the whole tensor (norms, factored moments, orthogonalised momentum) has a function that runs passes over the
 * tensor's tiles, with sums between them and scratch that it declared beforehand. To add a rule: one file with one
 * lst__rule, one line in LST_RULE_LIST, one in rules.c.
 */
#ifndef LST_OPTIM_RULE_H
#define LST_OPTIM_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/rules.h"
#include "leanstep/optim.h"

/* One slot as a rule asks for it. */
typedef struct lst__slot_spec {
    lst_bucket bucket;
    size_t n_elems;
    bool non_negative; /* a second moment: a codec may store it unsigned */
    bool always_f32;   /* row and column statistics: small, and not stored in the codec of the moments */
} lst__slot_spec;

/* An element-wise step, ready to run on any part of the tensor. */
typedef struct lst__rule_call {
    enum lst__rule_loop_id loop;
    float k[LST__N_K];
} lst__rule_call;

typedef struct lst__step lst__step; /* pass.h */

typedef struct lst__rule {
    lst_hyper defaults;
    unsigned fields; /* LST__FIELD_* bits of the hyper-parameters that the rule reads */
    /* What the ranges of single fields do not say; may be NULL. `where` begins the message ("group 0"). */
    lst_status (*check)(const lst_hyper *hyper, const char *where, lst_error *err);
    /* Whether the rule can step a tensor; may be NULL. A rule without it refuses lst_tensor.moment_block. */
    lst_status (*check_tensor)(const lst_tensor *tensor, lst_error *err);
    /* The slots of one tensor in the rule's order, master apart; returns their number. */
    size_t (*slots)(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out);
    /* First form: loop and scalars of step t (1 for the tensor's first); NULL in a rule of the second form. */
    void (*prepare)(const lst_hyper *hyper, int64_t t, lst__rule_call *out);
    /* Second form. */
    void (*whole)(lst__step *step);
    size_t (*scratch_bytes)(const lst_hyper *hyper, const lst_tensor *tensor); /* may be NULL: none */
} lst__rule;

extern const lst__rule lst__rule_sgd, lst__rule_momentum, lst__rule_nesterov, lst__rule_adam, lst__rule_adamw,
    lst__rule_lion, lst__rule_rmsprop, lst__rule_lars, lst__rule_lamb, lst__rule_adafactor, lst__rule_adafactor_torch,
    lst__rule_muon, lst__rule_adam_mini, lst__rule_schedule_free;

/* The description of a rule; `rule` must be one of the enum. */
const lst__rule *lst__rule_get(lst_rule rule);

/* Hyper-parameters as a table. X(BIT NAME, field, kind); kinds: RATE finite >= 0, BETA in [0, 1), DECAY finite <= 0,
 * REAL finite, WHOLE a whole number >= 0, FLAG. */
#define LST__FIELD_LIST(X)                                                                                             \
    X(LR, lr, RATE)                                                                                                    \
    X(BETA1, beta1, BETA)                                                                                              \
    X(BETA2, beta2, BETA)                                                                                              \
    X(EPS, eps, RATE)                                                                                                  \
    X(MOMENTUM, momentum, BETA)                                                                                        \
    X(DAMPENING, dampening, BETA)                                                                                      \
    X(WEIGHT_DECAY, weight_decay, RATE)                                                                                \
    X(ALPHA, alpha, BETA)                                                                                              \
    X(TRUST_COEFFICIENT, trust_coefficient, RATE)                                                                      \
    X(EPS2, eps2, RATE)                                                                                                \
    X(BETA2_DECAY, beta2_decay, DECAY)                                                                                 \
    X(CLIP_THRESHOLD, clip_threshold, RATE)                                                                            \
    X(NS_STEPS, ns_steps, WHOLE)                                                                                       \
    X(NS_A, ns_a, REAL)                                                                                                \
    X(NS_B, ns_b, REAL)                                                                                                \
    X(NS_C, ns_c, REAL)                                                                                                \
    X(WARMUP_STEPS, warmup_steps, WHOLE)                                                                               \
    X(R, r, RATE)                                                                                                      \
    X(WEIGHT_LR_POWER, weight_lr_power, RATE)                                                                          \
    X(AMSGRAD, amsgrad, FLAG)                                                                                          \
    X(MAXIMIZE, maximize, FLAG)                                                                                        \
    X(CENTERED, centered, FLAG)                                                                                        \
    X(EXCLUDE_1D, exclude_1d, FLAG)                                                                                    \
    X(SCALE_PARAMETER, scale_parameter, FLAG)                                                                          \
    X(RELATIVE_STEP, relative_step, FLAG)                                                                              \
    X(WARMUP_INIT, warmup_init, FLAG)                                                                                  \
    X(NESTEROV, nesterov, FLAG)                                                                                        \
    X(MATCH_RMS, match_rms, FLAG)                                                                                      \
    X(ADAMW, adamw, FLAG)

enum lst__field_index {
#define LST_X(id, field, kind) LST__FIELD_INDEX_##id,
    LST__FIELD_LIST(LST_X)
#undef LST_X
        LST__N_FIELDS
};
enum lst__field_bit {
#define LST_X(id, field, kind) LST__FIELD_##id = 1 << LST__FIELD_INDEX_##id, /* fewer than 31 */
    LST__FIELD_LIST(LST_X)
#undef LST_X
};

/* Every field in its range; every field the rule does not read at its default. */
LST_MUST_USE lst_status lst__hyper_check(lst_rule rule, const lst_hyper *hyper, size_t group, lst_error *err);

/* Elements of a tensor (1 for a scalar), or LST_ERR_ARGUMENT if a dimension is 0 or the product overflows. */
LST_MUST_USE lst_status lst__tensor_elems(const lst_tensor *tensor, size_t *out, lst_error *err);
/* The same for a tensor that was checked before. */
size_t lst__tensor_n(const lst_tensor *tensor);

#endif
