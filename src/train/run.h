/* SPDX-License-Identifier: MIT
 *
 * A run: settings, data, plan and engine together, and the folder that it leaves behind.
 *
 *     RUN/settings.json        what was asked, defaults resolved
 *     RUN/plan.json            what every bucket and phase takes
 *     RUN/metrics.jsonl        a line a step
 *     RUN/report.html          to be looked at
 *     RUN/tokenizer.json, ...  the tokenizer's files, where there is a tokenizer; each checkpoint has them too
 *     RUN/checkpoint-00000200/ config.json, model.safetensors, optimizer.safetensors
 */
#ifndef LST_TRAIN_RUN_H
#define LST_TRAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "data/encoder.h"
#include "leanstep/status.h"
#include "train/engine.h"
#include "train/metrics.h"
#include "train/settings.h"

typedef struct train_run {
    train_settings settings;
    char folder[TRAIN_MAX_PATH];
    char store[TRAIN_MAX_PATH]; /* where the store of tokens lies */
    data_encoder encoder;
    data_set data;
    lst_plan *plan;
    lst_pool *pool;
    train_engine *engine;
    train_log *log;
    int64_t step;                       /* optimizer steps done (skipped ones count: their data are used up) */
    uint64_t tokens;                    /* trained on */
    int64_t saved_step;                 /* of the newest checkpoint; -1: none */
    double last_valid;                  /* NaN before the first validation */
    double seconds;                     /* spent in steps by this process */
    double ready_seconds, load_seconds; /* from the call to the first step; of them for weights and state */
} train_run;

/* A new run: reads the data, plans, checks the memory limit, reserves the arena, draws or loads the first weights, and
 * makes the folder. A folder that exists already is refused; on any failure none is left behind. */
LST_MUST_USE lst_status train_run_start(train_run **out, const train_settings *settings, const char *folder,
                                        lst_error *err);

/* What resuming may change. */
typedef struct train_changes {
    int64_t total_steps; /* 0: as before */
    size_t threads;      /* 0: as before */
    const char *data;    /* where the data are now; NULL: where they were. They must be the same data */
} train_changes;

/* Goes on from the newest checkpoint of a run's folder, bit for bit. Data or model that are not the run's own are
 * refused. */
LST_MUST_USE lst_status train_run_resume(train_run **out, const char *folder, const train_changes *changes,
                                         lst_error *err);
void train_run_close(train_run *run); /* NULL is allowed */

/* One step; the line in metrics.jsonl is written. */
LST_MUST_USE lst_status train_run_step(train_run *run, train_step *out, lst_error *err);
/* Mean loss over the fixed validation sequences; its exponential is the perplexity. */
LST_MUST_USE lst_status train_run_validate(train_run *run, double *loss, lst_error *err);
/* A checkpoint of now; older ones beyond settings.keep are removed once it is complete. */
LST_MUST_USE lst_status train_run_save(train_run *run, lst_error *err);

/* Writes report.html from what the run has done so far. `sample` is text that the model wrote after settings.prompt, or
 * NULL. */
LST_MUST_USE lst_status train_run_report(const train_run *run, const char *sample, lst_error *err);

/* Sequences a step: batch * accumulation. */
size_t train_run_sequences(const train_run *run);
/* Epochs done so far, as a fraction. */
double train_run_epochs(const train_run *run);
/* Bytes of the machine's memory outside the arena, at most so far. */
uint64_t train_run_outside(const train_run *run, const lst_memory_use *use);

#endif
