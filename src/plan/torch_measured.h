/* SPDX-License-Identifier: MIT
 *
 * Rows of published measurements (the columns of measured_memory.csv) as predictions. A row is refused, with the
 * reason, if a setting that decides bytes is not stated or not modelled.
 */
#ifndef LST_PLAN_TORCH_MEASURED_H
#define LST_PLAN_TORCH_MEASURED_H

#include "io/csv.h"
#include "leanstep/estimate.h"

typedef struct lst__measured {
    bool accepted;
    char reason[160];  /* why not */
    const char *group; /* "full", "LoRA", "QLoRA", "sharded", "kernel", "arena", "weights", "layer" */
    double predicted;  /* in the unit of `measured`: bytes, or a ratio for "layer" */
    double measured;
    bool is_run; /* `run` holds: the rows slopes can be taken between */
    lst_torch_run run;
} lst__measured;

LST_MUST_USE lst_status lst__measured_row(const lst_csv *csv, size_t row, lst__measured *out, lst_error *err);

#endif
