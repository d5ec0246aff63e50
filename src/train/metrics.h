/* SPDX-License-Identifier: MIT
 *
 * metrics.jsonl: one JSON object a line, appended as a run goes. A training line has "loss", a validation line
 * "valid_loss":
 *
 *     {"step":12,"loss":2.8311,"grad_norm":0.91,"lr":0.0003,"tokens":49152,"tokens_per_s":8123.4,"seconds":6.1}
 *     {"step":50,"valid_loss":2.5127,"valid_perplexity":12.338}
 *     {"step":61,"skipped":"model.layers.0.mlp.up_proj.weight","loss":null}
 *
 * Numbers of a step are written with 17 digits: two runs can be compared to the last bit.
 */
#ifndef LST_TRAIN_METRICS_H
#define LST_TRAIN_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "leanstep/status.h"

/* What is known of one step when it is done. */
typedef struct train_metric {
    int64_t step;     /* 1 for the first */
    double loss;      /* mean over the counted tokens of the step; NaN or infinite where the numbers were */
    double grad_norm; /* global, before clipping, after unscaling */
    double lr;
    uint64_t tokens;     /* trained on since the run's start, resumed parts included */
    double tokens_per_s; /* of this step */
    double seconds;      /* since this process started training */
    double loss_scale;   /* 1 where there is none */
    const char *skipped; /* the tensor whose gradient was not finite; NULL: the step was made */
} train_metric;

typedef struct train_log train_log;

/* Opens `path` for appending, after dropping every line beyond last_step (and a line that a kill cut short): a
 * resumed run has each step once. last_step 0 starts the file anew. */
LST_MUST_USE lst_status train_log_open(train_log **out, const char *path, int64_t last_step, lst_error *err);
LST_MUST_USE lst_status train_log_step(train_log *log, const train_metric *metric, lst_error *err);
LST_MUST_USE lst_status train_log_valid(train_log *log, int64_t step, double valid_loss, lst_error *err);
void train_log_close(train_log *log); /* NULL is allowed */

/* A point of a curve. */
typedef struct train_point {
    double step, loss;
} train_point;

/* The curves of a file, thinned so that no more than TRAIN_MAX_POINTS remain (means of neighbours). */
#define TRAIN_MAX_POINTS 600
typedef struct train_metrics {
    size_t n_train, n_valid;
    train_point train[TRAIN_MAX_POINTS], valid[TRAIN_MAX_POINTS];
    double first_loss, last_loss; /* of single steps; NaN where there is none */
    double first_valid, last_valid, best_valid;
    double tokens_per_s; /* median would need all; the mean of the lines */
    uint64_t n_skipped;
    int64_t last_step;
} train_metrics;

LST_MUST_USE lst_status train_metrics_read(train_metrics *out, const char *path, lst_error *err);

#endif
