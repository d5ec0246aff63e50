/* SPDX-License-Identifier: MIT */
#include "model/work.h"

#include <string.h>

#include "kernels/kernels.h"

void model_widen(float *out, const void *stored, lst_codec codec, size_t first, size_t n)
{
    if (codec == LST_CODEC_BF16)
        lst__kernels_get()->bf16_to_f32((const uint16_t *)stored + first, out, n);
    else if (codec == LST_CODEC_F16)
        lst__kernels_get()->f16_to_f32((const uint16_t *)stored + first, out, n);
    else
        memcpy(out, (const float *)stored + first, n * sizeof *out);
}

const float *model_vector(const model_work *work, int slot, const void *stored, lst_codec codec, size_t n)
{
    if (!stored || codec == LST_CODEC_F32)
        return stored;
    float *out = work->vectors + (size_t)slot * work->vector_elems;
    model_widen(out, stored, codec, 0, n);
    return out;
}
