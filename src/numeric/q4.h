/* SPDX-License-Identifier: MIT
 *
 * q4: 4-bit floats under a shared exponent, as q8 (numeric/q8.h) with 16 values to a base byte and fewer steps.
 *
 *     unsigned    codes 10..15 fine: 3 binades of 2 steps    1..9 coarse: 9 binades of 1 step    0 is zero
 *     signed      sign, 4..7 fine:   2 binades of 2 steps    1..3 coarse: 3 binades of 1 step    0 is zero
 *
 * Rounding is stochastic. Below the smallest level an unsigned number that is not zero becomes the smallest level; a
 * signed number goes to zero or to the smallest level with its share of it, so that it too keeps its expected value.
 */
#ifndef LST_NUMERIC_Q4_H
#define LST_NUMERIC_Q4_H

#include <stdint.h>

#include "numeric/bits.h"

#define LST__Q4_GROUP 16

#define LST__Q4_FIRST_FINE(is_signed) ((is_signed) ? 4u : 10u) /* code; also its exponent above the base */
#define LST__Q4_SPAN(is_signed) ((is_signed) ? 5u : 12u)       /* the largest exponent above the base */

static inline uint32_t lst__q4_magnitude(float x)
{
    return lst__bits_of_f32(x) & 0x7fffffffu;
}

/* A magnitude's bits rounded to 1 mantissa bit with a 16-bit draw; infinity becomes the largest level, a NaN a NaN. */
static inline uint32_t lst__q4_fine(uint32_t magnitude, uint32_t draw)
{
    uint32_t rounded = (magnitude + (draw << 6)) & 0xffc00000u;
    uint32_t kept = rounded > 0x7f400000u ? 0x7f400000u : rounded;
    return (int32_t)magnitude > 0x7f800000 ? 0x7fc00000u : kept; /* signed compares are one instruction everywhere */
}

static inline uint32_t lst__q4_base(uint32_t most_fine, int is_signed)
{
    uint32_t exponent = most_fine >> 23, span = LST__Q4_SPAN(is_signed);
    return exponent > span ? exponent - span : 0;
}

/* The 4-bit code of x. `fine` is what lst__q4_fine gave for it with the same draw. */
static inline uint32_t lst__q4_encode(float x, uint32_t fine, uint32_t draw, uint32_t base, int is_signed)
{
    uint32_t magnitude = lst__q4_magnitude(x), first = LST__Q4_FIRST_FINE(is_signed);
    int32_t threshold = (int32_t)((base + first) << 23), smallest = (int32_t)((base + 1) << 23);
    uint32_t fine_code = (fine >> 22) - (base + first) * 2 + first;
    int32_t above = (int32_t)((magnitude + (draw << 7)) >> 23) - (int32_t)base;
    int32_t coarse_code;
    if (is_signed) {
        /* In units of the smallest level, times 65,536: both factors are powers of two, so the products are exact. */
        uint32_t below = (int32_t)magnitude < smallest ? magnitude : 0;
        float share = lst__f32_of_bits(below) * lst__f32_of_bits((254u - (base + 1)) << 23) * 65536.0f;
        int32_t up = ((int32_t)share + (int32_t)draw) >> 16;
        coarse_code = (int32_t)magnitude < smallest ? up : above;
    } else {
        int32_t least = (int32_t)magnitude > 0;
        coarse_code = above > least ? above : least;
    }
    uint32_t code = (int32_t)magnitude >= threshold ? fine_code : (uint32_t)coarse_code;
    return code | (is_signed ? (lst__bits_of_f32(x) >> 28) & 8u : 0);
}

static inline float lst__q4_decode(uint32_t stored, uint32_t base, int is_signed)
{
    uint32_t code = is_signed ? stored & 7u : stored;
    uint32_t first = LST__Q4_FIRST_FINE(is_signed);
    uint32_t coarse = (base + code) << 23;
    uint32_t fine = ((base + first) << 23) + ((code - first) << 22);
    uint32_t bits = (int32_t)code >= (int32_t)first ? fine : coarse;
    uint32_t sign = is_signed ? (stored & 8u) << 28 : 0;
    return lst__f32_of_bits((code == 0 ? 0 : bits) | sign);
}

#endif
