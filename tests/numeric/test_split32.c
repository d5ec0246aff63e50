/* SPDX-License-Identifier: MIT
 *
 * The exact split of a float32 weight, over all patterns.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "numeric/bf16.h"
#include "numeric/split32.h"
#include "numeric/sweep.h"

static void check_pattern(uint32_t bits)
{
    float x = lst__f32_of_bits(bits);
    lst__split32 s = lst__split32_from_f32(x);
    float back = lst__split32_join(s.hi, s.lo);
    if (isnan(x)) {
        if (!isnan(back) || !isnan(lst__bf16_to_f32(s.hi)))
            fail_msg("NaN 0x%08x became 0x%08x with half 0x%04x", bits, lst__bits_of_f32(back), s.hi);
        return;
    }
    if (lst__bits_of_f32(back) != bits)
        fail_msg("0x%08x came back as 0x%08x", bits, lst__bits_of_f32(back));
    uint32_t away_from_zero = (bits & 0xffffu) == 0x8000u; /* the one difference to rounding ties to even */
    uint16_t nearest = lst__bf16_from_f32(lst__f32_of_bits(bits | away_from_zero));
    if (s.hi != nearest)
        fail_msg("the half of 0x%08x is 0x%04x, not 0x%04x", bits, s.hi, nearest);
}

static void the_pair_is_exact_and_the_half_is_nearest(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += sweep_step())
        check_pattern((uint32_t)bits);
}

static void all_low_halves_at_the_corners(void **state)
{
    (void)state;
    static const uint32_t high[] = {0x0000, 0x0001, 0x007f, 0x0080, 0x3f7f, 0x3f80, 0x7f7e, 0x7f7f, 0x7f80,
                                    0x7f81, 0x7fbf, 0x7fff, 0x8000, 0x8001, 0xbf80, 0xff7f, 0xff80, 0xffff};
    for (size_t i = 0; i < sizeof high / sizeof *high; i++)
        for (uint32_t low = 0; low < 0x10000u; low++)
            check_pattern(high[i] << 16 | low);
}

/* Starting from bf16 weights, the low half is 0. */
static void a_bf16_value_splits_into_itself_and_zero(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000u; h++) {
        lst__split32 s = lst__split32_from_f32(lst__bf16_to_f32((uint16_t)h));
        if ((h & 0x7fffu) <= 0x7f80u)
            assert_int_equal(s.hi, h);
        assert_int_equal(s.lo, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pair_is_exact_and_the_half_is_nearest),
        cmocka_unit_test(all_low_halves_at_the_corners),
        cmocka_unit_test(a_bf16_value_splits_into_itself_and_zero),
    };
    return cmocka_run_group_tests_name("split32", tests, NULL, NULL);
}
