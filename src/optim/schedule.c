/* SPDX-License-Identifier: MIT
 *
 * Learning-rate schedules, as transformers' get_scheduler family computes them, in double.
 * k is the step from 0, W warmup_steps, T total_steps, p = (k - W)/max(1, T - W), r min_rate.
 */
#include "leanstep/optim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

#define PI 3.14159265358979323846

static const char *const names[LST_N_SCHEDULES] = {
#define LST_X(id, name) name,
    LST_SCHEDULE_LIST(LST_X)
#undef LST_X
};

const char *lst_schedule_name(lst_schedule_kind kind)
{
    return (unsigned)kind < LST_N_SCHEDULES ? names[kind] : "unknown";
}

lst_status lst_schedule_find(const char *name, lst_schedule_kind *out, lst_error *err)
{
    char list[256] = "";
    for (unsigned i = 0; i < LST_N_SCHEDULES; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (lst_schedule_kind)i;
            return LST_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return lst__fail(err, LST_ERR_ARGUMENT, "no schedule is named \"%s\"; there are: %s", name, list);
}

static double progress_at(const lst_schedule *s, double k)
{
    const double span = (double)(s->total_steps - s->warmup_steps);
    return (k - (double)s->warmup_steps) / (span > 1 ? span : 1);
}

static double progress(const lst_schedule *s, int64_t k)
{
    return progress_at(s, (double)k);
}

/* From 1 down and, past the end, up again. */
static double cosine(double p, double cycles)
{
    return 0.5 * (1.0 + cos(2.0 * PI * cycles * p));
}

static double floored(const lst_schedule *s, double rate)
{
    return rate * (1.0 - s->min_rate) + s->min_rate;
}

static double rate_linear(const lst_schedule *s, int64_t k)
{
    const double span = (double)(s->total_steps - s->warmup_steps), left = (double)(s->total_steps - k);
    return left > 0 ? left / (span > 1 ? span : 1) : 0;
}

static double rate_cosine(const lst_schedule *s, int64_t k)
{
    const double rate = cosine(progress(s, k), s->cycles > 0 ? s->cycles : 0.5);
    return rate > 0 ? rate : 0;
}

static double rate_restarts(const lst_schedule *s, int64_t k)
{
    const double p = progress(s, k), cycles = s->cycles > 0 ? s->cycles : 1.0;
    return p >= 1 ? 0 : 0.5 * (1.0 + cos(PI * fmod(cycles * p, 1.0)));
}

static double rate_polynomial(const lst_schedule *s, int64_t k)
{
    if (k > s->total_steps)
        return s->min_rate;
    const double power = s->power > 0 ? s->power : 1.0;
    return (1.0 - s->min_rate) * pow(1.0 - progress(s, k), power) + s->min_rate;
}

static double rate_inverse_sqrt(const lst_schedule *s, int64_t k)
{
    const double scale = s->warmup_steps > 0 ? (double)s->warmup_steps : 10000.0; /* transformers' default */
    return 1.0 / sqrt(((double)k + scale - (double)s->warmup_steps) / scale);
}

static double rate_stable_decay(const lst_schedule *s, int64_t k)
{
    const int64_t decay_from = s->total_steps - s->decay_steps;
    if (k < decay_from)
        return 1.0;
    if (k >= s->total_steps)
        return s->min_rate;
    const double p = (double)(k - decay_from) / (double)(s->decay_steps > 1 ? s->decay_steps : 1);
    const double falls[LST_N_DECAYS] = {
        [LST_DECAY_COSINE] = cosine(p, 0.5), [LST_DECAY_LINEAR] = 1.0 - p, [LST_DECAY_ONE_MINUS_SQRT] = 1.0 - sqrt(p)};
    return floored(s, falls[s->decay]);
}

static double rate_after_warmup(const lst_schedule *s, int64_t k)
{
    switch (s->kind) {
    case LST_SCHEDULE_LINEAR:
        return rate_linear(s, k);
    case LST_SCHEDULE_COSINE:
        return rate_cosine(s, k);
    case LST_SCHEDULE_COSINE_MIN:
        return floored(s, cosine(progress(s, k), 0.5));
    case LST_SCHEDULE_COSINE_MIN_EARLY: /* one step ahead of the others */
        return floored(s, cosine(progress_at(s, (double)k + 1.0), 0.5));
    case LST_SCHEDULE_COSINE_RESTARTS:
        return rate_restarts(s, k);
    case LST_SCHEDULE_POLYNOMIAL:
        return rate_polynomial(s, k);
    case LST_SCHEDULE_INVERSE_SQRT:
        return rate_inverse_sqrt(s, k);
    case LST_SCHEDULE_WARMUP_STABLE_DECAY:
        return rate_stable_decay(s, k);
    case LST_SCHEDULE_CONSTANT:
    case LST_N_SCHEDULES:
        break;
    }
    return 1.0;
}

double lst_schedule_rate(const lst_schedule *s, int64_t step)
{
    const double k = (double)step, warmup = (double)s->warmup_steps;
    if (step >= s->warmup_steps)
        return rate_after_warmup(s, step);
    if (s->kind == LST_SCHEDULE_WARMUP_STABLE_DECAY)
        return floored(s, k / warmup);
    if (s->kind != LST_SCHEDULE_COSINE_MIN_EARLY)
        return k / warmup;
    if (s->warmup_rate <= 0)
        return (k + 1.0) / warmup;
    return s->warmup_rate + (1.0 - s->warmup_rate) * k / (warmup > 2 ? warmup - 1.0 : 1.0);
}

/* Which of the optional fields a kind reads: bits in this order. */
enum { CYCLES = 1, MIN_RATE = 2, WARMUP_RATE = 4, POWER = 8, DECAY = 16 };

static const unsigned used[LST_N_SCHEDULES] = {
    [LST_SCHEDULE_COSINE] = CYCLES,
    [LST_SCHEDULE_COSINE_MIN] = MIN_RATE,
    [LST_SCHEDULE_COSINE_MIN_EARLY] = MIN_RATE | WARMUP_RATE,
    [LST_SCHEDULE_COSINE_RESTARTS] = CYCLES,
    [LST_SCHEDULE_POLYNOMIAL] = MIN_RATE | POWER,
    [LST_SCHEDULE_WARMUP_STABLE_DECAY] = MIN_RATE | DECAY,
};

static lst_status check_effect(const lst_schedule *s, lst_error *err)
{
    const struct {
        const char *name;
        unsigned bit;
        bool given;
    } fields[] = {{"cycles", CYCLES, s->cycles != 0},
                  {"min_rate", MIN_RATE, s->min_rate != 0},
                  {"warmup_rate", WARMUP_RATE, s->warmup_rate != 0},
                  {"power", POWER, s->power != 0},
                  {"decay_steps", DECAY, s->decay_steps != 0},
                  {"decay", DECAY, s->decay != 0}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].given && !(used[s->kind] & fields[i].bit))
            return lst__fail(err, LST_ERR_ARGUMENT, "the schedule %s does not use %s; leave it 0", names[s->kind],
                             fields[i].name);
    return LST_OK;
}

static lst_status check_steps(const lst_schedule *s, lst_error *err)
{
    const bool endless = s->kind == LST_SCHEDULE_CONSTANT || s->kind == LST_SCHEDULE_INVERSE_SQRT;
    if (s->warmup_steps < 0 || s->total_steps < 0 || s->decay_steps < 0)
        return lst__fail(
            err, LST_ERR_ARGUMENT, "schedule %s: a number of steps is negative (warm-up %lld, total %lld, decay %lld)",
            names[s->kind], (long long)s->warmup_steps, (long long)s->total_steps, (long long)s->decay_steps);
    if (!endless && s->warmup_steps > s->total_steps)
        return lst__fail(err, LST_ERR_ARGUMENT, "schedule %s: %lld steps of warm-up do not fit in %lld steps in all",
                         names[s->kind], (long long)s->warmup_steps, (long long)s->total_steps);
    if (s->kind == LST_SCHEDULE_POLYNOMIAL && s->warmup_steps == s->total_steps)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "schedule polynomial: the warm-up takes all %lld steps, and nothing is left to fall",
                         (long long)s->total_steps);
    if (s->kind == LST_SCHEDULE_WARMUP_STABLE_DECAY && s->warmup_steps + s->decay_steps > s->total_steps)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "schedule warmup_stable_decay: warm-up (%lld) and decay (%lld) exceed the total of %lld steps",
                         (long long)s->warmup_steps, (long long)s->decay_steps, (long long)s->total_steps);
    return LST_OK;
}

lst_status lst_schedule_check(const lst_schedule *s, lst_error *err)
{
    if ((unsigned)s->kind >= LST_N_SCHEDULES || (unsigned)s->decay >= LST_N_DECAYS)
        return lst__fail(err, LST_ERR_ARGUMENT, "schedule kind %d or decay %d is none of the known ones", (int)s->kind,
                         (int)s->decay);
    lst_status status = check_steps(s, err);
    if (status == LST_OK)
        status = check_effect(s, err);
    if (status != LST_OK)
        return status;
    if (!(s->min_rate >= 0 && s->min_rate <= 1 && s->warmup_rate >= 0 && s->warmup_rate <= 1))
        return lst__fail(err, LST_ERR_ARGUMENT, "schedule %s: min_rate %g and warmup_rate %g must lie in [0, 1]",
                         names[s->kind], s->min_rate, s->warmup_rate);
    if (!(isfinite(s->cycles) && s->cycles >= 0 && isfinite(s->power) && s->power >= 0))
        return lst__fail(err, LST_ERR_ARGUMENT, "schedule %s: cycles %g and power %g must be finite and not negative",
                         names[s->kind], s->cycles, s->power);
    return LST_OK;
}
