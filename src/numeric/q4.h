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
    return magnitude > 0x7f800000u ? 0x7fc00000u : kept;
}

static inline uint32_t lst__q4_base(uint32_t most_fine, int is_signed)
{
    uint32_t exponent = most_fine >> 23, span = LST__Q4_SPAN(is_signed);
    return exponent > span ? exponent - span : 0;
}

/* The 4-bit code of x with the draw that gave the group's base. */
static inline uint32_t lst__q4_encode(float x, uint32_t draw, uint32_t base, int is_signed)
{
    uint32_t magnitude = lst__q4_magnitude(x);
    uint32_t threshold = (base + LST__Q4_FIRST_FINE(is_signed)) << 23;
    uint32_t fine = LST__Q4_FIRST_FINE(is_signed) + ((lst__q4_fine(magnitude, draw) - threshold) >> 22);
    uint32_t rounded = (magnitude + (draw << 7)) >> 23;
    uint32_t coarse = rounded > base ? rounded - base : 0;
    uint32_t smallest = (base + 1) << 23;
    if (is_signed) {
        /* In units of the smallest level, times 65,536: a power of two away, so the product is exact. */
        uint32_t below = magnitude < smallest ? magnitude : 0;
        float share = lst__f32_of_bits(below) * lst__f32_of_bits((254u - (base + 1)) << 23) * 65536.0f;
        uint32_t up = ((uint32_t)(int32_t)share + draw) >> 16;
        coarse = magnitude < smallest ? up : coarse;
    } else {
        coarse = coarse == 0 && magnitude != 0 ? 1 : coarse;
    }
    uint32_t code = magnitude >= threshold ? fine : coarse;
    return code | (is_signed ? (lst__bits_of_f32(x) >> 28) & 8u : 0);
}

static inline float lst__q4_decode(uint32_t stored, uint32_t base, int is_signed)
{
    uint32_t code = is_signed ? stored & 7u : stored;
    uint32_t first = LST__Q4_FIRST_FINE(is_signed);
    uint32_t coarse = (base + code) << 23;
    uint32_t fine = ((base + first) << 23) + ((code - first) << 22);
    uint32_t bits = code >= first ? fine : coarse;
    uint32_t sign = is_signed ? (stored & 8u) << 28 : 0;
    return lst__f32_of_bits((code == 0 ? 0 : bits) | sign);
}

#endif
