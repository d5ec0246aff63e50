/* SPDX-License-Identifier: MIT
 *
 * The dynamic map and its exact quantiser: every level, every midpoint and its float32 neighbours, and a sweep of all
 * float32 numbers from 0 to 1, against the nearest level found by comparing distances in double.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "numeric/dynamic_map.h"
#include "numeric/sweep.h"

static void levels_are_those_of_the_closed_form(void **state)
{
    (void)state;
    const lst__dynamic_map *s = lst__dynamic_map_get(1), *u = lst__dynamic_map_get(0);
    static const struct {
        int is_signed, code;
        double value;
    } known[] = {
        {1, 0, -0.99296875}, {1, 1, -0.97890625},   {1, 2, -0.96484375},   {1, 124, -7.75e-6},    {1, 125, -3.25e-6},
        {1, 126, -5.5e-7},   {1, 127, 0.0},         {1, 128, 5.5e-7},      {1, 129, 3.25e-6},     {1, 130, 7.75e-6},
        {1, 131, 2.125e-5},  {1, 135, 1.5625e-4},   {1, 254, 0.99296875},  {1, 255, 1.0},         {0, 0, 0.0},
        {0, 1, 3.25e-7},     {0, 2, 7.75e-7},       {0, 3, 2.125e-6},      {0, 6, 8.875e-6},      {0, 7, 1.5625e-5},
        {0, 15, 1.28125e-4}, {0, 128, 0.110546875}, {0, 252, 0.982421875}, {0, 254, 0.996484375}, {0, 255, 1.0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true((known[i].is_signed ? s : u)->level[known[i].code] == (float)known[i].value);
    for (int c = 1; c < 256; c++)
        assert_true(s->level[c] > s->level[c - 1] && u->level[c] > u->level[c - 1]);
}

/* The code whose level is nearest, the one of smaller magnitude at a tie; *low is at or below it for ascending x. */
static int nearest(const lst__dynamic_map *map, double x, int *low)
{
    while (*low < 255 && (double)map->level[*low + 1] <= x)
        ++*low;
    if (*low == 255 || x < (double)map->level[0])
        return *low;
    double below = x - (double)map->level[*low], above = (double)map->level[*low + 1] - x;
    if (below == above)
        return x > 0.0 ? *low : *low + 1;
    return below < above ? *low : *low + 1;
}

static void check(int is_signed, float x)
{
    const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
    int low = 0, got = lst__dynamic_encode(map, x);
    int want = nearest(map, (double)x, &low);
    if (got != want)
        fail_msg("%s: %a got code %d, not %d", is_signed ? "signed" : "unsigned", (double)x, got, want);
}

static void every_level_and_midpoint_with_neighbours(void **state)
{
    (void)state;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
        for (int c = 0; c < 256; c++) {
            assert_int_equal(lst__dynamic_encode(map, map->level[c]), c);
            if (c == 255)
                break;
            float middle = (float)(0.5 * ((double)map->level[c] + (double)map->level[c + 1]));
            check(is_signed, middle);
            check(is_signed, nextafterf(middle, 2.0f));
            check(is_signed, nextafterf(middle, -2.0f));
            check(is_signed, nextafterf(map->level[c], 2.0f));
            if (map->level[c] > -0.99f)
                check(is_signed, nextafterf(map->level[c], is_signed ? -2.0f : 0.0f));
        }
    }
}

static void a_sweep_of_all_magnitudes_up_to_one(void **state)
{
    (void)state;
    uint64_t step = sweep_step() == 1 ? 1 : 97;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
        int low = is_signed ? 127 : 0;
        for (uint64_t bits = 0; bits <= 0x3f800000u; bits += step) {
            float x = lst__f32_of_bits((uint32_t)bits);
            int want = nearest(map, (double)x, &low), got = lst__dynamic_encode(map, x);
            int negative = lst__dynamic_encode(map, -x);
            int mirrored = is_signed ? 127 - (want - 127 > 127 ? 127 : want - 127) : 0;
            if (got != want || negative != mirrored)
                fail_msg("%a: code %d, not %d; negative %d, not %d", (double)x, got, want, negative, mirrored);
        }
    }
}

static void odd_inputs_get_a_code(void **state)
{
    (void)state;
    const lst__dynamic_map *s = lst__dynamic_map_get(1), *u = lst__dynamic_map_get(0);
    assert_int_equal(lst__dynamic_encode(s, -0.0f), 127);
    assert_int_equal(lst__dynamic_encode(u, -0.0f), 0);
    assert_int_equal(lst__dynamic_encode(s, 1.0000001f), 255);
    assert_int_equal(lst__dynamic_encode(s, -1.0000001f), 0);
    assert_int_equal(lst__dynamic_encode(s, INFINITY), 255);
    assert_int_equal(lst__dynamic_encode(s, 1e-45f), 127);
    (void)lst__dynamic_encode(u, NAN);
    (void)lst__dynamic_encode(s, -NAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_those_of_the_closed_form),
        cmocka_unit_test(every_level_and_midpoint_with_neighbours),
        cmocka_unit_test(a_sweep_of_all_magnitudes_up_to_one),
        cmocka_unit_test(odd_inputs_get_a_code),
    };
    return cmocka_run_group_tests_name("dynamic_map", tests, NULL, NULL);
}
