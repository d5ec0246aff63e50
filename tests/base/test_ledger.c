/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/fail.h"
#include "leanstep/ledger.h"

/* The ledger: peaks by bucket, in total, by phase; names of buckets and of status codes. */

static void test_peaks(void **state)
{
    (void)state;
    static lst_ledger l;
    lst_ledger_init(&l);
    lst_ledger_take(&l, LST_BUCKET_WEIGHTS, 100);
    lst_ledger_enter(&l, 3);
    lst_ledger_take(&l, LST_BUCKET_ACTIVATIONS, 50);
    lst_ledger_take(&l, LST_BUCKET_LOSS, 7);
    lst_ledger_give(&l, LST_BUCKET_ACTIVATIONS, 50);
    lst_ledger_enter(&l, 5);
    lst_ledger_take(&l, LST_BUCKET_GRADIENTS, 40);
    assert_true(l.now_total == 147 && l.peak_total == 157);
    assert_int_equal(l.peak_phase, 3);
    assert_true(l.phase_peak[0] == 100 && l.phase_peak[3] == 157 && l.phase_peak[5] == 147 && l.phase_peak[4] == 0);
    assert_true(l.at_peak[LST_BUCKET_ACTIVATIONS] == 50 && l.at_peak[LST_BUCKET_GRADIENTS] == 0);
    assert_true(l.peak[LST_BUCKET_ACTIVATIONS] == 50 && l.now[LST_BUCKET_ACTIVATIONS] == 0);
    assert_true(l.n_takes == 4);
    /* reaching the same peak again does not move it */
    lst_ledger_take(&l, LST_BUCKET_DATA, 10);
    assert_int_equal(l.peak_phase, 3);
    lst_ledger_take(&l, LST_BUCKET_DATA, 1);
    assert_int_equal(l.peak_phase, 5);
    assert_true(l.at_peak[LST_BUCKET_GRADIENTS] == 40);
}

static void test_bucket_names(void **state)
{
    (void)state;
    assert_string_equal(lst_bucket_name(LST_BUCKET_EXP_AVG_SQ), "exp_avg_sq");
    assert_string_equal(lst_bucket_name(LST_N_BUCKETS), "unknown");
    assert_true(lst_bucket_is_state(LST_BUCKET_MASTER));
    assert_false(lst_bucket_is_state(LST_BUCKET_GRADIENTS));
    assert_false(lst_bucket_is_state(LST_N_BUCKETS));
    for (size_t i = 0; i < LST_N_BUCKETS; i++)
        for (size_t j = i + 1; j < LST_N_BUCKETS; j++)
            assert_string_not_equal(lst_bucket_name((lst_bucket)i), lst_bucket_name((lst_bucket)j));
}

static void test_errors(void **state)
{
    (void)state;
    lst_error err;
    assert_string_equal(lst_status_name(LST_ERR_NONFINITE), "nonfinite");
    assert_string_equal(lst_status_name((lst_status)999), "unknown");
    assert_int_equal(lst__fail(NULL, LST_ERR_STATE, "nobody reads %d", 1), LST_ERR_STATE);
    assert_int_equal(lst__fail_at(&err, LST_ERR_FORMAT, 17, "byte %d", 3), LST_ERR_FORMAT);
    assert_true(err.position == 17 && err.status == LST_ERR_FORMAT);
    assert_string_equal(err.message, "byte 3");
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(lst__fail_errno(&err, 28, "%s", text), LST_ERR_IO);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(lst__fail_errno(&err, 28, "cannot write x"), LST_ERR_IO);
    assert_non_null(strstr(err.message, "cannot write x: No space left on device; free space"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_bucket_names),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
