/* SPDX-License-Identifier: MIT
 *
 * split32: a float32 weight kept as a bf16 that the model computes with (hi) and the 16 bits it lacks (lo).
 *
 * lo is the low half of the float32's bits read as a signed number, hi the rest: bits = hi * 65536 + lo. Then hi is the
 * nearest bf16 (exact ties go away from zero, where lst__bf16_from_f32 goes to even), and the pair gives the float32
 * back bit for bit, with integer operations only. From 0x7f7f8000 on (within half a bf16 unit of the largest) hi shows
 * infinity while the pair is still exact. A NaN is made quiet first and keeps lo = 0, so that both the half and the
 * pair are NaN.
 */
#ifndef LST_NUMERIC_SPLIT32_H
#define LST_NUMERIC_SPLIT32_H

#include <stdint.h>

#include "numeric/bits.h"

typedef struct lst__split32 {
    uint16_t hi, lo;
} lst__split32;

static inline lst__split32 lst__split32_from_f32(float x)
{
    uint32_t bits = lst__bits_of_f32(x);
    uint32_t quiet = (bits | 0x400000u) & 0xffff0000u;
    bits = (bits & 0x7fffffffu) > 0x7f800000u ? quiet : bits;
    return (lst__split32){.hi = (uint16_t)((bits + 0x8000u) >> 16), .lo = (uint16_t)(bits & 0xffffu)};
}

static inline float lst__split32_join(uint16_t hi, uint16_t lo)
{
    uint32_t borrow = (uint32_t)(lo >> 15) << 16; /* lo < 0 as a signed number */
    return lst__f32_of_bits(((uint32_t)hi << 16) - borrow + lo);
}

#endif
