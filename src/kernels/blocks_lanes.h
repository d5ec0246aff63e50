/* SPDX-License-Identifier: MIT
 *
 * q8 and split24 in vector words, included once for 256 bits (isa_avx2.c) and once for 512 (isa_avx512.c), after
 * body.h: what an 8-bit step spends most of its time in. The names of the two sets differ by a prefix, which the
 * including file sets: WORD(op) is _mm256_op or _mm512_op, BITS(op) an operation on whole vectors, vec the type.
 *
 * Whole groups of 32 are done here, in the meaning of numeric/q8.h and split24.h; what is left over goes to the plain
 * body. A group's draws and codes fill PER_GROUP vectors of 16-bit lanes, its floats twice as many. Two vectors of
 * floats are narrowed by a pack within 128-bit parts, so 16-bit lanes lie in the order that the pack makes; the
 * file's own pack_codes, pack_signed, widen_codes and in_order go between it and the order in memory.
 */
#if defined(LST__VECTOR_BYTES) /* set by the files that name the target: alone this header is empty */
#include <immintrin.h>

#include "kernels/body_blocks.h"

#define PER_GROUP (64 / LST__VECTOR_BYTES)

BODY_INLINE vec all32(uint32_t x)
{
    return WORD(set1_epi32)((int)x);
}

BODY_INLINE vec all16(uint32_t x)
{
    return WORD(set1_epi16)((short)x);
}

BODY_INLINE vec load_vec(const void *from)
{
    return BITS(loadu)((const vec *)from);
}

BODY_INLINE void store_vec(void *to, vec x)
{
    BITS(storeu)((vec *)to, x);
}

/* lst__rounding_draw_group, in the pack's order. */
BODY_INLINE void draw_lanes(lst__rounding_key key, uint32_t first, vec draw[PER_GROUP])
{
    const uint64_t group = lst__rounding_group(key, first);
    const vec start = all16((uint32_t)group), by = all16((uint32_t)(group >> 16) | 1u),
              then_by = all16((uint32_t)(group >> 32) | 1u), last = all16((uint32_t)(group >> 48));
    for (int i = 0; i < PER_GROUP; i++) {
        vec x = WORD(add_epi16)(start, load_vec(lane_steps + i * LST__VECTOR_BYTES / 2));
        x = WORD(mullo_epi16)(x, by);
        x = BITS(xor)(x, WORD(srli_epi16)(x, LST__DRAW_SHIFT));
        draw[i] = BITS(xor)(WORD(mullo_epi16)(x, then_by), last);
    }
}

BODY_INLINE uint32_t largest_lane16(vec x)
{
    const __m128i most = narrow_max16(x); /* minpos, the one search across lanes, looks for the smallest */
    return 0xffffu ^ (uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(most, _mm_set1_epi16(-1)))) % 0x10000u;
}

/* An infinity, a NaN or a number beyond the largest level needs care that others do not: a group that holds one goes
 * the plain way. */
BODY_INLINE void q8_encode_lanes(const float *in, uint8_t *codes, uint8_t *base, lst__rounding_key key, uint32_t first,
                                 const int is_signed)
{
    const vec zero = BITS(setzero)();
    vec x[2 * PER_GROUP], draw[PER_GROUP], kept[PER_GROUP], fine[PER_GROUP], code[PER_GROUP], low[PER_GROUP];
    draw_lanes(key, first, draw);
    for (int i = 0; i < 2 * PER_GROUP; i++)
        x[i] = load_vec(in + i * LST__VECTOR_BYTES / 4);
    for (int i = 0; i < PER_GROUP; i++) {
        const vec a = BITS(and)(x[2 * i], all32(0x7fffffffu)), b = BITS(and)(x[2 * i + 1], all32(0x7fffffffu));
        kept[i] = WORD(packus_epi32)(WORD(srli_epi32)(WORD(add_epi32)(a, WORD(unpacklo_epi16)(draw[i], zero)), 16),
                                     WORD(srli_epi32)(WORD(add_epi32)(b, WORD(unpackhi_epi16)(draw[i], zero)), 16));
        low[i] = BITS(and)(draw[i], all16(31));
        fine[i] = WORD(srli_epi16)(WORD(add_epi16)(kept[i], WORD(srli_epi16)(low[i], 2)), 3);
    }
    const uint32_t most = largest_lane16(PER_GROUP == 1 ? fine[0] : WORD(max_epu16)(fine[0], fine[PER_GROUP - 1]));
    if (most > 0xfeeu) {
        q8_encode_group(in, codes, base, key, first, is_signed);
        return;
    }
    const uint32_t b = lst__q8_base(most, is_signed);
    const vec fine_from = all16(((b + LST__Q8_COARSE(is_signed)) << 4) - LST__Q8_HALF(is_signed));
    const vec coarse_from = all16(b << 2);
    for (int i = 0; i < PER_GROUP; i++) {
        vec steps = WORD(subs_epu16)(WORD(srli_epi16)(WORD(add_epi16)(kept[i], low[i]), 5), coarse_from);
        if (!is_signed)
            steps = WORD(max_epi16)(steps, WORD(min_epu16)(kept[i], all16(1)));
        code[i] = WORD(max_epi16)(steps, WORD(sub_epi16)(fine[i], fine_from));
    }
    _mm256_storeu_si256((__m256i *)codes, is_signed ? pack_signed(code, x) : pack_codes(code));
    *base = (uint8_t)b;
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

static void f32_to_q8_lanes(const float *in, uint8_t *codes, uint8_t *bases, size_t n, lst__rounding_key key,
                            uint32_t first)
{
    q8_encode_groups(in, codes, bases, n, key, first, 1);
}

static void f32_to_q8u_lanes(const float *in, uint8_t *codes, uint8_t *bases, size_t n, lst__rounding_key key,
                             uint32_t first)
{
    q8_encode_groups(in, codes, bases, n, key, first, 0);
}

/* A level has no more than 4 mantissa bits: it is made in 16-bit lanes and widened by zeros from below. Of the fine and
 * the coarse meaning of a code the smaller one holds, on both sides of where they meet. */
BODY_INLINE void q8_decode_groups(const uint8_t *codes, const uint8_t *bases, float *out, size_t n, const int is_signed)
{
    const vec zero = BITS(setzero)();
    size_t i = 0;
    for (; i + LST__Q8_GROUP <= n; i += LST__Q8_GROUP) {
        const uint32_t b = bases[i / LST__Q8_GROUP];
        const vec coarse_from = all16(b << 7);
        const vec fine_from = all16((b + LST__Q8_COARSE(is_signed) - LST__Q8_FINE(is_signed)) << 7);
        vec stored[PER_GROUP];
        widen_codes(codes + i, stored);
        for (int k = 0; k < PER_GROUP; k++) {
            const vec code = is_signed ? BITS(and)(stored[k], all16(0x7f)) : stored[k];
            const vec coarse = WORD(add_epi16)(where_above_zero(code, coarse_from), WORD(slli_epi16)(code, 5));
            const vec fine = WORD(add_epi16)(fine_from, WORD(slli_epi16)(code, 3));
            vec level = WORD(min_epu16)(fine, coarse);
            if (is_signed)
                level = BITS(or)(level, WORD(slli_epi16)(BITS(and)(stored[k], all16(0x80)), 8));
            store_vec(out + i + 2 * k * LST__VECTOR_BYTES / 4, WORD(unpacklo_epi16)(zero, level));
            store_vec(out + i + (2 * k + 1) * LST__VECTOR_BYTES / 4, WORD(unpackhi_epi16)(zero, level));
        }
    }
    if (i < n)
        q8_decode_any(codes + i, bases + i / LST__Q8_GROUP, out + i, n - i, is_signed);
}

static void q8_to_f32_lanes(const uint8_t *codes, const uint8_t *bases, float *out, size_t n)
{
    q8_decode_groups(codes, bases, out, n, 1);
}

static void q8u_to_f32_lanes(const uint8_t *codes, const uint8_t *bases, float *out, size_t n)
{
    q8_decode_groups(codes, bases, out, n, 0);
}

/* ---- Adam on q8 moments ---- */

BODY_INLINE void adam_q8_group(const lst__rule_args *a, const lst__q8_moments *q, size_t i, const size_t n,
                               const int decoupled, const int late)
{
    _Alignas(64) float m[LST__Q8_GROUP], v[LST__Q8_GROUP];
    const lst__rule_args group = {.n = n, .w = a->w + i, .g = a->g + i, .s = {m, v}, .k = a->k};
    const size_t base = i / LST__Q8_GROUP;
    q8_decode_groups(q->m + i, q->m_bases + base, m, n, 1);
    q8_decode_groups(q->v + i, q->v_bases + base, v, n, 0);
    adam_body(&group, decoupled, 0, late);
    q8_encode_groups(m, q->m + i, q->m_bases + base, n, q->m_key, q->first + (uint32_t)i, 1);
    q8_encode_groups(v, q->v + i, q->v_bases + base, n, q->v_key, q->first + (uint32_t)i, 0);
}

BODY_INLINE void adam_q8(const lst__rule_args *a, const lst__q8_moments *q, const int decoupled, const int late)
{
    size_t i = 0;
    for (; i + LST__Q8_GROUP <= a->n; i += LST__Q8_GROUP)
        adam_q8_group(a, q, i, LST__Q8_GROUP, decoupled, late);
    if (i < a->n)
        adam_q8_group(a, q, i, a->n - i, decoupled, late);
}

#define ADAM_Q8(name, decoupled, late)                                                                                 \
    static void name##_q8_lanes(const lst__rule_args *a, const lst__q8_moments *q)                                     \
    {                                                                                                                  \
        adam_q8(a, q, decoupled, late);                                                                                \
    }
ADAM_Q8(adam, 0, 0)
ADAM_Q8(adam_late, 0, 1)
ADAM_Q8(adamw, 1, 0)
ADAM_Q8(adamw_late, 1, 1)
#undef ADAM_Q8

/* ---- split24: the plain way where a rounding could leave the finite numbers ---- */

BODY_INLINE void split24_encode_lanes(const float *in, uint16_t *hi, uint8_t *lo, lst__rounding_key key, uint32_t first)
{
    const vec zero = BITS(setzero)();
    vec draw[PER_GROUP], kept[2 * PER_GROUP], lower[PER_GROUP], most = zero;
    draw_lanes(key, first, draw);
    for (int i = 0; i < 2 * PER_GROUP; i++) {
        const vec x = load_vec(in + i * LST__VECTOR_BYTES / 4), bits = WORD(srli_epi16)(draw[i / 2], 8);
        kept[i] = WORD(add_epi32)(x, i % 2 ? WORD(unpackhi_epi16)(bits, zero) : WORD(unpacklo_epi16)(bits, zero));
        most = WORD(max_epu32)(most, BITS(and)(x, all32(0x7fffffffu)));
    }
    if (largest_lane16(WORD(srli_epi32)(most, 16)) >= 0x7f7fu) {
        f32_to_split24(in, hi, lo, LST__DRAW_GROUP, key, first);
        return;
    }
    for (int i = 0; i < PER_GROUP; i++) {
        const vec a = kept[2 * i], b = kept[2 * i + 1], half = all32(0x8000u), byte = all32(0xff);
        const vec upper = WORD(packus_epi32)(WORD(srli_epi32)(WORD(add_epi32)(a, half), 16),
                                             WORD(srli_epi32)(WORD(add_epi32)(b, half), 16));
        store_vec(hi + i * LST__VECTOR_BYTES / 2, in_order(upper));
        lower[i] = WORD(packus_epi32)(BITS(and)(WORD(srli_epi32)(a, 8), byte), BITS(and)(WORD(srli_epi32)(b, 8), byte));
    }
    _mm256_storeu_si256((__m256i *)lo, pack_codes(lower));
}

static void f32_to_split24_lanes(const float *in, uint16_t *hi, uint8_t *lo, size_t n, lst__rounding_key key,
                                 uint32_t first)
{
    size_t i = 0;
    for (; first % LST__DRAW_GROUP == 0 && i + LST__DRAW_GROUP <= n; i += LST__DRAW_GROUP)
        split24_encode_lanes(in + i, hi + i, lo + i, key, first + (uint32_t)i);
    if (i < n)
        f32_to_split24(in + i, hi + i, lo + i, n - i, key, first + (uint32_t)i);
}

/* The lower byte counts as a signed number: what the rounding of hi borrowed comes back by itself. */
static void split24_to_f32_lanes(const uint16_t *hi, const uint8_t *lo, float *out, size_t n)
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

static void fill_blocks_lanes(lst__kernels *k)
{
    k->f32_to_q8 = f32_to_q8_lanes;
    k->f32_to_q8u = f32_to_q8u_lanes;
    k->q8_to_f32 = q8_to_f32_lanes;
    k->q8u_to_f32 = q8u_to_f32_lanes;
    k->rules_q8[LST__LOOP_adam] = adam_q8_lanes;
    k->rules_q8[LST__LOOP_adam_late] = adam_late_q8_lanes;
    k->rules_q8[LST__LOOP_adamw] = adamw_q8_lanes;
    k->rules_q8[LST__LOOP_adamw_late] = adamw_late_q8_lanes;
    k->f32_to_split24 = f32_to_split24_lanes;
    k->split24_to_f32 = split24_to_f32_lanes;
}
#endif
