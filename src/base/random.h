/* SPDX-License-Identifier: MIT
 *
 * Counter-based random numbers: a value is a hash of (seed, stream, counter), so any thread can draw any of them,
 * a resumed run draws the same, and nothing is stored.
 */
#ifndef LST_BASE_RANDOM_H
#define LST_BASE_RANDOM_H

#include <stdint.h>

/* 64 well-mixed bits (SplitMix64's finalizer over the three words). */
static inline uint64_t lst__random_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t lst__random_u64(uint64_t seed, uint64_t stream, uint64_t counter)
{
    return lst__random_mix(lst__random_mix(lst__random_mix(seed) ^ stream) ^ counter);
}

/* Uniform in [0, n) for n > 0, without modulo bias worth speaking of (n far below 2^64). */
uint64_t lst__random_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t n);
/* Uniform in [0, 1), 53 bits. */
double lst__random_unit(uint64_t seed, uint64_t stream, uint64_t counter);
/* Standard normal (Box-Muller on two draws). */
double lst__random_normal(uint64_t seed, uint64_t stream, uint64_t counter);

#endif
