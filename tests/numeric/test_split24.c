/* SPDX-License-Identifier: MIT
 *
 * split24 over all float32 patterns, with the smallest and the largest draw between which every other lies.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "numeric/bf16.h"
#include "numeric/split24.h"
#include "numeric/sweep.h"

enum { LARGEST = 0x7f7f7f00 }; /* where split24 stops, so that hi does not show infinity */

static float round_trip(uint32_t bits, uint32_t draw)
{
    lst__split24 s = lst__split24_from_f32(lst__f32_of_bits(bits), draw);
    return lst__split24_join(s.hi, s.lo);
}

/* The two neighbours in 24 bits, from below and from above, by integer arithmetic on the bits. */
static void check_pattern(uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fffffffu, sign = bits & 0x80000000u;
    uint32_t down = lst__bits_of_f32(round_trip(bits, 0)), up = lst__bits_of_f32(round_trip(bits, 0xffff));
    uint32_t want_down = magnitude & 0xffffff00u;
    uint32_t want_up = (magnitude + 0xffu) & 0xffffff00u;
    if (magnitude >= 0x7f800000u) {
        want_down = want_up = 0x7f800000u;
    } else if (want_up > LARGEST) {
        want_up = LARGEST;
        want_down = want_down > LARGEST ? LARGEST : want_down;
    }
    if (magnitude > 0x7f800000u) {
        assert_true(isnan(lst__f32_of_bits(down)) && isnan(lst__f32_of_bits(up)));
        assert_true(isnan(lst__bf16_to_f32(lst__split24_from_f32(lst__f32_of_bits(bits), 0xffff).hi)));
    } else if (down != (want_down | sign) || up != (want_up | sign)) {
        fail_msg("0x%08x became 0x%08x and 0x%08x", bits, down, up);
    }
    /* One unit of the 24-bit number is 2^-15 of a normal number's power of two, and the error is below it. */
    double x = (double)lst__f32_of_bits(magnitude), step = fmax(ldexp(x, -15), ldexp(1.0, -141));
    if (magnitude <= LARGEST)
        assert_true(fabs((double)lst__f32_of_bits(up & 0x7fffffffu) - x) < step &&
                    fabs((double)lst__f32_of_bits(down & 0x7fffffffu) - x) < step);
}

static void error_is_below_one_unit_of_24_bits(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += sweep_step())
        check_pattern((uint32_t)bits);
}

static void all_low_halves_at_the_corners(void **state)
{
    (void)state;
    static const uint32_t high[] = {0x0000, 0x0001, 0x007f, 0x0080, 0x3f7f, 0x3f80, 0x7f7e, 0x7f7f,
                                    0x7f80, 0x7f81, 0x7fff, 0x8000, 0xbf80, 0xff7f, 0xff80, 0xffff};
    for (size_t i = 0; i < sizeof high / sizeof *high; i++)
        for (uint32_t low = 0; low < 0x10000u; low++)
            check_pattern(high[i] << 16 | low);
}

/* Over all draws the mean is exact: the probability of going up is the share of the distance. */
static void mean_over_all_draws_is_exact(void **state)
{
    (void)state;
    for (uint32_t low = 0; low < 0x10000u; low += 0x55) {
        uint32_t bits = 0x3fa50000u | low;
        double sum = 0.0;
        for (uint32_t draw = 0; draw < 0x10000u; draw += 0x100)
            sum += (double)round_trip(bits, draw);
        assert_true(sum == 256.0 * (double)lst__f32_of_bits(bits));
    }
}

static void hi_is_the_nearest_bf16_of_the_pair_and_bf16_is_exact(void **state)
{
    (void)state;
    for (uint32_t low = 0; low < 0x10000u; low += 0x100) {
        uint32_t bits = 0xc1a70000u | low;
        lst__split24 s = lst__split24_from_f32(lst__f32_of_bits(bits), 0x1234);
        uint32_t away_from_zero = low == 0x8000u;
        assert_int_equal(s.hi, lst__bf16_from_f32(lst__f32_of_bits(bits | away_from_zero)));
    }
    for (uint32_t h = 0; h < 0x10000u; h++) {
        lst__split24 s = lst__split24_from_f32(lst__bf16_to_f32((uint16_t)h), 0xffff);
        assert_int_equal(s.lo, 0);
        assert_true(s.hi == h || (h & 0x7fffu) > 0x7f80u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_is_below_one_unit_of_24_bits),
        cmocka_unit_test(all_low_halves_at_the_corners),
        cmocka_unit_test(mean_over_all_draws_is_exact),
        cmocka_unit_test(hi_is_the_nearest_bf16_of_the_pair_and_bf16_is_exact),
    };
    return cmocka_run_group_tests_name("split24", tests, NULL, NULL);
}
