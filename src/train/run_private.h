/* SPDX-License-Identifier: MIT
 *
 * What run.c and checkpoint.c share about a run's folder.
 */
#ifndef LST_TRAIN_RUN_PRIVATE_H
#define LST_TRAIN_RUN_PRIVATE_H

#include "train/run.h"

/* Data, plan, pool and engine of a run; no weights yet, nothing written. */
LST_MUST_USE lst_status train__run_build(train_run **out, const train_settings *settings, const char *folder,
                                         lst_error *err);
LST_MUST_USE lst_status train__run_write_settings(const train_run *run, lst_error *err); /* and plan.json */
/* A small file, complete or not at all. */
LST_MUST_USE lst_status train__write_text(const char *path, const char *text, lst_error *err);
/* metrics.jsonl up to the step that the run is at. */
LST_MUST_USE lst_status train__run_open_log(train_run *run, lst_error *err);

#endif
