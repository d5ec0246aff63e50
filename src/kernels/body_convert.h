/* SPDX-License-Identifier: MIT
 *
 * Conversions between float32 and the 16-bit types, and split weights: see body.h for what a body may do.
 */
#ifndef LST_KERNELS_BODY_CONVERT_H
#define LST_KERNELS_BODY_CONVERT_H

#include "kernels/kernels.h"
#include "numeric/bf16.h"
#include "numeric/f16.h"
#include "numeric/split32.h"

static void bf16_to_f32(const uint16_t *restrict in, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = lst__bf16_to_f32(in[i]);
}

static void f32_to_bf16(const float *restrict in, uint16_t *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = lst__bf16_from_f32(in[i]);
}

static void f32_to_bf16_stochastic(const float *restrict in, uint16_t *restrict out, size_t n, lst__rounding_key key,
                                   uint32_t first)
{
    size_t i = 0;
    for (; i < n && (first + (uint32_t)i) % LST__DRAW_GROUP != 0; i++)
        out[i] = lst__bf16_stochastic(in[i], lst__rounding_draw(key, first + (uint32_t)i));
    for (; i + LST__DRAW_GROUP <= n; i += LST__DRAW_GROUP) {
        uint32_t draw[LST__DRAW_GROUP];
        lst__rounding_draw_group(key, first + (uint32_t)i, draw);
        for (size_t j = 0; j < LST__DRAW_GROUP; j++)
            out[i + j] = lst__bf16_stochastic(in[i + j], draw[j]);
    }
    for (; i < n; i++)
        out[i] = lst__bf16_stochastic(in[i], lst__rounding_draw(key, first + (uint32_t)i));
}

static void f16_to_f32(const uint16_t *restrict in, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = lst__f16_to_f32(in[i]);
}

static void f32_to_f16(const float *restrict in, uint16_t *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = lst__f16_from_f32(in[i]);
}

static void split32_to_f32(const uint16_t *restrict hi, const uint16_t *restrict lo, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = lst__split32_join(hi[i], lo[i]);
}

static void f32_to_split32(const float *restrict in, uint16_t *restrict hi, uint16_t *restrict lo, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lst__split32 s = lst__split32_from_f32(in[i]);
        hi[i] = s.hi;
        lo[i] = s.lo;
    }
}

static void fill_convert(lst__kernels *k)
{
    k->bf16_to_f32 = bf16_to_f32;
    k->f32_to_bf16 = f32_to_bf16;
    k->f32_to_bf16_stochastic = f32_to_bf16_stochastic;
    k->f16_to_f32 = f16_to_f32;
    k->f32_to_f16 = f32_to_f16;
    k->split32_to_f32 = split32_to_f32;
    k->f32_to_split32 = f32_to_split32;
}

#endif
