/* SPDX-License-Identifier: MIT
 *
 * Block codecs of small floats (q8, q4) and split24 weights: see body.h for what a body may do. A run starts at a group
 * of its tensor and may end inside one (the tensor's tail), which is coded as if zeros followed.
 */
#ifndef LST_KERNELS_BODY_BLOCKS_H
#define LST_KERNELS_BODY_BLOCKS_H

#include <string.h>

#include "kernels/kernels.h"
#include "numeric/q4.h"
#include "numeric/q8.h"
#include "numeric/split24.h"

#if defined(__GNUC__)
#define BODY_INLINE static inline __attribute__((always_inline))
#else
#define BODY_INLINE static inline
#endif

/* A loop of 16 is otherwise unrolled whole before it can be vectorised. */
#if defined(__GNUC__) && !defined(__clang__)
#define BODY_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define BODY_KEEP_LOOP
#endif

/* ---- q8 ---- */

BODY_INLINE void q8_encode_group(const float *restrict in, uint8_t *restrict codes, uint8_t *restrict base,
                                 lst__rounding_key key, uint32_t first, const int is_signed)
{
    uint32_t draw[LST__Q8_GROUP], kept[LST__Q8_GROUP], fine[LST__Q8_GROUP], code[LST__Q8_GROUP], most = 0;
    lst__rounding_draw_group(key, first, draw);
    for (size_t j = 0; j < LST__Q8_GROUP; j++) {
        kept[j] = lst__q8_short(lst__q8_magnitude(in[j]), draw[j]);
        fine[j] = lst__q8_fine(kept[j], draw[j]);
        most = fine[j] > most ? fine[j] : most;
    }
    const uint32_t b = lst__q8_base(most, is_signed);
    for (size_t j = 0; j < LST__Q8_GROUP; j++) /* in 32-bit lanes first: mixed widths make slow vectors */
        code[j] = lst__q8_encode(kept[j], fine[j], draw[j], b, is_signed);
    for (size_t j = 0; j < LST__Q8_GROUP; j++)
        codes[j] = (uint8_t)(code[j] | (is_signed ? lst__bits_of_f32(in[j]) >> 24 & 0x80u : 0));
    *base = (uint8_t)b;
}

BODY_INLINE void q8_encode_any(const float *restrict in, uint8_t *restrict codes, uint8_t *restrict bases, size_t n,
                               lst__rounding_key key, uint32_t first, const int is_signed)
{
    size_t i = 0;
    for (; i + LST__Q8_GROUP <= n; i += LST__Q8_GROUP)
        q8_encode_group(in + i, codes + i, bases + i / LST__Q8_GROUP, key, first + (uint32_t)i, is_signed);
    if (i < n) {
        float padded[LST__Q8_GROUP] = {0};
        uint8_t coded[LST__Q8_GROUP];
        memcpy(padded, in + i, (n - i) * sizeof *in);
        q8_encode_group(padded, coded, bases + i / LST__Q8_GROUP, key, first + (uint32_t)i, is_signed);
        memcpy(codes + i, coded, n - i);
    }
}

BODY_INLINE void q8_decode_any(const uint8_t *restrict codes, const uint8_t *restrict bases, float *restrict out,
                               size_t n, const int is_signed)
{
    size_t i = 0;
    for (; i + LST__Q8_GROUP <= n; i += LST__Q8_GROUP) {
        const uint32_t b = bases[i / LST__Q8_GROUP];
        uint32_t code[LST__Q8_GROUP];
        for (size_t j = 0; j < LST__Q8_GROUP; j++)
            code[j] = codes[i + j];
        for (size_t j = 0; j < LST__Q8_GROUP; j++)
            out[i + j] = lst__q8_decode(code[j], b, is_signed);
    }
    for (; i < n; i++)
        out[i] = lst__q8_decode(codes[i], bases[i / LST__Q8_GROUP], is_signed);
}

static void f32_to_q8(const float *restrict in, uint8_t *restrict codes, uint8_t *restrict bases, size_t n,
                      lst__rounding_key key, uint32_t first)
{
    q8_encode_any(in, codes, bases, n, key, first, 1);
}

static void f32_to_q8u(const float *restrict in, uint8_t *restrict codes, uint8_t *restrict bases, size_t n,
                       lst__rounding_key key, uint32_t first)
{
    q8_encode_any(in, codes, bases, n, key, first, 0);
}

static void q8_to_f32(const uint8_t *restrict codes, const uint8_t *restrict bases, float *restrict out, size_t n)
{
    q8_decode_any(codes, bases, out, n, 1);
}

static void q8u_to_f32(const uint8_t *restrict codes, const uint8_t *restrict bases, float *restrict out, size_t n)
{
    q8_decode_any(codes, bases, out, n, 0);
}

/* ---- q4: pairs of groups. Codes of the first are the low halves of 16 bytes, those of the second the high ---- */

enum { Q4_PAIR = 2 * LST__Q4_GROUP };

BODY_INLINE void q4_encode_group(const float *restrict in, uint32_t *restrict codes, uint8_t *restrict base,
                                 const uint32_t *restrict draw, const int is_signed)
{
    uint32_t fine[LST__Q4_GROUP], most = 0;
    BODY_KEEP_LOOP
    for (size_t j = 0; j < LST__Q4_GROUP; j++) {
        fine[j] = lst__q4_fine(lst__q4_magnitude(in[j]), draw[j]);
        most = fine[j] > most ? fine[j] : most;
    }
    const uint32_t b = lst__q4_base(most, is_signed);
    BODY_KEEP_LOOP
    for (size_t j = 0; j < LST__Q4_GROUP; j++)
        codes[j] = lst__q4_encode(in[j], fine[j], draw[j], b, is_signed);
    *base = (uint8_t)b;
}

BODY_INLINE void q4_encode_pair(const float *restrict in, uint8_t *restrict bytes, uint8_t *restrict bases,
                                lst__rounding_key key, uint32_t first, const int is_signed)
{
    uint32_t draw[LST__DRAW_GROUP], low[LST__Q4_GROUP], high[LST__Q4_GROUP];
    lst__rounding_draw_group(key, first, draw);
    q4_encode_group(in, low, bases, draw, is_signed);
    q4_encode_group(in + LST__Q4_GROUP, high, bases + 1, draw + LST__Q4_GROUP, is_signed);
    BODY_KEEP_LOOP
    for (size_t j = 0; j < LST__Q4_GROUP; j++)
        bytes[j] = (uint8_t)(low[j] | high[j] << 4);
}

BODY_INLINE void q4_encode_any(const float *restrict in, uint8_t *restrict bytes, uint8_t *restrict bases, size_t n,
                               lst__rounding_key key, uint32_t first, const int is_signed)
{
    size_t i = 0;
    for (; i + Q4_PAIR <= n; i += Q4_PAIR)
        q4_encode_pair(in + i, bytes + i / 2, bases + i / LST__Q4_GROUP, key, first + (uint32_t)i, is_signed);
    if (i < n) {
        float padded[Q4_PAIR] = {0};
        uint8_t coded[LST__Q4_GROUP], two[2];
        const size_t left = n - i;
        memcpy(padded, in + i, left * sizeof *in);
        q4_encode_pair(padded, coded, two, key, first + (uint32_t)i, is_signed);
        memcpy(bytes + i / 2, coded, left < LST__Q4_GROUP ? left : LST__Q4_GROUP);
        memcpy(bases + i / LST__Q4_GROUP, two, left > LST__Q4_GROUP ? 2 : 1);
    }
}

BODY_INLINE void q4_decode_any(const uint8_t *restrict bytes, const uint8_t *restrict bases, float *restrict out,
                               size_t n, const int is_signed)
{
    size_t i = 0;
    for (; i + Q4_PAIR <= n; i += Q4_PAIR) {
        const uint32_t first = bases[i / LST__Q4_GROUP], second = bases[i / LST__Q4_GROUP + 1];
        uint32_t byte[LST__Q4_GROUP];
        BODY_KEEP_LOOP
        for (size_t j = 0; j < LST__Q4_GROUP; j++)
            byte[j] = bytes[i / 2 + j];
        BODY_KEEP_LOOP
        for (size_t j = 0; j < LST__Q4_GROUP; j++)
            out[i + j] = lst__q4_decode(byte[j] & 15u, first, is_signed);
        BODY_KEEP_LOOP
        for (size_t j = 0; j < LST__Q4_GROUP; j++)
            out[i + LST__Q4_GROUP + j] = lst__q4_decode(byte[j] >> 4, second, is_signed);
    }
    for (size_t j = 0; i + j < n; j++) {
        const uint32_t byte = bytes[i / 2 + j % LST__Q4_GROUP];
        out[i + j] =
            lst__q4_decode(j < LST__Q4_GROUP ? byte & 15u : byte >> 4, bases[(i + j) / LST__Q4_GROUP], is_signed);
    }
}

static void f32_to_q4(const float *restrict in, uint8_t *restrict bytes, uint8_t *restrict bases, size_t n,
                      lst__rounding_key key, uint32_t first)
{
    q4_encode_any(in, bytes, bases, n, key, first, 1);
}

static void f32_to_q4u(const float *restrict in, uint8_t *restrict bytes, uint8_t *restrict bases, size_t n,
                       lst__rounding_key key, uint32_t first)
{
    q4_encode_any(in, bytes, bases, n, key, first, 0);
}

static void q4_to_f32(const uint8_t *restrict bytes, const uint8_t *restrict bases, float *restrict out, size_t n)
{
    q4_decode_any(bytes, bases, out, n, 1);
}

static void q4u_to_f32(const uint8_t *restrict bytes, const uint8_t *restrict bases, float *restrict out, size_t n)
{
    q4_decode_any(bytes, bases, out, n, 0);
}

/* ---- split24 ---- */

static void f32_to_split24(const float *restrict in, uint16_t *restrict hi, uint8_t *restrict lo, size_t n,
                           lst__rounding_key key, uint32_t first)
{
    size_t i = 0;
    for (; i < n && (first + (uint32_t)i) % LST__DRAW_GROUP != 0; i++) {
        lst__split24 s = lst__split24_from_f32(in[i], lst__rounding_draw(key, first + (uint32_t)i));
        hi[i] = s.hi;
        lo[i] = s.lo;
    }
    for (; i + LST__DRAW_GROUP <= n; i += LST__DRAW_GROUP) {
        uint32_t draw[LST__DRAW_GROUP];
        lst__rounding_draw_group(key, first + (uint32_t)i, draw);
        for (size_t j = 0; j < LST__DRAW_GROUP; j++) {
            lst__split24 s = lst__split24_from_f32(in[i + j], draw[j]);
            hi[i + j] = s.hi;
            lo[i + j] = s.lo;
        }
    }
    for (; i < n; i++) {
        lst__split24 s = lst__split24_from_f32(in[i], lst__rounding_draw(key, first + (uint32_t)i));
        hi[i] = s.hi;
        lo[i] = s.lo;
    }
}

static void split24_to_f32(const uint16_t *restrict hi, const uint8_t *restrict lo, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = lst__split24_join(hi[i], lo[i]);
}

static void fill_blocks(lst__kernels *k)
{
    k->f32_to_q8 = f32_to_q8;
    k->f32_to_q8u = f32_to_q8u;
    k->q8_to_f32 = q8_to_f32;
    k->q8u_to_f32 = q8u_to_f32;
    k->f32_to_q4 = f32_to_q4;
    k->f32_to_q4u = f32_to_q4u;
    k->q4_to_f32 = q4_to_f32;
    k->q4u_to_f32 = q4u_to_f32;
    k->f32_to_split24 = f32_to_split24;
    k->split24_to_f32 = split24_to_f32;
}

#endif
