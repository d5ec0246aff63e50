/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"

/* Random numbers: known values, uniformity, and that neighbours are unrelated. */

static void test_known_values(void **state)
{
    (void)state;
    /* SplitMix64 seeded with 0 begins so (the generator's published sequence). */
    assert_true(lst__random_mix(0) == 0xe220a8397b1dcdafu);
    assert_true(lst__random_mix(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
    assert_true(lst__random_u64(1, 2, 3) == lst__random_u64(1, 2, 3));
    assert_true(lst__random_u64(1, 2, 3) != lst__random_u64(1, 3, 2));
    assert_true(lst__random_u64(1, 2, 3) != lst__random_u64(2, 1, 3));
}

static void test_below_is_uniform(void **state)
{
    (void)state;
    enum { N = 10, DRAWS = 100000 };
    size_t counts[N] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint64_t value = lst__random_below(7, 0, i, N);
        assert_true(value < N);
        counts[value]++;
    }
    double chi2 = 0;
    for (size_t i = 0; i < N; i++) {
        double d = (double)counts[i] - (double)DRAWS / N;
        chi2 += d * d / ((double)DRAWS / N);
    }
    assert_true(chi2 < 33.7); /* 9 degrees of freedom: exceeded once in 10,000 seeds */
    assert_true(lst__random_below(7, 0, 1, 1) == 0);
}

static void test_every_bit_is_fair(void **state)
{
    (void)state;
    enum { DRAWS = 40000 };
    size_t ones[64] = {0}, flips[64] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        uint64_t value = lst__random_u64(123, 9, i), next = lst__random_u64(123, 9, i + 1);
        for (size_t bit = 0; bit < 64; bit++) {
            ones[bit] += (value >> bit) & 1;
            flips[bit] += ((value ^ next) >> bit) & 1;
        }
    }
    for (size_t bit = 0; bit < 64; bit++) { /* five standard deviations of 100 */
        assert_true(fabs((double)ones[bit] - DRAWS / 2) < 500);
        assert_true(fabs((double)flips[bit] - DRAWS / 2) < 500);
    }
}

static void test_unit_and_normal_moments(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    double unit = 0, sum = 0, squares = 0, fourth = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double u = lst__random_unit(5, 1, i), z = lst__random_normal(5, 2, i);
        assert_true(u >= 0 && u < 1 && isfinite(z));
        unit += u;
        sum += z;
        squares += z * z;
        fourth += z * z * z * z;
    }
    assert_true(fabs(unit / DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
    assert_true(fabs(sum / DRAWS) < 5 / sqrt((double)DRAWS));
    assert_true(fabs(squares / DRAWS - 1) < 5 * sqrt(2.0 / DRAWS));
    assert_true(fabs(fourth / DRAWS - 3) < 5 * sqrt(96.0 / DRAWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_below_is_uniform),
        cmocka_unit_test(test_every_bit_is_fair),
        cmocka_unit_test(test_unit_and_normal_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
