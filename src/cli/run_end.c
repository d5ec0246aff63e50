/* SPDX-License-Identifier: MIT
 *
 * A run carried out and accounted for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "cli/data_options.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/run_options.h"
#include "train/run_sample.h"

void cli_print_run(const train_run *run)
{
    const train_settings *s = &run->settings;
    cli_print_data(s->data, &run->data, &run->encoder, s->loss_all);
    printf("Run       %lld steps of %zu sequences x %zu tokens: %.3g epochs; %s, seed %llu\n",
           (long long)s->schedule.total_steps, train_run_sequences(run), s->recipe.seq,
           (double)s->schedule.total_steps * (double)train_run_sequences(run) / (double)run->data.train.n_sequences,
           s->from_weights ? "from the weights of the folder" : "from random weights", (unsigned long long)s->seed);
    printf("Folder    %s\n", run->folder);
    printf("Ready     %.2f s after the start, %.2f s of them for the weights\n", run->ready_seconds, run->load_seconds);
}

/* ---- memory ---- */

static void memory_row(const char *name, uint64_t planned, uint64_t measured)
{
    char a[32], b[32], readable[32];
    printf("  %-16s %16s %16s  %10s  %s\n", name, cli_print_integer(a, sizeof a, planned),
           cli_print_integer(b, sizeof b, measured), cli_print_binary(readable, sizeof readable, measured),
           planned == measured ? "equal" : "DIFFERS");
}

static void system_row(const char *name, uint64_t bytes, const char *note)
{
    char digits[32], readable[32];
    printf("  %-16s %16s %16s  %10s  %s\n", name, "", cli_print_integer(digits, sizeof digits, bytes),
           cli_print_binary(readable, sizeof readable, bytes), note);
}

void cli_print_memory(const train_run *run)
{
    const lst_plan *plan = run->plan;
    const lst_ledger *ledger = &run->engine->ledger;
    lst_memory_use use = {0};
    lst_error err;
    printf("\nMemory, bytes    %17s %16s\n", "planned", "measured");
    for (int b = 0; b < LST_N_BUCKETS; b++)
        if (plan->bucket_bytes[b] || ledger->peak[b])
            memory_row(lst_bucket_name((lst_bucket)b), plan->bucket_bytes[b], ledger->peak[b]);
    memory_row("peak", plan->peak_bytes, ledger->peak_total);
    system_row("arena", plan->arena_bytes, "the peak, aligned and packed: reserved once");
    if (lst__memory_use(&use, &err) != LST_OK) {
        printf("  the operating system's figures could not be had: %s\n", err.message);
        return;
    }
    system_row("system's peak", use.anon_peak_bytes, "anonymous memory of the process");
    system_row("outside the plan", train_run_outside(run, &use), "the program itself: libraries, stacks, tables");
}

/* ---- sample ---- */

/* The sample in fresh memory (lst__free), or NULL where none was asked for or could be had. */
static char *write_sample(const cli_args *args, train_run *run)
{
    data_text text = {0};
    lst_error err;
    if (run->settings.sample_tokens == 0)
        return NULL;
    lst_status status = train_run_sample(run, &text, &err);
    if (status == LST_OK)
        status = data_text_add(&text, "", 1, &err);
    if (status == LST_OK)
        return text.data;
    (void)cli_fail(args, &err);
    lst__free(text.data);
    return NULL;
}

/* ---- the end ---- */

static void print_losses(const train_run *run)
{
    char path[TRAIN_MAX_PATH + 16];
    train_metrics *m = lst__alloc(1, sizeof *m);
    snprintf(path, sizeof path, "%s/metrics.jsonl", run->folder);
    if (m && train_metrics_read(m, path, NULL) == LST_OK) {
        printf("\nLoss      first %.4f, last %.4f", m->first_loss, m->last_loss);
        if (!isnan(m->last_valid))
            printf("; validation first %.4f, last %.4f, best %.4f", m->first_valid, m->last_valid, m->best_valid);
        printf("; %.0f tokens/s\n", m->tokens_per_s);
        if (!isnan(m->last_valid))
            printf("          perplexity of the validation data: %.4g before, %.4g after, %.4g at best\n",
                   exp(m->first_valid), exp(m->last_valid), exp(m->best_valid));
        if (m->n_skipped)
            printf("          %llu steps skipped: numbers were not finite (metrics.jsonl names the tensors)\n",
                   (unsigned long long)m->n_skipped);
    }
    lst__free(m);
}

/* The sample and the report; what is printed, unless quiet. */
static int conclude(const cli_args *args, train_run *run, lst_status ended, bool quiet)
{
    lst_error err;
    if (!quiet) {
        print_losses(run);
        cli_print_memory(run);
    }
    char *sample = ended == LST_OK ? write_sample(args, run) : NULL;
    if (sample && !quiet)
        printf("\nSample%s\n%s%s\n", run->settings.prompt[0] ? " (the prompt first)" : "", run->settings.prompt,
               sample);
    int result = CLI_OK;
    if (train_run_report(run, sample, &err) != LST_OK)
        result = cli_fail(args, &err);
    lst__free(sample);
    if (!quiet)
        printf("\nThe run is in %s: report.html to look at, checkpoint-%08lld to load or go on from.\n", run->folder,
               (long long)run->saved_step);
    return result;
}

static int report_failure(const cli_args *args, const train_run *run, const lst_error *err)
{
    int result = cli_fail(args, err);
    if (run->saved_step >= 0)
        fprintf(stderr, "The checkpoint of step %lld is intact: `leanstep resume %s` goes on from it.\n",
                (long long)run->saved_step, run->folder);
    return result;
}

int cli_run(const cli_args *args, train_run *run)
{
    cli_progress progress;
    lst_error err;
    cli_interrupt_watch();
    cli_progress_start(&progress, (cli_progress_mode)cli_choice(args, "progress"));
    const bool quiet = progress.mode == CLI_PROGRESS_JSON;
    train_observer observer = cli_progress_observer(&progress);
    if (!quiet)
        cli_print_run(run);
    fflush(stdout);
    lst_status status = train_loop(run, &observer, &err);
    cli_progress_end(&progress);
    int result = CLI_OK;
    if (status == LST_OK || status == LST_ERR_INTERRUPTED)
        result = conclude(args, run, status, quiet);
    if (status == LST_ERR_INTERRUPTED) {
        fflush(stdout);
        fprintf(stderr, "leanstep %s: %s\n", args->command->name, err.message);
        result = 128 + cli_interrupt_signal();
    } else if (status != LST_OK) {
        result = report_failure(args, run, &err);
    }
    train_run_close(run);
    return result;
}
