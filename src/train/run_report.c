/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/memory.h"
#include "train/report.h"
#include "train/run.h"

static lst_status fill_and_write(const train_run *run, const char *sample, train_metrics *metrics, char **settings,
                                 lst_error *err)
{
    char *source = lst__path_join(run->folder, "metrics.jsonl"), *path = lst__path_join(run->folder, "report.html");
    const char *slash = strrchr(run->folder, '/');
    train_report report = {.title = slash && slash[1] ? slash + 1 : run->folder,
                           .curve = metrics,
                           .plan = run->plan,
                           .ledger = &run->engine->ledger,
                           .prompt = run->settings.prompt,
                           .sample = sample};
    lst_status status = source && path ? LST_OK : lst__fail_memory(err, "the report's name", strlen(run->folder) + 16);
    if (status == LST_OK)
        status = train_metrics_read(metrics, source, err);
    if (status == LST_OK)
        status = lst__memory_use(&report.memory, err);
    if (status == LST_OK)
        status = train_settings_write(&run->settings, settings, err);
    if (status == LST_OK) {
        report.settings = *settings;
        status = train_report_write(&report, path, err);
    }
    lst__free(source);
    lst__free(path);
    return status;
}

lst_status train_run_report(const train_run *run, const char *sample, lst_error *err)
{
    train_metrics *metrics = lst__alloc(1, sizeof *metrics);
    if (!metrics)
        return lst__fail_memory(err, "the loss curves", sizeof *metrics);
    char *settings = NULL;
    lst_status status = fill_and_write(run, sample, metrics, &settings, err);
    free(settings);
    lst__free(metrics);
    return status;
}
