/* SPDX-License-Identifier: MIT
 *
 * The PyTorch estimate against counted bytes: 101 published runs, and 195 further ones made with the same script
 * (other sizes, settings no row has, random combinations).
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "io/csv.h"
#include "leanstep/estimate.h"
#include "plan/torch_rows.h"

#define DATA LEANSTEP_SOURCE_DIR "/tests/plan/data/"
#define LIMIT ((size_t)64 << 20)

typedef struct column {
    const char *name;
    uint64_t value;
} column;

static void check_row(const lst_csv *csv, size_t row, double tolerance, size_t *inexact)
{
    lst_torch_run run;
    lst_estimate *e = NULL;
    lst_error err;
    if (lst__torch_row(csv, row, &run, &err) != LST_OK || lst_torch_estimate(&e, &run, &err) != LST_OK)
        fail_msg("%s: %s", lst__csv_get(csv, row, "id"), err.message);
    const column columns[] = {
        {"params", e->params},
        {"trainable", e->trainable},
        {"after_load", e->after_load},
        {"input_bytes", e->input_bytes},
        {"grad_bytes", e->grad_bytes},
        {"state_bytes", e->state_bytes},
        {"first_start", e->first.start},
        {"first_peak", e->first.peak},
        {"steady_start", e->steady.start},
        {"steady_after_loss", e->steady.after_loss},
        {"steady_bwd_peak", e->steady.bwd_peak},
        {"steady_after_bwd", e->steady.after_bwd},
        {"steady_opt_peak", e->steady.opt_peak},
        {"steady_after_opt", e->steady.after_opt},
        {"steady_end", e->steady.end},
        {"steady_peak", e->steady.peak},
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        uint64_t counted = 0;
        assert_int_equal(lst__csv_get_u64(csv, row, columns[i].name, &counted, &err), LST_OK);
        const double error = fabs((double)columns[i].value - (double)counted);
        if (error > tolerance * (double)counted)
            fail_msg("%s, %s: %" PRIu64 " bytes predicted, %" PRIu64 " counted", lst__csv_get(csv, row, "id"),
                     columns[i].name, columns[i].value, counted);
        *inexact += columns[i].value != counted;
    }
    lst_estimate_destroy(e);
}

static void all_101_published_runs_are_exact(void **state)
{
    (void)state;
    lst_csv csv;
    lst_error err;
    size_t inexact = 0;
    assert_int_equal(lst__csv_read(DATA "torch_step_bytes.csv", LIMIT, &csv, &err), LST_OK);
    assert_int_equal(csv.n_rows, 101);
    for (size_t row = 0; row < csv.n_rows; row++)
        check_row(&csv, row, 0.0, &inexact);
    assert_int_equal(inexact, 0);
    lst__csv_free(&csv);
}

/* Peaks that no published row decides (adapters with dropout or in low precision, at a vocabulary of 200 or 300) are
 * off by up to 4.4 %; most rows are exact in every column. */
static void runs_the_formulas_were_not_written_for(void **state)
{
    (void)state;
    lst_csv csv;
    lst_error err;
    size_t exact_rows = 0;
    assert_int_equal(lst__csv_read(DATA "torch_step_bytes_held_out.csv", LIMIT, &csv, &err), LST_OK);
    for (size_t row = 0; row < csv.n_rows; row++) {
        size_t inexact = 0;
        check_row(&csv, row, 0.045, &inexact);
        exact_rows += inexact == 0;
    }
    assert_true(exact_rows * 100 >= csv.n_rows * 88);
    lst__csv_free(&csv);
}

static lst_estimate *estimate(const lst_torch_run *run)
{
    lst_estimate *e = NULL;
    lst_error err;
    if (lst_torch_estimate(&e, run, &err) != LST_OK)
        fail_msg("%s", err.message);
    return e;
}

static uint64_t peak(const lst_torch_run *run)
{
    lst_estimate *e = estimate(run);
    const uint64_t bytes = e->steady.peak;
    assert_true(e->sum_bytes >= bytes);
    lst_estimate_destroy(e);
    return bytes;
}

static void start(lst_torch_run *run, const char *model)
{
    lst_error err;
    lst_torch_run_default(run);
    assert_int_equal(lst_shape_by_name(model, &run->shape, &err), LST_OK);
}

static void peak_rises_with_batch_sequence_and_rank(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2", "Qwen2.5-0.5B", "Qwen3-0.6B", "gemma-3-270m", "Phi-3-mini-4k"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        for (int dtype = 0; dtype < LST_N_TORCH_DTYPES; dtype++) {
            lst_torch_run run;
            start(&run, models[m]);
            run.dtype = (lst_torch_dtype)dtype;
            uint64_t before = peak(&run);
            for (run.batch = 2; run.batch < 6; run.batch++, before = peak(&run))
                assert_true(peak(&run) >= before);
            for (run.seq = 600; run.seq < 1000; run.seq += 100, before = peak(&run))
                assert_true(peak(&run) >= before);
            run.lora = LST_TARGET_ALL;
            run.lora_rank = 1;
            before = peak(&run);
            for (run.lora_rank = 2; run.lora_rank < 300; run.lora_rank *= 4, before = peak(&run))
                assert_true(peak(&run) >= before);
        }
    }
}

static void checkpointing_never_keeps_more(void **state)
{
    (void)state;
    for (size_t i = 0; lst_shape_builtin(i); i++) {
        lst_torch_run run;
        lst_error err;
        lst_estimate *e = NULL;
        start(&run, lst_shape_builtin(i));
        if (lst_torch_estimate(&e, &run, &err) == LST_ERR_UNSUPPORTED)
            continue;
        const uint64_t kept = e->kept_bytes;
        lst_estimate_destroy(e);
        run.checkpoint = true;
        e = estimate(&run);
        assert_true(e->kept_bytes < kept);
        lst_estimate_destroy(e);
    }
}

/* What lives at any moment is part of what lives at all, for every model, rule of update and sharding. */
static void the_sum_is_no_less_than_the_peak(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; lst_shape_builtin(i); i++) {
        for (int setting = 0; setting < LST_N_TORCH_OPTIMS * 12; setting++) {
            lst_torch_run run;
            lst_error err;
            lst_estimate *e = NULL;
            start(&run, lst_shape_builtin(i));
            run.optim = (lst_torch_optim)(setting / 12);
            run.optim_rank = 8;
            run.blocks = 4;
            run.gpu = setting & 1;
            run.checkpoint = setting & 2;
            run.lora = setting % 5 == 0 ? LST_TARGET_ALL : 0;
            run.lora_rank = 8;
            run.attention = setting % 7 == 0 ? LST_TORCH_EAGER : LST_TORCH_SDPA;
            run.accumulation = setting % 3 == 0 ? 2 : 1;
            run.dtype = (lst_torch_dtype)(setting / 4 % LST_N_TORCH_DTYPES);
            if (lst_torch_estimate(&e, &run, &err) != LST_OK)
                continue;
            if (e->sum_bytes < e->steady.peak)
                fail_msg("%s, setting %d: sum %" PRIu64 ", peak %" PRIu64, lst_shape_builtin(i), setting, e->sum_bytes,
                         e->steady.peak);
            lst_estimate_destroy(e);
            n++;
        }
    }
    assert_true(n > 1000);
}

/* Every stage of sharding over one process is the run without sharding, byte for byte. */
static void one_rank_is_no_sharding(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2", "Qwen2.5-0.5B", "Llama-3.1-8B"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        lst_torch_run run;
        start(&run, models[m]);
        const uint64_t alone = peak(&run);
        run.ranks = 1;
        for (run.zero = 0; run.zero <= 3; run.zero++)
            assert_int_equal(peak(&run), alone);
    }
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    lst_torch_run run;
    lst_estimate *e = NULL;
    lst_error err;
    start(&run, "gpt2");
    run.base = LST_TORCH_BASE_NF4;
    assert_int_equal(lst_torch_estimate(&e, &run, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "adapters"));
    start(&run, "gpt2");
    run.batch = 0;
    assert_int_equal(lst_torch_estimate(&e, &run, &err), LST_ERR_ARGUMENT);
    start(&run, "gpt2");
    run.release_grads = true;
    run.accumulation = 2;
    assert_int_equal(lst_torch_estimate(&e, &run, &err), LST_ERR_ARGUMENT);
    start(&run, "Mixtral-8x7B-v0.1");
    assert_int_equal(lst_torch_estimate(&e, &run, &err), LST_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "mixtral"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_101_published_runs_are_exact),
        cmocka_unit_test(runs_the_formulas_were_not_written_for),
        cmocka_unit_test(peak_rises_with_batch_sequence_and_rank),
        cmocka_unit_test(checkpointing_never_keeps_more),
        cmocka_unit_test(the_sum_is_no_less_than_the_peak),
        cmocka_unit_test(one_rank_is_no_sharding),
        cmocka_unit_test(contradictions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
