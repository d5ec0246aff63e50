/* SPDX-License-Identifier: MIT
 *
 * bf16 and f16 against the definition: the value of each code in double, and the nearest code, ties to even, found by
 * walking the codes in order.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "numeric/bf16.h"
#include "numeric/f16.h"
#include "numeric/sweep.h"

typedef struct half_type {
    const char *name;
    int exponent_bits, mantissa_bits;
    uint16_t (*from_f32)(float x);
    float (*to_f32)(uint16_t h);
} half_type;

static const half_type types[] = {
    {"bf16", 8, 7, lst__bf16_from_f32, lst__bf16_to_f32},
    {"f16", 5, 10, lst__f16_from_f32, lst__f16_to_f32},
};

static uint32_t infinity_code(const half_type *t)
{
    return ((1u << t->exponent_bits) - 1) << t->mantissa_bits;
}

/* Value of a non-negative code by the formula; the code of infinity counts as the next power of two, as rounding
 * does. */
static double value_of(const half_type *t, uint32_t code)
{
    int bias = (1 << (t->exponent_bits - 1)) - 1;
    int exponent = (int)(code >> t->mantissa_bits);
    double fraction = (double)(code & ((1u << t->mantissa_bits) - 1));
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - t->mantissa_bits);
    return ldexp(fraction + ldexp(1.0, t->mantissa_bits), exponent - bias - t->mantissa_bits);
}

static void every_code_decodes_to_its_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const half_type *t = &types[i];
        for (uint32_t code = 0; code < 0x8000u; code++) {
            float plus = t->to_f32((uint16_t)code), minus = t->to_f32((uint16_t)(code | 0x8000u));
            if (code > infinity_code(t)) {
                assert_true(isnan(plus) && isnan(minus));
                continue;
            }
            double want = code == infinity_code(t) ? INFINITY : value_of(t, code);
            assert_true((double)plus == want && (double)minus == -want);
            assert_true(!signbit(plus) && signbit(minus));
        }
    }
}

static void every_code_survives_a_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const half_type *t = &types[i];
        for (uint32_t code = 0; code < 0x10000u; code++) {
            uint16_t back = t->from_f32(t->to_f32((uint16_t)code));
            if ((code & 0x7fffu) > infinity_code(t))
                assert_true((back & 0x7fffu) > infinity_code(t) && (back & 0x8000u) == (code & 0x8000u));
            else
                assert_int_equal(back, code);
        }
    }
}

/* The nearest code to |x|, where *lower is the largest code whose value does not exceed that of an earlier, smaller
 * x. */
static uint32_t nearest_code(const half_type *t, float x, uint32_t *lower)
{
    while (*lower < infinity_code(t) && value_of(t, *lower + 1) <= (double)x)
        ++*lower;
    if (*lower == infinity_code(t))
        return *lower;
    double below = (double)x - value_of(t, *lower), above = value_of(t, *lower + 1) - (double)x;
    if (below == above)
        return *lower + (*lower & 1u);
    return below < above ? *lower : *lower + 1;
}

static void check_pattern(const half_type *t, uint32_t bits, uint32_t *lower)
{
    float x = lst__f32_of_bits(bits);
    uint32_t plus = t->from_f32(x), minus = t->from_f32(lst__f32_of_bits(bits | 0x80000000u));
    bool good;
    if (bits > 0x7f800000u)
        good = plus > infinity_code(t) && plus < 0x8000u; /* a NaN of the same sign */
    else
        good = plus == (bits == 0x7f800000u ? infinity_code(t) : nearest_code(t, x, lower));
    if (!good || minus != (plus | 0x8000u))
        fail_msg("%s of %a (0x%08x) is 0x%04x, of its negative 0x%04x", t->name, (double)x, bits, plus, minus);
}

static void every_float_goes_to_the_nearest_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        uint32_t lower = 0;
        for (uint64_t bits = 0; bits < 0x80000000u; bits += sweep_step())
            check_pattern(&types[i], (uint32_t)bits, &lower);
    }
}

/* Every code, every midpoint, and their float32 neighbours. */
static void codes_midpoints_and_their_neighbours_go_to_the_nearest_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const half_type *t = &types[i];
        for (uint32_t code = 0; code < infinity_code(t); code++) {
            uint32_t lower = code == 0 ? 0 : code - 1;
            float middle = (float)(0.5 * (value_of(t, code) + value_of(t, code + 1)));
            uint32_t near_code = lst__bits_of_f32((float)value_of(t, code));
            uint32_t near_middle = lst__bits_of_f32(middle);
            for (uint32_t d = near_code == 0 ? 1 : 0; d <= 2; d++)
                check_pattern(t, near_code + d - 1, &lower);
            for (uint32_t d = 0; d <= 2; d++)
                check_pattern(t, near_middle + d - 1, &lower);
        }
    }
}

static void nan_of_any_payload_stays_nan(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 23; bit++) {
        for (uint32_t more = 0; more < 2; more++) {
            uint32_t payload = more ? 0x7fffffu >> bit : 1u << bit;
            float x = lst__f32_of_bits(0x7f800000u | payload), y = lst__f32_of_bits(0xff800000u | payload);
            assert_true(isnan(lst__bf16_to_f32(lst__bf16_from_f32(x))) &&
                        isnan(lst__bf16_to_f32(lst__bf16_from_f32(y))));
            assert_true(isnan(lst__f16_to_f32(lst__f16_from_f32(x))) && isnan(lst__f16_to_f32(lst__f16_from_f32(y))));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_decodes_to_its_value),
        cmocka_unit_test(every_code_survives_a_round_trip),
        cmocka_unit_test(every_float_goes_to_the_nearest_code),
        cmocka_unit_test(codes_midpoints_and_their_neighbours_go_to_the_nearest_code),
        cmocka_unit_test(nan_of_any_payload_stays_nan),
    };
    return cmocka_run_group_tests_name("floats", tests, NULL, NULL);
}
