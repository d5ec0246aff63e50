/* SPDX-License-Identifier: MIT
 *
 * Reductions: see body.h for what a body may do. A sum that depends on its order is taken in LANES accumulators
 * (element i goes to lane i mod LANES), then the lanes are folded in halves. 16 double lanes are four AVX2 or two
 * AVX-512 registers: enough to hide an addition's latency, and the same order in every variant.
 */
#ifndef LST_KERNELS_BODY_REDUCE_H
#define LST_KERNELS_BODY_REDUCE_H

#include "kernels/kernels.h"
#include "numeric/bits.h"

#define LANES 16

static double fold_lanes(double *lane)
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

static double sum_squares(const float *x, size_t n)
{
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; i + j < n; j++)
        lane[j] += (double)x[i + j] * (double)x[i + j];
    return fold_lanes(lane);
}

/* Magnitudes compared as integers: the order of non-negative floats is that of their bits, with NaN above infinity. */
static uint32_t max_magnitude(const float *x, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t m = lst__bits_of_f32(x[i]) & 0x7fffffffu;
        most = m > most ? m : most;
    }
    return most;
}

static float max_abs(const float *x, size_t n)
{
    return lst__f32_of_bits(max_magnitude(x, n));
}

static int all_finite(const float *x, size_t n)
{
    return max_magnitude(x, n) < 0x7f800000u;
}

static void scale(float *x, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

#undef LANES

static void fill_reduce(lst__kernels *k)
{
    k->sum_squares = sum_squares;
    k->max_abs = max_abs;
    k->all_finite = all_finite;
    k->scale = scale;
}

#endif
