/* SPDX-License-Identifier: MIT
 *
 * Every variant of every rule's loop gives the bits of the scalar reference (NaN as a class): hostile numbers, all
 * lengths from 0 to 130, odd alignments, each array with a guard page before or behind it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/guarded.h"
#include "kernels/hostile.h"
#include "kernels/kernels.h"

enum { LONGEST = 130, ARRAYS = 2 + LST__RULE_STATES };

static const char *const loop_names[LST__N_RULE_LOOPS] = {
#define LST__X(name) #name,
    LST__RULE_LOOP_LIST(LST__X)
#undef LST__X
};

static guarded pages[ARRAYS];

/* Scalars of a plausible step; the second set turns on what the first leaves out. */
static void scalars(float *k, int set)
{
    for (size_t i = 0; i < LST__N_K; i++)
        k[i] = 0.5f + 0.03f * (float)i;
    k[LST__K_SIGN] = set ? -1.0f : 1.0f;
    k[LST__K_L2] = set ? 0.01f : 0.0f;
    k[LST__K_EPS] = set ? 0.0f : 1e-8f;
    k[LST__K_RATE] = -0.01f;
}

static void fill(float *array, size_t n, uint64_t stream)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = hostile_bits(stream, i);
        memcpy(&array[i], &bits, 4);
    }
}

static int same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], 4) != 0 && !(a[i] != a[i] && b[i] != b[i]))
            return 0;
    return 1;
}

static void point(lst__rule_args *args, float *arrays[ARRAYS])
{
    args->w = arrays[0];
    args->g = arrays[1];
    for (size_t i = 0; i < LST__RULE_STATES; i++)
        args->s[i] = arrays[2 + i];
}

static void check_one(const lst__kernels *k, size_t loop, size_t n, int at_end, int set)
{
    static float want[ARRAYS][LONGEST];
    float *got[ARRAYS], *reference[ARRAYS], ks[LST__N_K];
    for (size_t a = 0; a < ARRAYS; a++) {
        got[a] = guarded_at(pages[a], at_end, 4 * (a % 3), n * 4);
        reference[a] = want[a];
        fill(got[a], n, 100 * n + a);
        memcpy(want[a], got[a], n * 4);
    }
    scalars(ks, set);
    lst__rule_args args = {.n = n, .k = ks};
    point(&args, reference);
    lst__kernels_for(LST__ISA_SCALAR)->rules[loop](&args);
    point(&args, got);
    k->rules[loop](&args);
    for (size_t a = 0; a < ARRAYS; a++)
        if (!same(got[a], want[a], n))
            fail_msg("%s: loop %s differs from the reference in array %zu at length %zu (set %d)", k->name,
                     loop_names[loop], a, n, set);
}

static void every_variant_equals_the_reference(void **state)
{
    (void)state;
    size_t variants = 0;
    for (int isa = LST__ISA_BASE; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for((lst__isa)isa);
        if (!k)
            continue;
        variants++;
        for (size_t loop = 0; loop < LST__N_RULE_LOOPS; loop++)
            for (size_t n = 0; n <= LONGEST; n++)
                for (int way = 0; way < 4; way++)
                    check_one(k, loop, n, way & 1, way >> 1);
    }
    assert_true(variants > 0);
}

/* The block of a matrix product, on hostile numbers. */
static void matrix_blocks_equal_the_reference(void **state)
{
    (void)state;
    enum { DEPTH = 70, BLOCK = LST__MATMUL_ROWS * LST__MATMUL_COLUMNS };
    static float a[DEPTH * LST__MATMUL_ROWS], b[DEPTH * LST__MATMUL_COLUMNS], want[BLOCK], got[BLOCK];
    for (int isa = LST__ISA_BASE; isa < LST__N_ISAS; isa++)
        for (size_t depth = 0; depth <= DEPTH && lst__kernels_for((lst__isa)isa); depth++) {
            fill(a, DEPTH * LST__MATMUL_ROWS, 2 * depth);
            fill(b, DEPTH * LST__MATMUL_COLUMNS, 2 * depth + 1);
            lst__kernels_for(LST__ISA_SCALAR)->matmul(depth, a, b, want);
            lst__kernels_for((lst__isa)isa)->matmul(depth, a, b, got);
            assert_true(same(got, want, BLOCK));
        }
}

static int open_pages(void **state)
{
    (void)state;
    for (size_t a = 0; a < ARRAYS; a++)
        pages[a] = guarded_new();
    return 0;
}

static int close_pages(void **state)
{
    (void)state;
    for (size_t a = 0; a < ARRAYS; a++)
        guarded_free(pages[a]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_variant_equals_the_reference),
                                       cmocka_unit_test(matrix_blocks_equal_the_reference)};
    return cmocka_run_group_tests(tests, open_pages, close_pages);
}
