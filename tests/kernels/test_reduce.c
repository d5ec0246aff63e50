/* SPDX-License-Identifier: MIT
 *
 * Reductions and scaling: the same bits in every variant, and right. A NaN compares as a NaN of any payload.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/guarded.h"
#include "kernels/hostile.h"
#include "kernels/kernels.h"
#include "numeric/bits.h"

enum { LONGEST = 130, ALIGNMENTS = 17 };

static guarded page;

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Hostile numbers; for even streams the finite ones only, so that sums say something. */
static void fill(float *x, size_t n, uint64_t stream)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = hostile_bits(stream, i);
        if (stream % 2 == 0 && (bits & 0x7f800000u) == 0x7f800000u)
            bits &= 0xbfffffffu;
        x[i] = lst__f32_of_bits(bits);
    }
}

static void check_one(const lst__kernels *k, float *x, size_t n)
{
    const lst__kernels *r = lst__kernels_for(LST__ISA_SCALAR);
    if (!same(k->sum_squares(x, n), r->sum_squares(x, n)) || k->all_finite(x, n) != r->all_finite(x, n) ||
        !same((double)k->max_abs(x, n), (double)r->max_abs(x, n)))
        fail_msg("%s differs from the reference at n = %zu", k->name, n);

    static const float factors[] = {1.0f, 0.3f, -0.0f, 1e30f, 1e-30f, INFINITY, NAN};
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        float copy[LONGEST], want[LONGEST];
        if (n > 0) {
            memcpy(copy, x, n * sizeof *x);
            memcpy(want, x, n * sizeof *x);
        }
        k->scale(copy, n, factors[f]);
        r->scale(want, n, factors[f]);
        for (size_t i = 0; i < n; i++)
            if (!same((double)copy[i], (double)want[i]))
                fail_msg("%s scales %a by %a to %a, the reference to %a", k->name, (double)x[i], (double)factors[f],
                         (double)copy[i], (double)want[i]);
    }
}

static void variants_equal_the_reference(void **state)
{
    (void)state;
    for (lst__isa isa = LST__ISA_BASE; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (size_t n = 0; k != NULL && n <= LONGEST; n++)
            for (size_t shift = 0; shift < ALIGNMENTS; shift++)
                for (int at_end = 0; at_end < 2; at_end++) {
                    float *x = guarded_at(page, at_end, shift * sizeof(float), n * sizeof(float));
                    fill(x, n, 100 * n + shift);
                    check_one(k, x, n);
                }
    }
}

/* The order that the header of body_reduce.h promises, written down independently. */
static double sum_in_sixteen_lanes(const float *x, size_t n)
{
    double lane[16] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % 16] += (double)x[i] * (double)x[i];
    for (size_t j = 0; j < 8; j++)
        lane[j] += lane[j + 8];
    for (size_t j = 0; j < 4; j++)
        lane[j] += lane[j + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

static void sum_of_squares_keeps_its_order(void **state)
{
    (void)state;
    static float x[5000];
    fill(x, 5000, 8);
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (size_t n = 0; k != NULL && n <= 5000; n += n < 200 ? 1 : 97)
            assert_true(same(k->sum_squares(x, n), sum_in_sixteen_lanes(x, n)));
    }
}

static void squares_neither_overflow_nor_vanish(void **state)
{
    (void)state;
    const lst__kernels *k = lst__kernels_get();
    float large[40], small[40];
    for (size_t i = 0; i < 40; i++) {
        large[i] = FLT_MAX;
        small[i] = 1e-30f;
    }
    assert_true(same(k->sum_squares(large, 40), 40.0 * (double)FLT_MAX * (double)FLT_MAX));
    assert_true(fabs(k->sum_squares(small, 40) / 40e-60 - 1.0) < 1e-6);
}

static void one_bad_element_anywhere_is_seen(void **state)
{
    (void)state;
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (size_t n = 1; k != NULL && n <= LONGEST; n++)
            for (size_t at = 0; at < n; at++) {
                float x[LONGEST];
                for (size_t i = 0; i < n; i++)
                    x[i] = -FLT_MAX;
                assert_true(k->all_finite(x, n) == 1 && k->max_abs(x, n) == FLT_MAX);
                x[at] = bad[at % 3];
                assert_true(k->all_finite(x, n) == 0 && !isfinite(k->max_abs(x, n)));
                assert_int_equal(isnan(k->max_abs(x, n)), isnan(bad[at % 3]));
            }
    }
}

static void nothing_sums_to_zero(void **state)
{
    (void)state;
    const lst__kernels *k = lst__kernels_get();
    assert_true(k->sum_squares(NULL, 0) == 0.0 && k->max_abs(NULL, 0) == 0.0f && k->all_finite(NULL, 0) == 1);
}

static int open_page(void **state)
{
    (void)state;
    page = guarded_new();
    return 0;
}

static int close_page(void **state)
{
    (void)state;
    guarded_free(page);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_equal_the_reference),
        cmocka_unit_test(sum_of_squares_keeps_its_order),
        cmocka_unit_test(squares_neither_overflow_nor_vanish),
        cmocka_unit_test(one_bad_element_anywhere_is_seen),
        cmocka_unit_test(nothing_sums_to_zero),
    };
    return cmocka_run_group_tests_name("reduce", tests, open_page, close_page);
}
