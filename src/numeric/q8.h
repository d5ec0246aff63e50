/* SPDX-License-Identifier: MIT
 *
 * q8: 8-bit floats under a shared exponent. 32 values share one byte, `base`; a code is a small float in two gears:
 * the binades next to the group's largest value are fine (16 steps each), those below coarse (4 steps each).
 *
 *     unsigned (second moments)   codes 128..255 fine: 8 binades    codes 1..127 coarse: 32 binades    0 is zero
 *     signed (first moments)      sign, 64..127 fine:  4 binades    1..63 coarse:        16 binades    0 is zero
 *
 * A binade of float32 is linear in the bits, so all of it is integer arithmetic on them: no search, no division, no
 * root. With E the biased exponent of the group's largest value, base = E - 39 (unsigned) or E - 19 (signed), at least
 * 0.
 *
 * Rounding is stochastic, so that the expected value of a moving average follows the average exactly however small
 * its steps are: it cannot freeze. Below the smallest level (2^-39 and 2^-19 of the largest value) an unsigned number
 * that is not zero becomes the smallest level and never zero (a second moment too large slows a weight down; one of
 * zero would let it jump; below 2^-133, 9.2e-41, alone it is zero or 2^-133 with its share), and a signed number
 * becomes zero. An exact zero stays zero. Coding what was decoded changes nothing. docs/numerics.md has the error by
 * decade and the simulations.
 */
#ifndef LST_NUMERIC_Q8_H
#define LST_NUMERIC_Q8_H

#include <stdint.h>

#include "numeric/bits.h"

#define LST__Q8_GROUP 32

#define LST__Q8_COARSE(is_signed) ((is_signed) ? 16u : 32u) /* binades */
#define LST__Q8_FINE(is_signed) ((is_signed) ? 4u : 8u)
#define LST__Q8_HALF(is_signed) ((is_signed) ? 64u : 128u) /* the first fine code */

static inline uint32_t lst__q8_magnitude(float x)
{
    return lst__bits_of_f32(x) & 0x7fffffffu;
}

/* The upper 16 bits of a magnitude, the rest rounded into them with a 16-bit draw. All further work is on 16 bits.
 * Infinity becomes the largest level, a NaN a NaN. */
static inline uint32_t lst__q8_short(uint32_t magnitude, uint32_t draw)
{
    uint32_t rounded = (magnitude + draw) >> 16;
    uint32_t kept = rounded > 0x7f78u ? 0x7f78u : rounded;
    return (int32_t)magnitude > 0x7f800000 ? 0x7ff8u : kept; /* signed compares are one instruction everywhere */
}

/* The lowest bits of the draw round once more, to 4 mantissa bits (fine) or 2 (coarse). Two roundings that are right
 * on average, onto grids one inside the other, are one that is. They would have to be independent; they share bits, and
 * for 2^-11 of the draws the low ones matter to both: an error of at most 2^-18 of the number. The largest fine number
 * of a group says what its base is. */
static inline uint32_t lst__q8_fine(uint32_t kept, uint32_t draw)
{
    return (kept + ((draw & 31u) >> 2)) >> 3;
}

static inline uint32_t lst__q8_base(uint32_t most_fine, int is_signed)
{
    uint32_t exponent = most_fine >> 4, span = LST__Q8_COARSE(is_signed) + LST__Q8_FINE(is_signed) - 1;
    return exponent > span ? exponent - span : 0;
}

/* The code of a short magnitude; `fine` is what lst__q8_fine gave for it with the same draw. Above the first fine level
 * the fine code is the larger one, below it the coarse: a fine step is a part of a coarse one and rounds up no earlier.
 */
static inline uint32_t lst__q8_encode(uint32_t kept, uint32_t fine, uint32_t draw, uint32_t base, int is_signed)
{
    int32_t first_fine = (int32_t)(base + LST__Q8_COARSE(is_signed)) << 4;
    int32_t fine_code = (int32_t)fine - first_fine + (int32_t)LST__Q8_HALF(is_signed);
    int32_t steps = (int32_t)((kept + (draw & 31u)) >> 5) - (int32_t)(base << 2);
    int32_t least = is_signed ? 0 : kept > 0;
    int32_t coarse_code = steps > least ? steps : least;
    return (uint32_t)(fine_code > coarse_code ? fine_code : coarse_code);
}

static inline float lst__q8_decode(uint32_t stored, uint32_t base, int is_signed)
{
    uint32_t code = is_signed ? stored & 0x7fu : stored;
    uint32_t coarse = (base << 23) + (code << 21);
    uint32_t fine = ((base + LST__Q8_COARSE(is_signed) - LST__Q8_FINE(is_signed)) << 23) + (code << 19);
    uint32_t bits = (int32_t)code >= (int32_t)LST__Q8_HALF(is_signed) ? fine : coarse;
    uint32_t sign = is_signed ? (stored & 0x80u) << 24 : 0;
    return lst__f32_of_bits((code == 0 ? 0 : bits) | sign);
}

#endif
