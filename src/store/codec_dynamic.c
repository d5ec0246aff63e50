/* SPDX-License-Identifier: MIT
 *
 * bitsandbytes' block-wise 8-bit format: a code of the dynamic map for each value, one float32 scale (the block's
 * largest magnitude) for each block of 256 or 2,048 values in the tensor's flat order. The buffer holds the codes of
 * the whole tensor, then at the next multiple of 4 the scales. Nearest rounding: numeric/dynamic_map.h.
 *
 * An infinity counts as the largest float32. A NaN makes its block's scale a NaN, and so every value of the block.
 */
#include "store/codec.h"

#include <float.h>
#include <stdint.h>

#include "kernels/kernels.h"

static size_t scales_at(size_t n_elems)
{
    return n_elems / 4 * 4 + (n_elems % 4 != 0 ? 4 : 0);
}

static size_t bytes(size_t n_elems, size_t block)
{
    const size_t blocks = n_elems / block + (n_elems % block != 0);
    return n_elems > SIZE_MAX - SIZE_MAX / 64 ? SIZE_MAX : scales_at(n_elems) + blocks * sizeof(float);
}

static void encode(int is_signed, size_t block, uint8_t *memory, size_t n_elems, size_t first, size_t n,
                   const float *in)
{
    const lst__kernels *k = lst__kernels_get();
    const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
    float *scales = (float *)(void *)(memory + scales_at(n_elems));
    for (size_t done = 0; done < n; done += block) {
        const size_t span = n - done < block ? n - done : block;
        const float most = k->max_abs(in + done, span);
        const float absmax = most > FLT_MAX ? FLT_MAX : most;
        k->f32_to_dynamic(in + done, memory + first + done, span, absmax, map);
        scales[(first + done) / block] = absmax;
    }
}

static void decode(int is_signed, size_t block, const uint8_t *memory, size_t n_elems, size_t first, size_t n,
                   float *out)
{
    const lst__kernels *k = lst__kernels_get();
    const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
    const float *scales = (const float *)(const void *)(memory + scales_at(n_elems));
    for (size_t done = 0; done < n; done += block) {
        const size_t span = n - done < block ? n - done : block;
        k->dynamic_to_f32(memory + first + done, out + done, span, scales[(first + done) / block], map);
    }
}

/* One row of the table for each block size and sign. */
#define ROW(name, block, is_signed)                                                                                    \
    static size_t bytes_##name(size_t n)                                                                               \
    {                                                                                                                  \
        return bytes(n, block);                                                                                        \
    }                                                                                                                  \
    static void decode_##name(const void *memory, size_t n_elems, size_t first, size_t n, float *out)                  \
    {                                                                                                                  \
        decode(is_signed, block, memory, n_elems, first, n, out);                                                      \
    }                                                                                                                  \
    static void encode_##name(void *memory, size_t n_elems, size_t first, size_t n, const float *in,                   \
                              const lst__rounding *rounding)                                                           \
    {                                                                                                                  \
        (void)rounding;                                                                                                \
        encode(is_signed, block, memory, n_elems, first, n, in);                                                       \
    }                                                                                                                  \
    const lst__codec_traits lst__codec_##name = {block, bytes_##name, decode_##name, encode_##name};

ROW(q8_dynamic, 256, 1)
ROW(q8_dynamic_u, 256, 0)
ROW(q8_dynamic_2048, 2048, 1)
ROW(q8_dynamic_2048_u, 2048, 0)
