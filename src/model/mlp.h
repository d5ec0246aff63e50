/* SPDX-License-Identifier: MIT
 *
 * The pointwise middle of an MLP: GELU (tanh form) of up, or silu(gate) * up.
 */
#ifndef MODEL_MLP_H
#define MODEL_MLP_H

#include <stddef.h>

#include "model/work.h"

/* product from up and gate (NULL: GELU); n elements. */
void model_mlp_forward(const model_work *work, float *product, const float *gate, const float *up, size_t n);
/* up and gate are overwritten with their gradients. */
void model_mlp_backward(const model_work *work, float *gate, float *up, const float *d_product, size_t n);

#endif
