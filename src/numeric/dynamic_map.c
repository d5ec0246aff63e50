/* SPDX-License-Identifier: MIT */
#include "numeric/dynamic_map.h"

#include <pthread.h>
#include <stddef.h>

static lst__dynamic_map maps[2]; /* unsigned, signed */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Levels of one sign from 0 up, in double; returns how many there are. */
static size_t magnitudes(int is_signed, double out[256])
{
    static const double decade[7] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};
    size_t n = 0;
    out[n++] = 0.0;
    for (int i = 0; i < 7; i++) {
        int bins = is_signed ? 1 << i : 2 << i;
        for (int k = 0; k < bins; k++)
            out[n++] = decade[i] * (0.1 + 0.9 * (k + 0.5) / bins);
    }
    out[n++] = 1.0;
    return n;
}

/* The largest float32 at or below x > 0. */
static uint32_t bits_down(double x)
{
    float nearest = (float)x;
    return lst__bits_of_f32(nearest) - ((double)nearest > x);
}

static void make(lst__dynamic_map *map, int is_signed)
{
    double magnitude[256];
    size_t n = magnitudes(is_signed, magnitude);
    map->zero_code = is_signed ? 127 : 0;
    map->last_negative = is_signed ? 127 : 0;
    for (size_t k = 0; k < n; k++) {
        map->level[map->zero_code + (int32_t)k] = (float)magnitude[k];
        if ((int32_t)k <= map->last_negative && k > 0)
            map->level[map->zero_code - (int32_t)k] = -(float)magnitude[k];
        map->middle[k] = 0xffffffffu;
        if (k + 1 < n) /* between the levels as they are stored */
            map->middle[k] = bits_down(0.5 * ((double)(float)magnitude[k] + (double)(float)magnitude[k + 1]));
    }
    int32_t steps = 0;
    for (uint32_t bin = LST__DYNAMIC_FIRST_BIN; bin <= LST__DYNAMIC_LAST_BIN; bin++) {
        while (bin << 16 > map->middle[steps])
            steps++;
        map->start[bin - LST__DYNAMIC_FIRST_BIN] = steps;
    }
}

static void make_both(void)
{
    make(&maps[0], 0);
    make(&maps[1], 1);
}

const lst__dynamic_map *lst__dynamic_map_get(int is_signed)
{
    pthread_once(&once, make_both);
    return &maps[is_signed != 0];
}
