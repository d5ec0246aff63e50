/* SPDX-License-Identifier: MIT
 *
 * bf16: the upper half of a float32 (1 sign, 8 exponent, 7 mantissa bits). Same range as float32, 2 to 3 decimal
 * digits.
 */
#ifndef LST_NUMERIC_BF16_H
#define LST_NUMERIC_BF16_H

#include <stdint.h>

#include "numeric/bits.h"

static inline float lst__bf16_to_f32(uint16_t h)
{
    return lst__f32_of_bits((uint32_t)h << 16);
}

/* Round to nearest, ties to even; subnormals kept; beyond the largest bf16 by half a unit (0x7f7f8000) to infinity. A
 * NaN stays a NaN of the same sign, made quiet: rounding alone would carry a NaN of large payload into the sign or to
 * zero. */
static inline uint16_t lst__bf16_from_f32(float x)
{
    uint32_t bits = lst__bits_of_f32(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/* Stochastic rounding with 16 uniform random bits `draw`: x goes up in magnitude with probability
 * (low 16 bits of x) / 65536, which is its distance to the lower neighbour, so the expected value is x exactly.
 * Infinity and NaN pass. A finite number never becomes infinite: between the largest bf16 and the largest float32 it
 * rounds down. */
static inline uint16_t lst__bf16_stochastic(float x, uint32_t draw)
{
    uint32_t bits = lst__bits_of_f32(x);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t rounded = (magnitude + (draw & 0xffffu)) >> 16;
    uint32_t kept = rounded > 0x7f7fu ? 0x7f7fu : rounded;
    uint32_t special = (magnitude >> 16) | (magnitude > 0x7f800000u ? 0x40u : 0u);
    uint32_t sign = (bits >> 16) & 0x8000u;
    return (uint16_t)(sign | (magnitude >= 0x7f800000u ? special : kept));
}

#endif
