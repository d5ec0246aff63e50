/* SPDX-License-Identifier: MIT
 *
 * Numbers that break kernels: every class of float32, edges of every format, in an order that mixes them.
 */
#ifndef TESTS_KERNELS_HOSTILE_H
#define TESTS_KERNELS_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

/* Bits of the i-th hostile float32 of a stream. */
static inline uint32_t hostile_bits(uint64_t stream, size_t i)
{
    static const uint32_t edges[] = {
        0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x00007fff, 0x00008000, 0x00008001,
        0x00018000,                                                                         /* tiny */
        0x3f800000, 0x3f808000, 0x3f807fff, 0x3f808001, 0x3f818000, 0x3fffffff, 0x3f7fffff, /* ties */
        0x33000000, 0x33000001, 0x32ffffff, 0x33800000, 0x387fe000, 0x387fefff, 0x387ff000,
        0x38800000, /* f16 subnormal */
        0x477fe000, 0x477fefff, 0x477ff000, 0x47800000, 0x7f7f0000, 0x7f7f7fff, 0x7f7f8000,
        0x7f7fffff,                                                             /* large */
        0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x7fff8000, /* not finite */
    };
    uint64_t r = lst__random_u64(20, stream, i);
    uint32_t sign = (uint32_t)(r >> 63) << 31;
    if ((r & 3u) == 0)
        return sign | edges[(r >> 8) % (sizeof edges / sizeof *edges)];
    if ((r & 3u) == 1) /* of everyday size */
        return sign | 0x3c000000u | ((uint32_t)(r >> 8) & 0x03ffffffu);
    return (uint32_t)(r >> 8); /* any */
}

#endif
