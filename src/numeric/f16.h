/* SPDX-License-Identifier: MIT
 *
 * f16: IEEE binary16 (1 sign, 5 exponent, 10 mantissa bits): 6.1e-5 to 65,504, subnormals down to 6.0e-8.
 * Written with selects rather than branches, so that loops over it vectorise where the CPU has no conversion of its
 * own.
 */
#ifndef LST_NUMERIC_F16_H
#define LST_NUMERIC_F16_H

#include <stdint.h>

#include "numeric/bits.h"

static inline float lst__f16_to_f32(uint16_t h)
{
    uint32_t magnitude = h & 0x7fffu;
    uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
    uint32_t subnormal = lst__bits_of_f32((float)(int32_t)magnitude * 0x1p-24f); /* exact, and normal as a float32 */
    uint32_t special = 0x7f800000u | (magnitude << 13) | (magnitude > 0x7c00u ? 0x400000u : 0u);
    uint32_t finite = magnitude < 0x400u ? subnormal : normal;
    uint32_t bits = magnitude >= 0x7c00u ? special : finite;
    return lst__f32_of_bits(bits | (uint32_t)(h & 0x8000u) << 16);
}

/* Round to nearest, ties to even; subnormals kept; 65,520 and above to infinity; a NaN stays a NaN, made quiet. */
static inline uint16_t lst__f16_from_f32(float x)
{
    uint32_t bits = lst__bits_of_f32(x);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13) - ((127u - 15u) << 10);
    /* Below 2^-14 a step is 2^-24, which is one unit of 0.5f: adding it rounds, and leaves the count in the low
     * bits. */
    uint32_t small = magnitude < 0x38800000u ? magnitude : 0u;
    uint32_t subnormal = lst__bits_of_f32(lst__f32_of_bits(small) + 0.5f) - 0x3f000000u;
    uint32_t special = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : 0x7c00u;
    uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    uint32_t half = magnitude >= 0x477ff000u ? special : finite;
    return (uint16_t)(half | ((bits >> 16) & 0x8000u));
}

#endif
