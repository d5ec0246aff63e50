/* SPDX-License-Identifier: MIT
 *
 * Which trial comes next, and how recipes stand: what follows from the finished trials alone.
 */
#include "train/compare.h"

#include <math.h>
#include <stdlib.h>

static const train_trial *find_trial(const train_compare *c, size_t contender, double lr, uint64_t seed)
{
    for (size_t i = 0; i < c->n_trials; i++)
        if (c->trials[i].contender == contender && c->trials[i].lr == lr && c->trials[i].seed == seed)
            return &c->trials[i];
    return NULL;
}

/* The rates that a contender was tried at with the first seed. */
typedef struct tried {
    size_t n;
    double least, most, best; /* best: NaN if every trial broke off */
    double best_loss;
} tried;

static tried rates_tried(const train_compare *c, size_t contender)
{
    tried t = {0, INFINITY, 0, NAN, INFINITY};
    for (size_t i = 0; i < c->n_trials; i++) {
        const train_trial *trial = &c->trials[i];
        if (trial->contender != contender || trial->seed != c->base.seed)
            continue;
        t.n++;
        t.least = fmin(t.least, trial->lr);
        t.most = fmax(t.most, trial->lr);
        if (trial->valid_loss < t.best_loss) {
            t.best_loss = trial->valid_loss;
            t.best = trial->lr;
        }
    }
    return t;
}

/* A rate beyond the end at which the best stands. */
static bool next_beyond(const train_compare *c, const tried *t, double *lr)
{
    const double up = c->rates[c->n_rates - 1] / c->rates[c->n_rates - 2], down = c->rates[1] / c->rates[0];
    if (t->n >= TRAIN_MAX_RATES)
        return false;
    if (isnan(t->best) || t->best == t->least)
        *lr = t->least / down; /* all broke off: smaller */
    else if (t->best == t->most)
        *lr = t->most * up;
    else
        return false;
    return true;
}

static bool next_rate(const train_compare *c, size_t contender, double *lr)
{
    for (size_t i = 0; i < c->n_rates; i++) {
        *lr = c->rates[i] * c->contenders[contender].rate_scale;
        if (!find_trial(c, contender, *lr, c->base.seed))
            return true;
    }
    const tried t = rates_tried(c, contender);
    return next_beyond(c, &t, lr);
}

bool train_compare_next(const train_compare *c, train_job *out)
{
    for (size_t i = 0; i < c->n_contenders; i++) {
        *out = (train_job){i, 0, c->base.seed};
        if (next_rate(c, i, &out->lr))
            return true;
    }
    for (size_t s = 1; s < c->n_seeds; s++)
        for (size_t i = 0; i < c->n_contenders; i++) {
            *out = (train_job){i, rates_tried(c, i).best, c->base.seed + s};
            if (!isnan(out->lr) && !find_trial(c, i, out->lr, out->seed))
                return true;
        }
    return false;
}

size_t train_compare_left(const train_compare *c)
{
    size_t left = 0;
    for (size_t i = 0; i < c->n_contenders; i++) {
        const tried t = rates_tried(c, i);
        double beyond;
        left += t.n < c->n_rates ? c->n_rates - t.n : next_beyond(c, &t, &beyond);
        for (size_t s = 1; s < c->n_seeds; s++)
            left += isnan(t.best) || !find_trial(c, i, t.best, c->base.seed + s);
    }
    return left;
}

/* Mean and standard deviation (n - 1). */
static void spread(const double *values, size_t n, double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    *mean = n ? sum / (double)n : NAN;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - *mean) * (values[i] - *mean);
    *deviation = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
}

static void stand(const train_compare *c, size_t contender, train_standing *out)
{
    double losses[TRAIN_MAX_SEEDS], percents[TRAIN_MAX_SEEDS], times = 0;
    size_t n = 0, n_pairs = 0;
    const tried t = rates_tried(c, contender), first = rates_tried(c, 0);
    *out = (train_standing){.contender = contender, .lr = t.best, .n_tried = t.n};
    out->at_end = t.best == t.least || t.best == t.most;
    out->trial = find_trial(c, contender, t.best, c->base.seed);
    for (size_t s = 0; s < c->n_seeds; s++) {
        const train_trial *ours = find_trial(c, contender, t.best, c->base.seed + s);
        const train_trial *theirs = find_trial(c, 0, first.best, c->base.seed + s);
        if (!ours || isnan(ours->valid_loss))
            continue;
        losses[n++] = ours->valid_loss;
        times += ours->step_ms;
        if (theirs && !isnan(theirs->valid_loss))
            percents[n_pairs++] = 100 * (ours->valid_loss / theirs->valid_loss - 1);
    }
    out->n_seeds = n;
    out->step_ms = n ? times / (double)n : NAN;
    spread(losses, n, &out->loss, &out->loss_spread);
    spread(percents, n_pairs, &out->percent, &out->percent_spread);
}

static int by_loss(const void *left, const void *right)
{
    const train_standing *a = left, *b = right;
    if (isnan(a->loss) != isnan(b->loss))
        return isnan(a->loss) ? 1 : -1;
    if (isnan(a->loss) || a->loss == b->loss)
        return a->contender < b->contender ? -1 : 1;
    return a->loss < b->loss ? -1 : 1;
}

void train_compare_standings(const train_compare *c, train_standing *out)
{
    for (size_t i = 0; i < c->n_contenders; i++)
        stand(c, i, &out[i]);
    qsort(out, c->n_contenders, sizeof *out, by_loss);
}
