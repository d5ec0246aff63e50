/* SPDX-License-Identifier: MIT
 *
 * The inner loops of the optimizer rules: one step of n elements on float32 arrays that lie in L1 or stream through
 * it. What the scalars mean is said beside each loop in body_rules.h; src/optim/ computes them in double and casts
 * them once.
 */
#ifndef LST_KERNELS_RULES_H
#define LST_KERNELS_RULES_H

#include <stddef.h>

/* X(name): one loop each, in every instruction set's table. */
#define LST__RULE_LOOP_LIST(X)                                                                                         \
    X(stream)                                                                                                          \
    X(sgd)                                                                                                             \
    X(momentum)                                                                                                        \
    X(momentum_first)                                                                                                  \
    X(nesterov)                                                                                                        \
    X(nesterov_first)                                                                                                  \
    X(adam)                                                                                                            \
    X(adam_late)                                                                                                       \
    X(adam_amsgrad)                                                                                                    \
    X(adam_amsgrad_late)                                                                                               \
    X(adamw)                                                                                                           \
    X(adamw_late)                                                                                                      \
    X(adamw_amsgrad)                                                                                                   \
    X(adamw_amsgrad_late)                                                                                              \
    X(lion)                                                                                                            \
    X(rmsprop)                                                                                                         \
    X(rmsprop_momentum)                                                                                                \
    X(rmsprop_centered)                                                                                                \
    X(rmsprop_centered_momentum)                                                                                       \
    X(lars)                                                                                                            \
    X(lamb_direction)                                                                                                  \
    X(lamb)                                                                                                            \
    X(schedule_free)                                                                                                   \
    X(schedule_free_first)

enum lst__rule_loop_id {
#define LST__X(name) LST__LOOP_##name,
    LST__RULE_LOOP_LIST(LST__X)
#undef LST__X
        LST__N_RULE_LOOPS
};

/* Scalars of a step, by place in k[]. Every loop reads those it is documented with. */
enum lst__rule_scalar {
    LST__K_SIGN,    /* 1, or -1 to maximize: multiplies the gradient */
    LST__K_L2,      /* weight decay added to the gradient */
    LST__K_RATE,    /* what the direction is multiplied by before it is added: -lr, or -lr / (1 - beta1^t) */
    LST__K_DECAY,   /* what the weight is multiplied by first: 1 - lr * weight_decay */
    LST__K_KEEP,    /* what the old buffer is multiplied by: momentum; lion, lamb: beta1; rmsprop: its momentum */
    LST__K_TAKE,    /* what the gradient is multiplied by: 1 - dampening; lion, lamb: 1 - beta1 */
    LST__K_BETA1C,  /* 1 - beta1, or for a _late loop beta1 */
    LST__K_BETA2,   /* beta2 */
    LST__K_BETA2C,  /* 1 - beta2 */
    LST__K_UNBIAS2, /* 1 / sqrt(1 - beta2^t): to divide each element by the root would cost a third of the time */
    LST__K_EPS,
    LST__K_INVERSE_BC1, /* 1 / (1 - beta1^t) */
    LST__K_TRUST,       /* lars: the rate is LST__K_TRUST * LST__K_TRUST_UNIT^2, which does not underflow */
    LST__K_TRUST_UNIT,
    LST__K_AVERAGE, /* schedule_free: share of z in the new y */
    LST__K_RATE_Y,  /* schedule_free: what the direction is multiplied by for y; LST__K_RATE is z's */
    LST__N_K
};

#define LST__RULE_STATES 4 /* the most state arrays a loop works on */

typedef struct lst__rule_args {
    size_t n;
    float *w;                   /* weights, updated */
    const float *g;             /* gradient */
    float *s[LST__RULE_STATES]; /* state in the rule's own order, updated */
    const float *k;             /* LST__N_K scalars */
} lst__rule_args;

typedef void lst__rule_loop(const lst__rule_args *args);

#endif
