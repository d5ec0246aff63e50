/* SPDX-License-Identifier: MIT
 *
 * Exact parameter counts of public models: every row of models.csv, by built-in name.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "io/csv.h"
#include "leanstep/models.h"

#define MODELS_CSV LEANSTEP_SOURCE_DIR "/tests/plan/data/models.csv"

static void all_45_totals_are_exact(void **state)
{
    (void)state;
    lst_csv csv;
    lst_error err;
    assert_int_equal(lst__csv_read(MODELS_CSV, (size_t)1 << 20, &csv, &err), LST_OK);
    assert_int_equal(csv.n_rows, 45);
    for (size_t row = 0; row < csv.n_rows; row++) {
        lst_shape shape;
        uint64_t total = 0, tensors = 0;
        const char *name = lst__csv_get(&csv, row, "name");
        if (lst_shape_by_name(name, &shape, &err) != LST_OK)
            fail_msg("%s", err.message);
        assert_int_equal(lst__csv_get_u64(&csv, row, "params_exact", &total, &err), LST_OK);
        if (lst_shape_params(&shape) != total)
            fail_msg("%s: %" PRIu64 " parameters counted, %" PRIu64 " expected", name, lst_shape_params(&shape), total);
        if (lst__csv_get_u64(&csv, row, "n_tensors_logical", &tensors, &err) == LST_OK &&
            lst_shape_tensors(&shape) != tensors)
            fail_msg("%s: %zu tensors counted, %" PRIu64 " expected", name, lst_shape_tensors(&shape), tensors);
    }
    lst__csv_free(&csv);
}

static void names_are_found_with_owner_and_in_any_case(void **state)
{
    (void)state;
    lst_shape shape;
    lst_error err;
    assert_int_equal(lst_shape_by_name("meta-llama/llama-3.1-8b", &shape, &err), LST_OK);
    assert_int_equal(lst_shape_params(&shape), 8030261248u);
    assert_int_equal(lst_shape_by_name("no-such-model", &shape, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "no-such-model"));
}

static void an_arch_counts_as_its_shape(void **state)
{
    (void)state;
    for (int family = 0; family < LST_N_FAMILIES; family++) {
        lst_arch arch;
        lst_shape shape;
        lst_arch_default((lst_family)family, &arch);
        lst_shape_from_arch(&arch, &shape);
        assert_int_equal(lst_shape_params(&shape), lst_arch_params(&arch));
        assert_int_equal(lst_shape_tensors(&shape), lst_arch_tensor_count(&arch));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_45_totals_are_exact),
        cmocka_unit_test(names_are_found_with_owner_and_in_any_case),
        cmocka_unit_test(an_arch_counts_as_its_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
