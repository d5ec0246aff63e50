/* SPDX-License-Identifier: MIT
 *
 * Codecs of one number a value, without scales: f32, bf16, f16; and lo16, lo8, which are only parts of weights.
 */
#include "store/codec.h"

#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

static size_t bytes_of_4(size_t n)
{
    return n <= SIZE_MAX / 4 ? n * 4 : SIZE_MAX;
}

static size_t bytes_of_2(size_t n)
{
    return n <= SIZE_MAX / 2 ? n * 2 : SIZE_MAX;
}

static size_t bytes_of_1(size_t n)
{
    return n;
}

static void decode_f32(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    (void)n_elems;
    if (n > 0)
        memcpy(out, (const float *)memory + first, n * sizeof *out);
}

static void encode_f32(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                       const lst__rounding *rounding)
{
    (void)n_elems;
    (void)rounding;
    if (n > 0)
        memcpy((float *)memory + first, in, n * sizeof *in);
}

static void decode_bf16(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    (void)n_elems;
    lst__kernels_get()->bf16_to_f32((const uint16_t *)memory + first, out, n);
}

static void encode_bf16(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                        const lst__rounding *rounding)
{
    (void)n_elems;
    (void)rounding;
    lst__kernels_get()->f32_to_bf16(in, (uint16_t *)memory + first, n);
}

static void decode_f16(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    (void)n_elems;
    lst__kernels_get()->f16_to_f32((const uint16_t *)memory + first, out, n);
}

static void encode_f16(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                       const lst__rounding *rounding)
{
    (void)n_elems;
    (void)rounding;
    lst__kernels_get()->f32_to_f16(in, (uint16_t *)memory + first, n);
}

const lst__codec_traits lst__codec_f32 = {1, bytes_of_4, decode_f32, encode_f32};
const lst__codec_traits lst__codec_bf16 = {1, bytes_of_2, decode_bf16, encode_bf16};
const lst__codec_traits lst__codec_f16 = {1, bytes_of_2, decode_f16, encode_f16};
const lst__codec_traits lst__codec_lo16 = {1, bytes_of_2, NULL, NULL};
const lst__codec_traits lst__codec_lo8 = {1, bytes_of_1, NULL, NULL};
