/* SPDX-License-Identifier: MIT
 *
 * Learning-rate schedules against golden sequences:
 *
 *     golden_schedules FOLDER      the folder that holds schedules.json
 */
#include "optim/golden_file.h"

#include "leanstep/optim.h"

static size_t n_passed, n_failed, n_skipped;

static bool schedule_of(const json_t *spec, lst_schedule *out)
{
    const char *name = json_string_value(json_object_get(spec, "name"));
    const char *decay = json_string_value(json_object_get(spec, "decay_type"));
    static const char *const decays[LST_N_DECAYS] = {
#define LST_X(id, text) text,
        LST_DECAY_LIST(LST_X)
#undef LST_X
    };
    lst_error err;
    if (lst_schedule_find(strcmp(name, "constant_with_warmup") == 0 ? "constant" : name, &out->kind, &err) != LST_OK)
        return false;
    out->warmup_steps = json_integer_value(json_object_get(spec, "warmup"));
    out->total_steps = json_integer_value(json_object_get(spec, "total"));
    out->cycles = golden_member(spec, "num_cycles", 0);
    out->min_rate = golden_member(spec, "min_lr_rate", 0) + golden_member(spec, "min_lr_ratio", 0) +
                    golden_member(spec, "lr_end", 0); /* a case has at most one of them */
    out->warmup_rate = golden_member(spec, "warmup_lr_rate", 0);
    out->power = golden_member(spec, "power", 0);
    out->decay_steps = json_integer_value(json_object_get(spec, "num_decay_steps"));
    for (unsigned i = 0; i < LST_N_DECAYS && decay; i++)
        if (strcmp(decay, decays[i]) == 0)
            out->decay = (lst_decay_kind)i;
    return true;
}

/* Largest share of the tolerance over the values of one list; k of element i is steps[i], or i. */
static double compare(const lst_schedule *s, const json_t *values, const json_t *steps, const json_t *about,
                      double *worst)
{
    const double rtol = golden_member(about, "rtol", 0), atol = golden_member(about, "atol", 0);
    double share = 0;
    for (size_t i = 0; i < json_array_size(values); i++) {
        const int64_t k = steps ? json_integer_value(json_array_get(steps, i)) : (int64_t)i;
        const double want = golden_number(json_array_get(values, i), 0), error = fabs(lst_schedule_rate(s, k) - want);
        share = fmax(share, error / fmax(atol, rtol * fabs(want)));
        *worst = fmax(*worst, error);
    }
    return share;
}

static void run_case(const json_t *spec, const json_t *about)
{
    lst_schedule s = {0};
    lst_error err;
    const char *name = json_string_value(json_object_get(spec, "name"));
    bool passed;
    char text[128];
    double worst = 0;
    if (!schedule_of(spec, &s)) {
        printf("skip %s: not implemented\n", name);
        n_skipped++;
        return;
    }
    const bool refused = lst_schedule_check(&s, &err) != LST_OK;
    if (json_object_get(spec, "raises") || json_object_get(spec, "contradictory")) {
        passed = refused;
        snprintf(text, sizeof text, "%s", refused ? "refused, as it should be" : "should be refused");
    } else {
        double share = compare(&s, json_object_get(spec, "values"), NULL, about, &worst);
        share =
            fmax(share, compare(&s, json_object_get(spec, "tail"), json_object_get(spec, "tail_steps"), about, &worst));
        const double at_total = golden_member(spec, "at_total", 0);
        share =
            fmax(share, fabs(lst_schedule_rate(&s, s.total_steps) - at_total) / fmax(1e-15, 1e-12 * fabs(at_total)));
        passed = !refused && share <= 1;
        snprintf(text, sizeof text, "worst %.1e, %.2f of the tolerance (rtol 1e-12)", worst, share);
    }
    printf("%s %s warmup %lld total %lld: %s\n", passed ? "ok  " : "FAIL", name, (long long)s.warmup_steps,
           (long long)s.total_steps, text);
    n_passed += passed;
    n_failed += !passed;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: golden_schedules FOLDER\n");
        return 2;
    }
    golden_file file = golden_open(argv[1], "schedules");
    const json_t *cases = json_object_get(file.about, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        run_case(json_array_get(cases, i), file.about);
    golden_close(&file);
    printf("%zu passed, %zu failed", n_passed, n_failed);
    if (n_skipped)
        printf(", %zu skipped", n_skipped);
    printf("\n");
    return n_failed ? 1 : 0;
}
