/* SPDX-License-Identifier: MIT
 *
 * The PyTorch estimate against published measurements: errors by group stay where bench/plan_accuracy.md has them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/torch_measured.h"

#define MEASURED_CSV LEANSTEP_SOURCE_DIR "/tests/plan/data/measured_memory.csv"

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median of the absolute errors of a group (NULL: of every run); n receives their number. */
static double median(const char *name, size_t *n, double *worst)
{
    lst_csv csv;
    lst_error err;
    double errors[400];
    *n = 0;
    assert_int_equal(lst__csv_read(MEASURED_CSV, (size_t)1 << 20, &csv, &err), LST_OK);
    for (size_t row = 0; row < csv.n_rows && *n < 400; row++) {
        lst__measured m;
        const char *quality = lst__csv_get(&csv, row, "quality");
        if (strcmp(quality, "A") != 0 && strcmp(quality, "B") != 0)
            continue;
        assert_int_equal(lst__measured_row(&csv, row, &m, &err), LST_OK);
        assert_true(m.accepted || m.reason[0]);
        if (m.accepted && (name ? strcmp(m.group, name) == 0 : m.is_run))
            errors[(*n)++] = fabs(m.predicted / m.measured - 1);
    }
    lst__csv_free(&csv);
    assert_true(*n > 0);
    qsort(errors, *n, sizeof *errors, by_size);
    *worst = errors[*n - 1];
    return errors[(*n - 1) / 2];
}

static void runs_are_within_4_percent_by_the_median(void **state)
{
    (void)state;
    size_t n = 0;
    double worst = 0;
    assert_true(median(NULL, &n, &worst) < 0.04);
    assert_true(n >= 38);
    assert_true(worst < 0.19);
}

static void kernels_and_layers_are_nearly_exact(void **state)
{
    (void)state;
    size_t n = 0;
    double worst = 0;
    assert_true(median("kernel", &n, &worst) < 0.005);
    assert_true(worst < 0.04);
    assert_true(median("layer", &n, &worst) < 0.005);
    assert_true(worst < 0.04);
}

static lst__measured find(const char *id)
{
    lst_csv csv;
    lst_error err;
    lst__measured m = {0};
    assert_int_equal(lst__csv_read(MEASURED_CSV, (size_t)1 << 20, &csv, &err), LST_OK);
    for (size_t row = 0; row < csv.n_rows; row++) {
        if (strcmp(lst__csv_get(&csv, row, "id"), id) == 0)
            assert_int_equal(lst__measured_row(&csv, row, &m, &err), LST_OK);
    }
    lst__csv_free(&csv);
    return m;
}

/* Differences carry no constant: what a longer sequence or a larger batch costs. */
static void slopes_are_within_one_percent(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"m242", "m243"}, {"m244", "m246"}, {"m247", "m248"}, {"m249", "m248"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const lst__measured a = find(pairs[i][0]), b = find(pairs[i][1]);
        const double predicted = b.predicted - a.predicted, measured = b.measured - a.measured;
        assert_true(fabs(predicted / measured - 1) < 0.01);
    }
}

static void what_is_not_stated_is_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(find("m006").reason, "not packed"));
    assert_non_null(strstr(find("m014").reason, "rank and targets"));
    assert_non_null(strstr(find("m210").reason, "GB or GiB"));
    assert_non_null(strstr(find("m205").reason, "batch"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_within_4_percent_by_the_median),
        cmocka_unit_test(kernels_and_layers_are_nearly_exact),
        cmocka_unit_test(slopes_are_within_one_percent),
        cmocka_unit_test(what_is_not_stated_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
