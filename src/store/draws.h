/* SPDX-License-Identifier: MIT
 *
 * The random bits of a run, for the kernels: they index elements in 32 bits under a key that holds for 2^32 of them.
 */
#ifndef LST_STORE_DRAWS_H
#define LST_STORE_DRAWS_H

#include <stddef.h>
#include <stdint.h>

#include "numeric/rounding.h"

typedef struct lst__draws {
    lst__rounding_key key;
    uint32_t first; /* low 32 bits of the run's first index */
    size_t n;       /* how many of the run's elements this key serves */
} lst__draws;

/* `rounding` NULL draws as {0} does: for values that are exact in their format, or a caller that has no step. */
static inline lst__draws lst__draws_of(const lst__rounding *rounding, size_t first, size_t n)
{
    static const lst__rounding none = {0};
    const uint64_t index = first, left = ((uint64_t)1 << 32) - (uint32_t)index;
    return (lst__draws){
        .key = lst__rounding_key_of(rounding ? *rounding : none, (uint32_t)(index >> 32)),
        .first = (uint32_t)index,
        .n = n < left ? n : (size_t)left,
    };
}

#endif
