/* SPDX-License-Identifier: MIT
 *
 * Every layer in double, straight from the formula: the truth that test_layers.c differentiates. in[0] is x, the others
 * are parameters; shapes as each struct says.
 */
#ifndef TESTS_MODEL_REFERENCE_H
#define TESTS_MODEL_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/arch.h"

typedef struct ref_linear {
    size_t rows, in, out;
    int conv1d;
} ref_linear;
void ref_linear_forward(const void *shape, double *const *in, double *out); /* x, weight, bias, residual */

typedef struct ref_norm {
    size_t rows, n;
    double eps;
    int layer_norm;
} ref_norm;
void ref_norm_forward(const void *shape, double *const *in, double *out); /* x, weight, bias */

typedef struct ref_rope {
    const lst_arch *arch;
    size_t rows, seq, heads;
} ref_rope;
void ref_rope_forward(const void *shape, double *const *in, double *out);

void ref_attention_forward(const void *shape, double *const *in, double *out); /* shape: model_attention; in: qkv */
void ref_gelu_forward(const void *shape, double *const *in, double *out);      /* shape: size_t n */
void ref_swiglu_forward(const void *shape, double *const *in, double *out);    /* gate, up */

typedef struct ref_embed {
    const int32_t *ids;
    size_t rows, seq, hidden;
} ref_embed;
void ref_embed_forward(const void *shape, double *const *in, double *out); /* tokens, positions */

typedef struct ref_loss {
    size_t rows, hidden, vocab;
    double eps;
    int layer_norm;
    const int32_t *targets;
    int32_t ignore;
} ref_loss;
void ref_loss_forward(const void *shape, double *const *in,
                      double *out); /* x, norm weight, norm bias, head: summed loss */

#endif
