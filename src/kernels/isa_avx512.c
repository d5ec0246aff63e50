/* SPDX-License-Identifier: MIT
 *
 * The body for AVX-512 (F, BW, DQ, VL: Skylake-SP and Zen 4 on), with full 512-bit vectors: the kernels are short loops
 * over a tile in L1. AVX512F brings FMA instructions, so here -ffp-contract=off is what forbids contraction; the tests
 * hold this variant bit-equal to the reference.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

#include "kernels/body.h"

typedef __m512i vec;
#define LST__VECTOR_BYTES 64
#define WORD(op) _mm512_##op
#define BITS(op) _mm512_##op##_si512

/* What each lane of a group adds to its random start, as two vectors of floats pack: 0-3, 16-19, 4-7, 20-23, ... */
#define LANE(i) (uint16_t)((i)*LST__DRAW_LANE_STEP)
#define LANES4(i) LANE(i), LANE(i + 1), LANE(i + 2), LANE(i + 3)
static const uint16_t lane_steps[LST__DRAW_GROUP] = {LANES4(0), LANES4(16), LANES4(4),  LANES4(20),
                                                     LANES4(8), LANES4(24), LANES4(12), LANES4(28)};

BODY_INLINE __m128i narrow_max16(__m512i x)
{
    const __m256i half = _mm256_max_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

BODY_INLINE __m512i in_order(__m512i shorts)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), shorts);
}

BODY_INLINE __m256i pack_codes(const __m512i code[1])
{
    return _mm256_permutevar8x32_epi32(_mm512_cvtepi16_epi8(code[0]), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

/* Codes with the signs of x: a pack with saturation keeps them. */
BODY_INLINE __m256i pack_signed(const __m512i code[1], const __m512i x[2])
{
    const __mmask32 negative = _mm512_movepi16_mask(_mm512_packs_epi32(x[0], x[1]));
    const __m512i with_sign = _mm512_mask_add_epi16(code[0], negative, code[0], _mm512_set1_epi16(0x80));
    return pack_codes(&with_sign);
}

BODY_INLINE void widen_codes(const uint8_t *codes, __m512i out[1])
{
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)codes),
                                                      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    out[0] = _mm512_cvtepu8_epi16(bytes);
}

/* x where the code is above 0, 0 where it is 0. */
BODY_INLINE __m512i where_above_zero(__m512i code, __m512i x)
{
    return _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(code, code), x);
}

#include "kernels/blocks_lanes.h"

void lst__kernels_fill_avx512(lst__kernels *k)
{
    const lst__kernels narrower = *k;
    k->name = "avx512";
    fill_all(k);
    /* One look-up of 16 lanes takes longer than two of 8: 1.19 ns a value against 0.78, decoded 0.60 against 0.37
     * (Sapphire Rapids, gcc 12). */
    k->f32_to_dynamic = narrower.f32_to_dynamic;
    k->dynamic_to_f32 = narrower.dynamic_to_f32;
    fill_blocks_lanes(k);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int no_avx512_on_this_target;
#endif
