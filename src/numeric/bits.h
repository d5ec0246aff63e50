/* SPDX-License-Identifier: MIT */
#ifndef LST_NUMERIC_BITS_H
#define LST_NUMERIC_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t lst__bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float lst__f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
