/* SPDX-License-Identifier: MIT
 *
 * split24: a weight in 24 bits, kept as a bf16 that the model computes with (hi) and a signed byte (lo).
 *
 * The float32 is first rounded to 15 mantissa bits (its low 8 bits dropped), then split exactly, as split32 is:
 * bits = hi * 65536 + lo * 256. The rounding is stochastic, so that updates too small for 24 bits still arrive in
 * expectation; it errs by less than one unit of the 24-bit number, 2^-15 of the weight at most. A finite number never
 * becomes infinite, nor shows as infinity in hi: from 0x7f7f7f00 (3.396e38) on it stays there. A NaN is made quiet and
 * keeps lo = 0. A bf16 number is kept as it is, with lo = 0.
 */
#ifndef LST_NUMERIC_SPLIT24_H
#define LST_NUMERIC_SPLIT24_H

#include <stdint.h>

#include "numeric/bits.h"

typedef struct lst__split24 {
    uint16_t hi;
    uint8_t lo;
} lst__split24;

/* With a 16-bit draw, of which the upper 8 bits are used. */
static inline lst__split24 lst__split24_from_f32(float x, uint32_t draw)
{
    uint32_t bits = lst__bits_of_f32(x), sign = bits & 0x80000000u, magnitude = bits & 0x7fffffffu;
    uint32_t rounded = (magnitude + (draw >> 8)) & 0xffffff00u;
    uint32_t finite = rounded > 0x7f7f7f00u ? 0x7f7f7f00u : rounded;
    uint32_t special = magnitude > 0x7f800000u ? (magnitude | 0x400000u) & 0xffff0000u : 0x7f800000u;
    uint32_t kept = (magnitude >= 0x7f800000u ? special : finite) | sign;
    return (lst__split24){.hi = (uint16_t)((kept + 0x8000u) >> 16), .lo = (uint8_t)(kept >> 8)};
}

static inline float lst__split24_join(uint16_t hi, uint8_t lo)
{
    uint32_t borrow = (uint32_t)(lo >> 7) << 16; /* lo < 0 as a signed number */
    return lst__f32_of_bits(((uint32_t)hi << 16) - borrow + ((uint32_t)lo << 8));
}

#endif
