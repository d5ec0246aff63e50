/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <math.h>

uint64_t lst__random_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t n)
{
    /* The high word of a 128-bit product: a bias of at most n / 2^64. */
    return (uint64_t)(((unsigned __int128)lst__random_u64(seed, stream, counter) * n) >> 64);
}

double lst__random_unit(uint64_t seed, uint64_t stream, uint64_t counter)
{
    return (double)(lst__random_u64(seed, stream, counter) >> 11) * 0x1p-53;
}

double lst__random_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
    /* 1 - u lies in (0, 1], so that the logarithm is finite. */
    double radius = sqrt(-2.0 * log(1.0 - lst__random_unit(seed, stream, 2 * counter)));
    return radius * cos(2.0 * 3.14159265358979323846 * lst__random_unit(seed, stream, 2 * counter + 1));
}
