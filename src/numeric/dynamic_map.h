/* SPDX-License-Identifier: MIT
 *
 * bitsandbytes' dynamic map: 256 levels for numbers of magnitude at most 1, from a closed form. Each decade [10^(i-7),
 * 10^(i-6)], i = 0..6, is cut in N equal bins whose centres are the levels; N = 2^i for the signed map (with the
 * negatives of the levels), 2^(i+1) for the unsigned one; then 0 and 1 are added. There is no -1: a block whose largest
 * magnitude is negative loses 0.7 % on that value. bitsandbytes' own tables differ by at most 2 units in the last
 * place.
 *
 * The nearest level is found exactly with two table look-ups. A magnitude's upper 16 bits (exponent and 7 bits of
 * mantissa) choose a bin so narrow that at most one midpoint lies in it; the bin's table entry is the nearest level at
 * its lower edge, and one comparison with the next midpoint decides. A value halfway between two levels goes to the
 * smaller magnitude.
 */
#ifndef LST_NUMERIC_DYNAMIC_MAP_H
#define LST_NUMERIC_DYNAMIC_MAP_H

#include <stdint.h>

#include "numeric/bits.h"

#define LST__DYNAMIC_FIRST_BIN 13312u /* upper 16 bits of 2^-23, below every midpoint */
#define LST__DYNAMIC_LAST_BIN 16256u  /* of 1.0 */

typedef struct lst__dynamic_map {
    float level[256]; /* ascending, by code */
    /* Levels of one sign counted from zero: nearest one at each bin's lower edge, and the largest float32 that does not
     * exceed the midpoint to the next (bits of it; all ones beyond the last). */
    int32_t start[LST__DYNAMIC_LAST_BIN - LST__DYNAMIC_FIRST_BIN + 1];
    uint32_t middle[256];
    int32_t zero_code;     /* 127 signed, 0 unsigned */
    int32_t last_negative; /* the most steps below zero: 127 signed, 0 unsigned */
} lst__dynamic_map;

/* Made at the first call; any thread. */
const lst__dynamic_map *lst__dynamic_map_get(int is_signed);

/* The code of a normalised value (a NaN gets the last code). */
static inline uint8_t lst__dynamic_encode(const lst__dynamic_map *map, float x)
{
    uint32_t bits = lst__bits_of_f32(x), magnitude = bits & 0x7fffffffu;
    uint32_t bin = magnitude >> 16;
    bin = bin < LST__DYNAMIC_FIRST_BIN ? LST__DYNAMIC_FIRST_BIN : bin;
    bin = bin > LST__DYNAMIC_LAST_BIN ? LST__DYNAMIC_LAST_BIN : bin;
    int32_t steps = map->start[bin - LST__DYNAMIC_FIRST_BIN];
    steps += magnitude > map->middle[steps];
    int32_t down = steps > map->last_negative ? map->last_negative : steps;
    return (uint8_t)(map->zero_code + (bits >> 31 ? -down : steps));
}

#endif
