/* SPDX-License-Identifier: MIT
 *
 * A comparison: the same model on the same text by several recipes, each at its best of several learning rates.
 *
 *     OUT/compare.jsonl     what is compared, then a line for each finished trial: an interrupted comparison goes
 *                           on from it
 *     OUT/trials/NAME/      settings, plan and metrics of each trial
 *     OUT/compare.json      the standings, for programs
 *     OUT/compare.html      the standings, to be looked at
 *
 * Trials in order: every recipe at every rate with the first seed; while a recipe's best rate stands at an end of the
 * rates it was tried at, one more beyond that end; then the other seeds, each recipe at its best rate. Weights start
 * from the same random numbers and batches are the same for the same seed, so that recipes are compared seed by seed.
 */
#ifndef LST_TRAIN_COMPARE_H
#define LST_TRAIN_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"
#include "train/settings.h"

enum {
    TRAIN_MAX_CONTENDERS = 40,
    TRAIN_MAX_RATES = 9, /* tried by one recipe, added ones included */
    TRAIN_MAX_SEEDS = 20,
    TRAIN_MAX_TRIALS = TRAIN_MAX_CONTENDERS * (TRAIN_MAX_RATES + TRAIN_MAX_SEEDS)
};

/* One recipe that takes part. The first is what the others are held against: float32 AdamW. */
typedef struct train_contender {
    char name[64];     /* "adamw split24+q8" */
    lst_recipe recipe; /* but for hyper.lr */
    double rate_scale; /* the comparison's rates times this: rules want rates of different size */
} train_contender;

/* One finished trial. */
typedef struct train_trial {
    size_t contender;
    double lr;
    uint64_t seed;
    double valid_loss; /* NaN: the run broke off, its numbers were not finite */
    double step_ms;    /* median */
    uint64_t n_skipped;
    uint64_t params, state_bytes, fixed_bytes, arena_bytes;
    bool as_planned; /* every bucket's most bytes were what the plan says */
} train_trial;

typedef struct train_compare {
    train_settings base; /* all but recipe and seed; base.seed is the first seed */
    char folder[TRAIN_MAX_PATH];
    size_t n_contenders, n_rates, n_seeds;
    train_contender contenders[TRAIN_MAX_CONTENDERS];
    double rates[TRAIN_MAX_RATES]; /* ascending */
    size_t n_trials;
    train_trial trials[TRAIN_MAX_TRIALS];
    uint64_t data_hash; /* 0 until a trial was made */
} train_compare;

/* What is to be tried next. */
typedef struct train_job {
    size_t contender;
    double lr;
    uint64_t seed;
} train_job;

/* How one recipe stands after the trials so far. */
typedef struct train_standing {
    size_t contender;
    double lr;   /* its best by the first seed; NaN before the first trial or if all broke off */
    bool at_end; /* the best rate stands at an end of those tried */
    size_t n_tried;
    size_t n_seeds;                 /* finished at that rate */
    double loss, loss_spread;       /* mean over seeds and standard deviation; NaN where there is none */
    double percent, percent_spread; /* difference to the first contender seed by seed, in percent of its loss */
    double step_ms;
    const train_trial *trial; /* of the first seed at that rate; NULL: none */
} train_standing;

typedef struct train_compare_observer {
    void *user;
    void (*on_trial)(void *user, const train_compare *compare, const train_trial *trial);
    void (*on_step)(void *user, const train_job *job, int64_t step, int64_t total);
    bool (*stop)(void *user); /* asked after each step; true ends with LST_ERR_INTERRUPTED, the trial at work is lost */
} train_compare_observer;

/* Makes the folder, or reads the trials of one that holds the same comparison. LST_ERR_STATE if it holds another. */
LST_MUST_USE lst_status train_compare_open(train_compare *compare, lst_error *err);
/* What comes next after the trials so far; false: nothing. */
bool train_compare_next(const train_compare *compare, train_job *out);
/* At least as many trials as this are still to be made. */
size_t train_compare_left(const train_compare *compare);
/* All trials that are left. */
LST_MUST_USE lst_status train_compare_run(train_compare *compare, const train_compare_observer *observer,
                                          lst_error *err);
/* By ascending loss; out has room for n_contenders. */
void train_compare_standings(const train_compare *compare, train_standing *out);

/* compare.json and compare.html. */
LST_MUST_USE lst_status train_compare_write(const train_compare *compare, lst_error *err);

/* ---- its parts ---- */
LST_MUST_USE lst_status train__compare_page(const train_compare *compare, const train_standing *standings,
                                            const char *path, lst_error *err);

#endif
