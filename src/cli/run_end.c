/* SPDX-License-Identifier: MIT
 *
 * A run carried out and accounted for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/run_options.h"
#include "train/folder_tokenizer.h"
#include "train/sample.h"
#include "train/write.h"

void cli_print_run(const train_run *run)
{
    const train_settings *s = &run->settings;
    char skipped[160], number[32], other[32];
    data_skipped_text(&run->corpus.skipped, skipped, sizeof skipped);
    printf("Text      %s: %zu document%s, %s bytes (skipped: %s)\n", s->data, run->corpus.n_files,
           run->corpus.n_files == 1 ? "" : "s", cli_print_integer(number, sizeof number, run->corpus.n_bytes), skipped);
    printf("          %s tokens to train on, %s for validation%s\n",
           cli_print_integer(number, sizeof number, run->split.train.n_tokens),
           cli_print_integer(other, sizeof other, run->split.valid.n_tokens),
           run->split.n_shared ? " (the end of the longest document)" : "");
    printf("Run       %lld steps of %zu sequences x %zu tokens: %.3g epochs; %s, seed %llu\n",
           (long long)s->schedule.total_steps, train_run_sequences(run), s->recipe.seq,
           (double)s->schedule.total_steps * (double)train_run_sequences(run) / (double)run->train.n_sequences,
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

typedef struct text {
    char *bytes;
    size_t n, room;
} text;

static void on_byte(void *user, char byte)
{
    text *t = user;
    if (t->n + 1 < t->room)
        t->bytes[t->n++] = byte;
}

static void on_text(void *user, const char *bytes, size_t n)
{
    text *t = user;
    if (n >= t->room - t->n)
        return;
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
}

/* The prompt, or the end of a document, which is what stands before the next. */
static lst_status sample_tokens(train_run *run, const model_sampling *sampling, text *t, lst_error *err)
{
    data_tokenizer *tokenizer;
    data_ids ids = {0};
    int32_t end;
    const char *prompt = run->settings.prompt;
    lst_status status = train_folder_tokenizer(&tokenizer, &end, run->folder, &run->settings.arch, err);
    if (status != LST_OK)
        return status;
    train_writer writer = {.tokenizer = tokenizer, .on_text = on_text, .user = t};
    train_stops_add(&writer.stops, end);
    if (prompt[0])
        status = data_tokenizer_encode(tokenizer, prompt, strlen(prompt), true, &ids, err);
    if (status == LST_OK)
        status = train_write(run->engine->model, ids.n ? ids.ids : &end, ids.n ? ids.n : 1, sampling, &writer, err);
    lst__free(ids.ids);
    data_tokenizer_free(tokenizer);
    return status;
}

static lst_status sample(train_run *run, const model_sampling *sampling, text *t, lst_error *err)
{
    if (run->corpus.tokens)
        return sample_tokens(run, sampling, t, err);
    return train_sample(run->engine->model, run->settings.prompt, sampling, on_byte, t, err);
}

/* A token spells a few bytes; what is beyond the room is left out. */
#define BYTES_A_TOKEN 16

/* The sample in fresh memory (lst__free), or NULL where none was asked for or could be had. */
static char *write_sample(const cli_args *args, train_run *run)
{
    const train_settings *s = &run->settings;
    if (s->sample_tokens == 0)
        return NULL;
    const size_t room = s->sample_tokens * (run->corpus.tokens ? BYTES_A_TOKEN : 1) + 1;
    text t = {lst__alloc(room, 1), 0, room};
    model_sampling sampling = {
        .max_tokens = s->sample_tokens, .temperature = s->temperature, .top_k = s->top_k, .seed = s->seed};
    lst_error err = {.message = "no memory for the sample"};
    if (!t.bytes || sample(run, &sampling, &t, &err) != LST_OK) {
        (void)cli_fail(args, &err);
        lst__free(t.bytes);
        return NULL;
    }
    return t.bytes;
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
        if (run->corpus.tokens && !isnan(m->last_valid))
            printf("          perplexity of the validation text: %.2f before, %.2f after\n", exp(m->first_valid),
                   exp(m->last_valid));
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
    char *written = ended == LST_OK ? write_sample(args, run) : NULL;
    if (written && !quiet)
        printf("\nSample%s\n%s%s\n", run->settings.prompt[0] ? " (the prompt first)" : "", run->settings.prompt,
               written);
    int result = CLI_OK;
    if (train_run_report(run, written, &err) != LST_OK)
        result = cli_fail(args, &err);
    lst__free(written);
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
