/* SPDX-License-Identifier: MIT
 *
 * What `leanstep explain` shows, one function a topic; and the bench they work on: an optimizer on a
 * handful of weights.
 */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include <stddef.h>

#include "leanstep/optim.h"

/* X(topic, what it shows) */
#define CLI_EXPLAIN_LIST(X)                                                                                            \
    X(bf16, "why small updates vanish in bf16 weights, and what keeps them")                                           \
    X(adam, "why Adam keeps two moments: steps of one size from gradients of any")                                     \
    X(blocks, "why 8-bit state has scales for small blocks, and what still breaks")                                    \
    X(decay, "weight decay folded into the gradient, and decoupled from it")

#define CLI_X(name, text) lst_status cli_explain_##name(lst_error *err) LST_MUST_USE;
CLI_EXPLAIN_LIST(CLI_X)
#undef CLI_X

enum { CLI_LAB_WEIGHTS = 1024 };

/* One tensor with its optimizer; in static storage of the caller. */
typedef struct cli_lab {
    lst_optim *optim;
    size_t n;
    _Alignas(64) unsigned char weights[CLI_LAB_WEIGHTS * 4];
    _Alignas(64) unsigned char state[CLI_LAB_WEIGHTS * 16 + 8192];
} cli_lab;

/* n weights of the same value. */
LST_MUST_USE lst_status cli_lab_open(cli_lab *lab, lst_rule rule, lst_weight_form weights, const lst_hyper *hyper,
                                     size_t n, float value, lst_error *err);
LST_MUST_USE lst_status cli_lab_step(cli_lab *lab, const float *grads, lst_error *err);
/* The weights as the optimizer knows them, into out[n]. */
LST_MUST_USE lst_status cli_lab_read(const cli_lab *lab, float *out, lst_error *err);
void cli_lab_close(cli_lab *lab);

#endif
