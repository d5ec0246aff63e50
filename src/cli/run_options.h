/* SPDX-License-Identifier: MIT
 *
 * What `train` and `resume` share: options of the run itself, how a run is carried out, and what is said at its end.
 */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "cli/args.h"
#include "cli/progress.h"
#include "train/run.h"

/* Data, length, schedule, validation, checkpoints, sample: a table for `train`, under the title "Run". */
extern const cli_option cli_run_options[];

/* Fills in settings from the table; model, arch and recipe are the caller's. */
LST_MUST_USE lst_status cli_run_settings(const cli_args *args, train_settings *settings, lst_error *err);
/* An absolute path; a path that is not there stays as it is (whoever opens it says so). */
LST_MUST_USE lst_status cli_absolute(const char *path, char *out, size_t n, lst_error *err);

/* Trains to the end, prints what came of it, writes the report. Closes the run. Returns the exit status: CLI_OK,
 * CLI_FAILED, or 128 + signal for a run that was stopped. */
int cli_run(const cli_args *args, train_run *run);

/* The text, the length and the schedule, in three lines, before the first step. */
void cli_print_run(const train_run *run);
/* Plan, ledger and operating system side by side. */
void cli_print_memory(const train_run *run);

#endif
