/* SPDX-License-Identifier: MIT
 *
 * The body for AVX2. The target is named here rather than on the command line, so that `cc src/[a-z]*.c` builds too; it
 * leaves FMA out, so no contraction can happen.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#include "kernels/body.h"

typedef __m256i vec;
#define LST__VECTOR_BYTES 32
#define WORD(op) _mm256_##op
#define BITS(op) _mm256_##op##_si256

/* What each lane of a group adds to its random start, as two vectors of floats pack: 0-3, 8-11, 4-7, 12-15. */
#define LANE(i) (uint16_t)((i)*LST__DRAW_LANE_STEP)
#define LANES4(i) LANE(i), LANE(i + 1), LANE(i + 2), LANE(i + 3)
static const uint16_t lane_steps[LST__DRAW_GROUP] = {LANES4(0),  LANES4(8),  LANES4(4),  LANES4(12),
                                                     LANES4(16), LANES4(24), LANES4(20), LANES4(28)};

BODY_INLINE __m128i narrow_max16(__m256i x)
{
    return _mm_max_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

BODY_INLINE __m256i in_order(__m256i shorts)
{
    return _mm256_permute4x64_epi64(shorts, 0xd8);
}

BODY_INLINE __m256i bytes_in_order(__m256i bytes)
{
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

BODY_INLINE __m256i pack_codes(const __m256i code[2])
{
    return bytes_in_order(_mm256_packus_epi16(code[0], code[1]));
}

/* Codes with the signs of x: packs with saturation keep them. */
BODY_INLINE __m256i pack_signed(const __m256i code[2], const __m256i x[4])
{
    const __m256i signs = _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    const __m256i bit = _mm256_and_si256(signs, _mm256_set1_epi8((char)0x80));
    return bytes_in_order(_mm256_or_si256(_mm256_packus_epi16(code[0], code[1]), bit));
}

BODY_INLINE void widen_codes(const uint8_t *codes, __m256i out[2])
{
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)codes),
                                                      _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    out[0] = _mm256_unpacklo_epi8(bytes, _mm256_setzero_si256());
    out[1] = _mm256_unpackhi_epi8(bytes, _mm256_setzero_si256());
}

/* x where the code is above 0, 0 where it is 0. */
BODY_INLINE __m256i where_above_zero(__m256i code, __m256i x)
{
    return _mm256_sign_epi16(x, code);
}

#include "kernels/blocks_lanes.h"

void lst__kernels_fill_avx2(lst__kernels *k)
{
    k->name = "avx2";
    fill_all(k);
    fill_blocks_lanes(k);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int no_avx2_on_this_target;
#endif
