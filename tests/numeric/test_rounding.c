/* SPDX-License-Identifier: MIT
 *
 * Stochastic rounding: exactly unbiased over its 65,536 draws, safe at the ends of the range; and the random bits:
 * uniform, and independent between neighbours, steps, tensors, slots and seeds. The hash has no state, so every number
 * here is the same in every run; a bound of 5 standard deviations says how surprising a failure of a changed hash would
 * be.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "numeric/bf16.h"
#include "numeric/rounding.h"

static void mean_over_all_draws_is_exact(void **state)
{
    (void)state;
    static const uint32_t patterns[] = {0x00000001, 0x00008000, 0x0000ffff, 0x00010001, 0x007fffff, 0x00800001,
                                        0x3f7fffff, 0x3f800001, 0x3f808000, 0x3f80ffff, 0x40490fdb, 0x7f7effff,
                                        0x7f7f0000, 0x80000001, 0x8000ffff, 0xbf80abcd, 0xff7effff, 0x3f800000};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        float x = lst__f32_of_bits(patterns[i]);
        double sum = 0.0;
        for (uint32_t draw = 0; draw < 65536; draw++)
            sum += ldexp((double)lst__bf16_to_f32(lst__bf16_stochastic(x, draw)), 20); /* exact: few bits, one binade */
        assert_true(sum == ldexp((double)x, 20) * 65536.0);
    }
}

static void result_is_one_of_the_two_neighbours(void **state)
{
    (void)state;
    lst__rounding_key key = lst__rounding_key_of((lst__rounding){.seed = 1}, 0);
    for (uint32_t i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)lst__rounding_group(key, LST__DRAW_GROUP * (i + 1));
        if ((bits & 0x7fffffffu) >= 0x7f7f0000u)
            continue;
        uint16_t down = (uint16_t)(bits >> 16);
        uint16_t got = lst__bf16_stochastic(lst__f32_of_bits(bits), lst__rounding_draw(key, i));
        uint16_t up = (uint16_t)(down + ((bits & 0xffffu) != 0));
        assert_true(got == down || got == up);
    }
}

static void finite_stays_finite_and_special_stays_special(void **state)
{
    (void)state;
    static const uint32_t draws[] = {0, 1, 0x7fff, 0x8000, 0xffff, 0xffffffff};
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        for (uint32_t sign = 0; sign < 2; sign++) {
            uint32_t s = sign << 31;
            uint16_t s16 = (uint16_t)(sign << 15);
            for (uint32_t low = 0; low < 0x10000u; low += 257)
                assert_int_equal(lst__bf16_stochastic(lst__f32_of_bits(s | 0x7f7f0000u | low), draws[i]), s16 | 0x7f7f);
            assert_int_equal(lst__bf16_stochastic(lst__f32_of_bits(s | 0x7f800000u), draws[i]), s16 | 0x7f80);
            assert_int_equal(lst__bf16_stochastic(lst__f32_of_bits(s), draws[i]), s16);
            for (uint32_t bit = 0; bit < 23; bit++) {
                uint16_t h = lst__bf16_stochastic(lst__f32_of_bits(s | 0x7f800000u | 1u << bit), draws[i]);
                assert_true((h & 0x7fffu) > 0x7f80u && (h & 0x8000u) == s16);
            }
        }
    }
}

/* How far a count of n draws that fall in each of `cells` lies from uniform, in standard deviations of chi-square. */
static double chi_square_sigmas(const uint32_t *count, size_t cells, double n)
{
    double expected = n / (double)cells, chi = 0.0;
    for (size_t c = 0; c < cells; c++)
        chi += (count[c] - expected) * (count[c] - expected) / expected;
    double freedom = (double)cells - 1.0;
    return (chi - freedom) / sqrt(2.0 * freedom);
}

enum { DRAWS = 1 << 20, CELLS = 4096 };

/* Two draws as functions of i: their joint distribution over (6 bits, 6 bits), for each place where the bits may be
 * taken. */
typedef uint32_t draw_fn(uint32_t i);

static void check_pair(const char *what, draw_fn *first, draw_fn *second)
{
    static uint32_t count[CELLS];
    for (unsigned shift = 0; shift <= 10; shift += 2) {
        memset(count, 0, sizeof count);
        for (uint32_t i = 0; i < DRAWS; i++)
            count[((first(i) >> shift) & 63u) << 6 | ((second(i) >> shift) & 63u)]++;
        double sigmas = chi_square_sigmas(count, CELLS, DRAWS);
        if (fabs(sigmas) > 5.0)
            fail_msg("%s, bits from %u: %.1f standard deviations from uniform", what, shift, sigmas);
    }
}

static uint32_t draw(uint64_t seed, uint64_t step, uint64_t tensor, uint32_t slot, uint32_t index)
{
    return lst__rounding_draw(lst__rounding_key_of((lst__rounding){seed, step, tensor, slot}, 0), index);
}

static uint32_t index_0(uint32_t i)
{
    return draw(7, 3, 2, 1, i);
}
static uint32_t index_1(uint32_t i)
{
    return draw(7, 3, 2, 1, i + 1);
}
static uint32_t index_16(uint32_t i)
{
    return draw(7, 3, 2, 1, i + 16);
}
static uint32_t index_64(uint32_t i)
{
    return draw(7, 3, 2, 1, i + 64);
}
static uint32_t index_4096(uint32_t i)
{
    return draw(7, 3, 2, 1, i + 4096);
}
static uint32_t row_0(uint32_t i)
{
    return draw(7, 3, 2, 1, i * 4096);
}
static uint32_t next_step(uint32_t i)
{
    return draw(7, 4, 2, 1, i);
}
static uint32_t next_tensor(uint32_t i)
{
    return draw(7, 3, 3, 1, i);
}
static uint32_t next_slot(uint32_t i)
{
    return draw(7, 3, 2, 2, i);
}
static uint32_t next_seed(uint32_t i)
{
    return draw(8, 3, 2, 1, i);
}
static uint32_t steps_0(uint32_t i)
{
    return draw(0, i, 0, 0, 0);
}
static uint32_t steps_1(uint32_t i)
{
    return draw(0, i + 1, 0, 0, 0);
}

static void bits_are_uniform_and_independent(void **state)
{
    (void)state;
    check_pair("neighbours", index_0, index_1);
    check_pair("16 apart", index_0, index_16);
    check_pair("64 apart", index_0, index_64);
    check_pair("4,096 apart", index_0, index_4096);
    check_pair("every 4,096th and every element", row_0, index_0);
    check_pair("two steps", index_0, next_step);
    check_pair("two tensors", index_0, next_tensor);
    check_pair("two slots", index_0, next_slot);
    check_pair("two seeds", index_0, next_seed);
    check_pair("one element over the steps", steps_0, steps_1);
}

static void a_group_draws_what_its_elements_draw(void **state)
{
    (void)state;
    lst__rounding_key key = lst__rounding_key_of((lst__rounding){.seed = 3}, 1);
    for (uint32_t first = 0xfffff000u; first >= 0xfffff000u; first += LST__DRAW_GROUP) {
        uint32_t group[LST__DRAW_GROUP];
        lst__rounding_draw_group(key, first, group);
        for (uint32_t j = 0; j < LST__DRAW_GROUP; j++)
            assert_int_equal(group[j], lst__rounding_draw(key, first + j));
    }
}

/* All pairs of lanes of a group. */
static void lanes_are_uniform_and_independent(void **state)
{
    (void)state;
    enum { GROUPS = 1 << 16 };
    static uint16_t drawn[LST__DRAW_GROUP][GROUPS];
    lst__rounding_key key = lst__rounding_key_of((lst__rounding){.seed = 5, .step = 9}, 0);
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t group[LST__DRAW_GROUP];
        lst__rounding_draw_group(key, g * LST__DRAW_GROUP, group);
        for (uint32_t j = 0; j < LST__DRAW_GROUP; j++)
            drawn[j][g] = (uint16_t)group[j];
    }
    for (uint32_t a = 0; a < LST__DRAW_GROUP; a++) {
        for (uint32_t b = 0; b < a; b++) {
            for (uint32_t shift = 0; shift <= 10; shift += 5) {
                uint32_t cells[CELLS] = {0};
                for (uint32_t g = 0; g < GROUPS; g++)
                    cells[(drawn[a][g] >> shift & 63u) << 6 | (drawn[b][g] >> shift & 63u)]++;
                const double sigmas = chi_square_sigmas(cells, CELLS, GROUPS);
                if (fabs(sigmas) > 5)
                    fail_msg("lanes %u and %u, bits from %u: %.1f standard deviations from uniform", a, b, shift,
                             sigmas);
            }
        }
    }
}

/* With the real bits: the mean of many roundings of the same number, over elements and over steps. */
static void rounding_with_the_hash_is_unbiased(void **state)
{
    (void)state;
    static const float values[] = {0.3f, 1.00001f, -2.7e-3f, 1e-40f, 3e38f};
    enum { N = 1 << 18 };
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        float x = values[v];
        double unit = (double)lst__bf16_to_f32((uint16_t)((lst__bits_of_f32(x) >> 16) + 1)) -
                      (double)lst__bf16_to_f32((uint16_t)(lst__bits_of_f32(x) >> 16));
        double over_elements = 0.0, over_steps = 0.0;
        for (uint32_t i = 0; i < N; i++) {
            over_elements +=
                ((double)lst__bf16_to_f32(lst__bf16_stochastic(x, draw(1, 1, 1, 0, i))) - (double)x) / unit;
            over_steps += ((double)lst__bf16_to_f32(lst__bf16_stochastic(x, draw(1, i, 1, 0, 9))) - (double)x) / unit;
        }
        /* One rounding errs by at most half a unit in standard deviation: 5 sigma of the mean of N. */
        double bound = 5.0 * 0.5 / sqrt((double)N);
        assert_true(fabs(over_elements / N) < bound && fabs(over_steps / N) < bound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_over_all_draws_is_exact),
        cmocka_unit_test(result_is_one_of_the_two_neighbours),
        cmocka_unit_test(finite_stays_finite_and_special_stays_special),
        cmocka_unit_test(bits_are_uniform_and_independent),
        cmocka_unit_test(a_group_draws_what_its_elements_draw),
        cmocka_unit_test(lanes_are_uniform_and_independent),
        cmocka_unit_test(rounding_with_the_hash_is_unbiased),
    };
    return cmocka_run_group_tests_name("rounding", tests, NULL, NULL);
}
