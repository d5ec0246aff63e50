/* SPDX-License-Identifier: MIT
 *
 * The 8-bit state and split24 in AVX2's own words, for isa_avx2.c and isa_avx512.c (after body.h): what an 8-bit step
 * spends most of its time in. The compiler's vectors of the same loops take twice as long: it computes each rounding
 * twice, compares without a sign, and leaves the group's maximum to scalar code. Whole groups of 32 are done here, in
 * the meaning of numeric/q8.h and split24.h; what is left over goes to the plain body. Four vectors of eight hold a
 * group: v[i] is elements 8i to 8i+7.
 */
#ifndef LST_KERNELS_BLOCKS_AVX2_H
#define LST_KERNELS_BLOCKS_AVX2_H

#if defined(LST__AVX2_WORDS) /* set by the files that name the target: alone this header is empty */
#include <immintrin.h>

#include "kernels/body_blocks.h"

BODY_INLINE __m256i all(uint32_t x)
{
    return _mm256_set1_epi32((int)x);
}

/* yes where the mask is set, no elsewhere. */
BODY_INLINE __m256i choose(__m256i mask, __m256i yes, __m256i no)
{
    return _mm256_blendv_epi8(no, yes, mask);
}

/* lst__rounding_hash of eight counters: counter * constant + key.a goes on by addition. */
BODY_INLINE __m256i hash_lanes(lst__rounding_key key, uint32_t counter)
{
    const __m256i steps =
        _mm256_setr_epi32(0, (int)0x9e3779b9u, (int)(2 * 0x9e3779b9u), (int)(3 * 0x9e3779b9u), (int)(4 * 0x9e3779b9u),
                          (int)(5 * 0x9e3779b9u), (int)(6 * 0x9e3779b9u), (int)(7 * 0x9e3779b9u));
    __m256i x = _mm256_add_epi32(all(counter * 0x9e3779b9u + key.a), steps);
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
    x = _mm256_mullo_epi32(x, all(0x7feb352du));
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 15));
    x = _mm256_add_epi32(x, all(key.b));
    x = _mm256_mullo_epi32(x, all(0x846ca68bu));
    return _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
}

/* lst__rounding_draw_group. */
BODY_INLINE void draw_lanes(lst__rounding_key key, uint32_t first, __m256i draw[4])
{
    const __m256i a = hash_lanes(key, first / 2), b = hash_lanes(key, first / 2 + 8);
    draw[0] = _mm256_and_si256(a, all(0xffff));
    draw[1] = _mm256_and_si256(b, all(0xffff));
    draw[2] = _mm256_srli_epi32(a, 16);
    draw[3] = _mm256_srli_epi32(b, 16);
}

/* The largest lane, in all lanes. */
BODY_INLINE __m256i max_lanes(__m256i x)
{
    x = _mm256_max_epu32(x, _mm256_permute2x128_si256(x, x, 1));
    x = _mm256_max_epu32(x, _mm256_shuffle_epi32(x, 0x4e));
    return _mm256_max_epu32(x, _mm256_shuffle_epi32(x, 0xb1));
}

/* Four vectors of numbers below 256 to 32 bytes in order. */
BODY_INLINE __m256i pack_lanes(const __m256i v[4])
{
    const __m256i low = _mm256_packus_epi32(v[0], v[1]), high = _mm256_packus_epi32(v[2], v[3]);
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

BODY_INLINE uint32_t first_lane(__m256i x)
{
    return (uint32_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(x));
}

/* The largest numbers, infinities and NaN need care that others do not: a group that holds one goes the plain way. For
 * the rest a rounding is one addition, because what it leaves below the kept bits is shifted out. */
BODY_INLINE void q8_encode_lanes(const float *in, uint8_t *codes, uint8_t *base, lst__rounding_key key, uint32_t first,
                                 const int is_signed)
{
    const uint32_t span = LST__Q8_COARSE(is_signed) + LST__Q8_FINE(is_signed) - 1;
    __m256i x[4], magnitude[4], draw[4], fine[4], code[4];
    draw_lanes(key, first, draw);
    for (int i = 0; i < 4; i++) {
        x[i] = _mm256_loadu_si256((const __m256i *)(in + 8 * i));
        magnitude[i] = _mm256_and_si256(x[i], all(0x7fffffffu));
        fine[i] = _mm256_add_epi32(magnitude[i], _mm256_slli_epi32(draw[i], 3));
    }
    const __m256i most =
        max_lanes(_mm256_max_epu32(_mm256_max_epu32(fine[0], fine[1]), _mm256_max_epu32(fine[2], fine[3])));
    if (first_lane(most) >= 0x7f780000u) {
        q8_encode_group(in, codes, base, key, first, is_signed);
        return;
    }
    const __m256i b =
        _mm256_max_epi32(_mm256_sub_epi32(_mm256_srli_epi32(most, 23), all(span)), _mm256_setzero_si256());
    const __m256i threshold = _mm256_slli_epi32(_mm256_add_epi32(b, all(LST__Q8_COARSE(is_signed))), 23);
    const __m256i fine_from = _mm256_sub_epi32(threshold, all(LST__Q8_HALF(is_signed) << 19));
    const __m256i coarse_from = _mm256_slli_epi32(b, 2);
    for (int i = 0; i < 4; i++) {
        const __m256i upper = _mm256_srli_epi32(_mm256_sub_epi32(fine[i], fine_from), 19);
        const __m256i steps = _mm256_sub_epi32(
            _mm256_srli_epi32(_mm256_add_epi32(magnitude[i], _mm256_slli_epi32(draw[i], 5)), 21), coarse_from);
        const __m256i least = is_signed ? _mm256_setzero_si256() : _mm256_min_epu32(magnitude[i], all(1));
        code[i] = choose(_mm256_cmpgt_epi32(threshold, magnitude[i]), _mm256_max_epi32(steps, least), upper);
        if (is_signed)
            code[i] = _mm256_or_si256(code[i], _mm256_and_si256(_mm256_srli_epi32(x[i], 24), all(0x80)));
    }
    _mm256_storeu_si256((__m256i *)codes, pack_lanes(code));
    *base = (uint8_t)first_lane(b);
}

BODY_INLINE void q8_encode_groups(const float *in, uint8_t *codes, uint8_t *bases, size_t n, lst__rounding_key key,
                                  uint32_t first, const int is_signed)
{
    size_t i = 0;
    for (; i + LST__Q8_GROUP <= n; i += LST__Q8_GROUP)
        q8_encode_lanes(in + i, codes + i, bases + i / LST__Q8_GROUP, key, first + (uint32_t)i, is_signed);
    if (i < n)
        q8_encode_any(in + i, codes + i, bases + i / LST__Q8_GROUP, n - i, key, first + (uint32_t)i, is_signed);
}

static void f32_to_q8_avx2(const float *in, uint8_t *codes, uint8_t *bases, size_t n, lst__rounding_key key,
                           uint32_t first)
{
    q8_encode_groups(in, codes, bases, n, key, first, 1);
}

static void f32_to_q8u_avx2(const float *in, uint8_t *codes, uint8_t *bases, size_t n, lst__rounding_key key,
                            uint32_t first)
{
    q8_encode_groups(in, codes, bases, n, key, first, 0);
}

BODY_INLINE void q8_decode_groups(const uint8_t *codes, const uint8_t *bases, float *out, size_t n, const int is_signed)
{
    size_t i = 0;
    for (; i + LST__Q8_GROUP <= n; i += LST__Q8_GROUP) {
        const uint32_t base = bases[i / LST__Q8_GROUP];
        const __m256i coarse_from = all(base << 23), half = all(LST__Q8_HALF(is_signed) - 1);
        const __m256i fine_from = all((base + LST__Q8_COARSE(is_signed) - LST__Q8_FINE(is_signed)) << 23);
        for (int k = 0; k < 4; k++) {
            const __m256i stored = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(codes + i + 8 * k)));
            const __m256i code = is_signed ? _mm256_and_si256(stored, all(0x7f)) : stored;
            const __m256i coarse = _mm256_add_epi32(coarse_from, _mm256_slli_epi32(code, 21));
            const __m256i fine = _mm256_add_epi32(fine_from, _mm256_slli_epi32(code, 19));
            __m256i bits = choose(_mm256_cmpgt_epi32(code, half), fine, coarse);
            bits = _mm256_andnot_si256(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()), bits);
            if (is_signed)
                bits = _mm256_or_si256(bits, _mm256_slli_epi32(_mm256_srli_epi32(stored, 7), 31));
            _mm256_storeu_si256((__m256i *)(out + i + 8 * k), bits);
        }
    }
    if (i < n)
        q8_decode_any(codes + i, bases + i / LST__Q8_GROUP, out + i, n - i, is_signed);
}

static void q8_to_f32_avx2(const uint8_t *codes, const uint8_t *bases, float *out, size_t n)
{
    q8_decode_groups(codes, bases, out, n, 1);
}

static void q8u_to_f32_avx2(const uint8_t *codes, const uint8_t *bases, float *out, size_t n)
{
    q8_decode_groups(codes, bases, out, n, 0);
}

/* ---- split24 ---- */

/* As above: the plain way where a rounding could leave the finite numbers. */
BODY_INLINE void split24_encode_lanes(const float *in, uint16_t *hi, uint8_t *lo, lst__rounding_key key, uint32_t first)
{
    __m256i draw[4], kept[4], upper[4], lower[4], most = _mm256_setzero_si256();
    draw_lanes(key, first, draw);
    for (int i = 0; i < 4; i++) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(in + 8 * i));
        kept[i] = _mm256_add_epi32(x, _mm256_srli_epi32(draw[i], 8));
        most = _mm256_max_epu32(most, _mm256_and_si256(x, all(0x7fffffffu)));
    }
    if (first_lane(max_lanes(most)) >= 0x7f7f7f00u - 0xff) {
        f32_to_split24(in, hi, lo, LST__DRAW_GROUP, key, first);
        return;
    }
    for (int i = 0; i < 4; i++) {
        upper[i] = _mm256_srli_epi32(_mm256_add_epi32(kept[i], all(0x8000u)), 16);
        lower[i] = _mm256_and_si256(_mm256_srli_epi32(kept[i], 8), all(0xff));
    }
    for (int i = 0; i < 2; i++)
        _mm256_storeu_si256((__m256i *)(hi + 16 * i),
                            _mm256_permute4x64_epi64(_mm256_packus_epi32(upper[2 * i], upper[2 * i + 1]), 0xd8));
    _mm256_storeu_si256((__m256i *)lo, pack_lanes(lower));
}

static void f32_to_split24_avx2(const float *in, uint16_t *hi, uint8_t *lo, size_t n, lst__rounding_key key,
                                uint32_t first)
{
    size_t i = 0;
    for (; first % LST__DRAW_GROUP == 0 && i + LST__DRAW_GROUP <= n; i += LST__DRAW_GROUP)
        split24_encode_lanes(in + i, hi + i, lo + i, key, first + (uint32_t)i);
    if (i < n)
        f32_to_split24(in + i, hi + i, lo + i, n - i, key, first + (uint32_t)i);
}

/* The lower byte counts as a signed number: what the rounding of hi borrowed comes back by itself. */
static void split24_to_f32_avx2(const uint16_t *hi, const uint8_t *lo, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i upper = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(hi + i)));
        const __m256i lower = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(lo + i)));
        _mm256_storeu_si256((__m256i *)(out + i),
                            _mm256_add_epi32(_mm256_slli_epi32(upper, 16), _mm256_slli_epi32(lower, 8)));
    }
    if (i < n)
        split24_to_f32(hi + i, lo + i, out + i, n - i);
}

static void fill_blocks_avx2(lst__kernels *k)
{
    k->f32_to_q8 = f32_to_q8_avx2;
    k->f32_to_q8u = f32_to_q8u_avx2;
    k->q8_to_f32 = q8_to_f32_avx2;
    k->q8u_to_f32 = q8u_to_f32_avx2;
    k->f32_to_split24 = f32_to_split24_avx2;
    k->split24_to_f32 = split24_to_f32_avx2;
}

#endif
#endif
