/* SPDX-License-Identifier: MIT
 *
 * Weights of a GGUF file as the model has them: named, transposed and permuted back, decoded a stretch at a time from
 * the map. Nothing here grows with a tensor.
 */
#ifndef LST_CKPT_GGUF_WEIGHTS_H
#define LST_CKPT_GGUF_WEIGHTS_H

#include "io/gguf.h"
#include "leanstep/arch.h"

/* Every tensor of the architecture is there with its shape and in a type that is decoded, and no other. */
LST_MUST_USE lst_status lst__gguf_check_weights(const lst_gguf *gguf, const lst_arch *arch, lst_error *err);
/* n values of one tensor (index as in lst_arch_tensor_at) from `first` on, of a file that was checked. */
void lst__gguf_values(const lst_gguf *gguf, const lst_arch *arch, size_t tensor, size_t first, size_t n, float *out);

#endif
