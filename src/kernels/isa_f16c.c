/* SPDX-License-Identifier: MIT
 *
 * f16 conversions by the CPU's own instructions, on top of AVX2 or AVX-512.
 */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/kernels.h"
#include "numeric/f16.h"

#define F16C __attribute__((target("avx,f16c")))

F16C static void f16_to_f32(const uint16_t *restrict in, float *restrict out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + i))));
    for (; i < n; i++)
        out[i] = lst__f16_to_f32(in[i]);
}

F16C static void f32_to_f16(const float *restrict in, uint16_t *restrict out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(out + i), half);
    }
    for (; i < n; i++)
        out[i] = lst__f16_from_f32(in[i]);
}

void lst__kernels_fill_f16c(lst__kernels *k)
{
    k->f16_to_f32 = f16_to_f32;
    k->f32_to_f16 = f32_to_f16;
}
#else
typedef int no_f16c_on_this_target;
#endif
