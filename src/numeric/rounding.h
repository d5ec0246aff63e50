/* SPDX-License-Identifier: MIT
 *
 * The random bits of stochastic rounding: a hash of (seed, step, tensor, slot, index), so that they are the same for
 * any thread count and instruction set and after a resume, and nothing is stored.
 *
 * Two levels. The words that are the same for a whole tensor are mixed in 64 bits into a key (slow, once per tile). Two
 * elements then share a 32-bit hash of a counter under that key, 16 bits each: a step of 2^32/phi (an addition in a
 * loop over consecutive counters), then two multiply and xor-shift rounds with the multipliers of Wellons' "lowbias32",
 * found by search for low avalanche bias. The second key word goes in between the rounds, so that two keys do not
 * merely shift the same sequence. Without the first step, counters 2^k apart fail a chi-square test of pairs by up to
 * 120 standard deviations. docs/numerics.md has the tests it passes.
 */
#ifndef LST_NUMERIC_ROUNDING_H
#define LST_NUMERIC_ROUNDING_H

#include <stdint.h>

#include "base/random.h"

/* What the bits are for. */
typedef struct lst__rounding {
    uint64_t seed;
    uint64_t step;   /* counts calls of lst_optim_begin */
    uint64_t tensor; /* index of the parameter */
    uint32_t slot;   /* which of its arrays: weights, first moment, ... must not share their bits */
} lst__rounding;

typedef struct lst__rounding_key {
    uint32_t a, b;
} lst__rounding_key;

/* The key for elements [index_high * 2^32, (index_high + 1) * 2^32). */
static inline lst__rounding_key lst__rounding_key_of(lst__rounding r, uint32_t index_high)
{
    uint64_t h = lst__random_u64(r.seed, r.step, r.tensor);
    h = lst__random_mix(h ^ ((uint64_t)r.slot << 32 | index_high));
    return (lst__rounding_key){.a = (uint32_t)h, .b = (uint32_t)(h >> 32)};
}

/* 32 uniform bits for one counter. */
static inline uint32_t lst__rounding_hash(lst__rounding_key key, uint32_t counter)
{
    uint32_t x = counter * 0x9e3779b9u + key.a;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x += key.b;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

/* Elements in groups of this many share hashes in pairs 16 apart, so that vectors of up to 16 lanes split them in
 * place. */
#define LST__DRAW_GROUP 32

/* 16 uniform bits for the element with this index (its low 32 bits). */
static inline uint32_t lst__rounding_draw(lst__rounding_key key, uint32_t index)
{
    uint32_t hash = lst__rounding_hash(key, index / 32 * 16 + index % 16);
    return index & 16u ? hash >> 16 : hash & 0xffffu;
}

/* The same for the group of 32 elements from `first` on, a multiple of 32. */
static inline void lst__rounding_draw_group(lst__rounding_key key, uint32_t first, uint32_t out[LST__DRAW_GROUP])
{
    for (uint32_t j = 0; j < LST__DRAW_GROUP / 2; j++) {
        uint32_t hash = lst__rounding_hash(key, first / 2 + j);
        out[j] = hash & 0xffffu;
        out[j + 16] = hash >> 16;
    }
}

#endif
