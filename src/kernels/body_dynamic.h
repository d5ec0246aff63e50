/* SPDX-License-Identifier: MIT
 *
 * One block of the dynamic map: see body.h for what a body may do.
 */
#ifndef LST_KERNELS_BODY_DYNAMIC_H
#define LST_KERNELS_BODY_DYNAMIC_H

#include "kernels/kernels.h"

/* x / absmax by a division: with a multiplication by 1 / absmax, blocks whose absmax is subnormal would get wrong
 * codes. */
static void f32_to_dynamic(const float *restrict in, uint8_t *restrict codes, size_t n, float absmax,
                           const lst__dynamic_map *restrict map)
{
    const float divisor = absmax == 0.0f ? 1.0f : absmax;
    for (size_t i = 0; i < n; i++)
        codes[i] = lst__dynamic_encode(map, in[i] / divisor);
}

static void dynamic_to_f32(const uint8_t *restrict codes, float *restrict out, size_t n, float absmax,
                           const lst__dynamic_map *restrict map)
{
    for (size_t i = 0; i < n; i++)
        out[i] = map->level[codes[i]] * absmax;
}

static void fill_dynamic(lst__kernels *k)
{
    k->f32_to_dynamic = f32_to_dynamic;
    k->dynamic_to_f32 = dynamic_to_f32;
}

#endif
