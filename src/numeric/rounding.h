/* SPDX-License-Identifier: MIT
 *
 * The random bits of stochastic rounding: a hash of (seed, step, tensor, slot, index), so that they are the same for
 * any thread count and instruction set and after a resume, and nothing is stored.
 *
 * Two levels. The words that are the same for a whole tensor are mixed in 64 bits into a key (slow, once per tile), and
 * the key with the number of a group of 32 elements into 64 bits more (SplitMix64's finalizer, once per group). The 32
 * draws of a group come from those in arithmetic of 16 bits, the width that vectors have most lanes of: a start that is
 * uniform plus the lane, an odd random multiplier, a shift, another multiplier, a last random word. docs/numerics.md
 * has the tests it passes.
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
    uint64_t bits;
} lst__rounding_key;

/* The key for elements [index_high * 2^32, (index_high + 1) * 2^32). */
static inline lst__rounding_key lst__rounding_key_of(lst__rounding r, uint32_t index_high)
{
    uint64_t h = lst__random_u64(r.seed, r.step, r.tensor);
    return (lst__rounding_key){lst__random_mix(h ^ ((uint64_t)r.slot << 32 | index_high))};
}

#define LST__DRAW_GROUP 32

/* The four random words of a group, 16 bits each. */
static inline uint64_t lst__rounding_group(lst__rounding_key key, uint32_t index)
{
    return lst__random_mix(key.bits + (uint64_t)(index / LST__DRAW_GROUP) * 0x9e3779b97f4a7c15u);
}

/* Uniform for each lane, and pairs of lanes are independent as far as 2^21 draws in 4,096 cells can tell (a shift of 5
 * or 6 passes, 7 to 9 do not; nor do lane steps with equal low bits). */
#define LST__DRAW_LANE_STEP 0x9e37u
#define LST__DRAW_SHIFT 5

static inline uint16_t lst__rounding_lane(uint64_t group, uint16_t lane)
{
    uint16_t x = (uint16_t)(group + lane * LST__DRAW_LANE_STEP);
    x = (uint16_t)((uint32_t)x * (uint16_t)(group >> 16 | 1u));
    x = (uint16_t)(x ^ x >> LST__DRAW_SHIFT);
    x = (uint16_t)((uint32_t)x * (uint16_t)(group >> 32 | 1u));
    return (uint16_t)(x ^ group >> 48);
}

/* 16 uniform bits for the element with this index (its low 32 bits). */
static inline uint32_t lst__rounding_draw(lst__rounding_key key, uint32_t index)
{
    return lst__rounding_lane(lst__rounding_group(key, index), (uint16_t)(index % LST__DRAW_GROUP));
}

/* The same for the group of 32 elements from `first` on, a multiple of 32. */
static inline void lst__rounding_draw_group(lst__rounding_key key, uint32_t first, uint32_t out[LST__DRAW_GROUP])
{
    const uint64_t group = lst__rounding_group(key, first);
    uint16_t draw[LST__DRAW_GROUP];
    for (uint16_t j = 0; j < LST__DRAW_GROUP; j++)
        draw[j] = lst__rounding_lane(group, j);
    for (uint32_t j = 0; j < LST__DRAW_GROUP; j++)
        out[j] = draw[j];
}

#endif
