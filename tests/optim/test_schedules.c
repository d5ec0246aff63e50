/* SPDX-License-Identifier: MIT
 *
 * Schedules beyond the golden sequences: names, and settings that are refused.
 */
#include "optim/fixture.h"

#include <math.h>

static void kinds_have_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LST_N_SCHEDULES; i++) {
        lst_schedule_kind kind;
        MUST(lst_schedule_find(lst_schedule_name((lst_schedule_kind)i), &kind, ERR));
        assert_int_equal(kind, i);
    }
    lst_schedule_kind kind;
    lst_error err;
    assert_int_equal(lst_schedule_find("cosinus", &kind, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "cosine"));
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    const struct {
        lst_schedule s;
        const char *word;
    } bad[] = {
        {{.kind = LST_SCHEDULE_LINEAR, .warmup_steps = -1, .total_steps = 10}, "negative"},
        {{.kind = LST_SCHEDULE_LINEAR, .warmup_steps = 11, .total_steps = 10}, "warm-up"},
        {{.kind = LST_SCHEDULE_LINEAR, .total_steps = 10, .min_rate = 0.1}, "min_rate"},
        {{.kind = LST_SCHEDULE_CONSTANT, .total_steps = 10, .power = 2}, "power"},
        {{.kind = LST_SCHEDULE_COSINE_MIN, .total_steps = 10, .min_rate = 1.5}, "min_rate"},
        {{.kind = LST_SCHEDULE_COSINE, .total_steps = 10, .cycles = NAN}, "cycles"},
        {{.kind = LST_SCHEDULE_POLYNOMIAL, .warmup_steps = 10, .total_steps = 10}, "polynomial"},
        {{.kind = LST_SCHEDULE_WARMUP_STABLE_DECAY, .warmup_steps = 6, .total_steps = 10, .decay_steps = 5}, "decay"},
        {{.kind = LST_N_SCHEDULES}, "kind"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lst_error err = {.message = ""};
        assert_int_equal(lst_schedule_check(&bad[i].s, &err), LST_ERR_ARGUMENT);
        if (!strstr(err.message, bad[i].word))
            fail_msg("\"%s\" does not say \"%s\"", err.message, bad[i].word);
    }
}

/* Any step of any kind that passes the check has a finite rate in [0, 1]. */
static void rates_stay_in_range(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < LST_N_SCHEDULES; kind++)
        for (int64_t warmup = 0; warmup < 4; warmup++) {
            lst_schedule s = {.kind = (lst_schedule_kind)kind, .warmup_steps = warmup, .total_steps = 12};
            if (kind == LST_SCHEDULE_WARMUP_STABLE_DECAY)
                s.decay_steps = 5;
            MUST(lst_schedule_check(&s, ERR));
            for (int64_t k = 0; k < 40; k++) {
                const double rate = lst_schedule_rate(&s, k);
                assert_true(rate >= 0 && rate <= 1);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(rates_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
