/* SPDX-License-Identifier: MIT
 *
 * report.html: what a run was and did, in one file that needs no network: loss curves, memory by bucket and phase, the
 * plan beside what was measured, the settings and a sample.
 */
#ifndef LST_TRAIN_REPORT_H
#define LST_TRAIN_REPORT_H

#include <stdio.h>

#include "base/memory.h"
#include "leanstep/ledger.h"
#include "leanstep/plan.h"
#include "leanstep/status.h"
#include "train/metrics.h"

typedef struct train_report {
    const char *title;          /* the run folder's name */
    const char *settings;       /* settings.json's text */
    const train_metrics *curve; /* of the whole run, resumed parts included */
    const lst_plan *plan;
    const lst_ledger *ledger;
    lst_memory_use memory;
    const char *prompt, *sample; /* NULL: no sample */
} train_report;

LST_MUST_USE lst_status train_report_write(const train_report *report, const char *path, lst_error *err);

/* ---- the parts, each printing one piece of the page ---- */
void train__report_loss(FILE *out, const train_metrics *curve);
void train__report_phases(FILE *out, const lst_plan *plan, const lst_ledger *ledger);
void train__report_style(FILE *out);

/* Text with <, >, & and quotes as entities; bytes that are not UTF-8 become U+FFFD. */
void train__report_text(FILE *out, const char *text);

#endif
