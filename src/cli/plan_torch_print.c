/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "cli/plan_torch.h"
#include "cli/print.h"

/* ---- the estimate as a person reads it ---- */

static void print_row(FILE *out, const char *what, uint64_t bytes)
{
    char integer[32], binary[32], decimal[32];
    fprintf(out, "  %-32s %19s  %10s  %10s\n", what, cli_print_integer(integer, sizeof integer, bytes),
            cli_print_binary(binary, sizeof binary, bytes), cli_print_decimal(decimal, sizeof decimal, bytes));
}

static uint64_t bucket_bytes(const lst_estimate *e, const char *bucket)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < e->n_lines; i++) {
        if (strcmp(e->lines[i].bucket, bucket) == 0)
            sum += e->lines[i].bytes;
    }
    return sum;
}

static const char *const buckets[] = {"weights",     "gathered", "gradients", "state",   "step",
                                      "activations", "loss",     "data",      "overhead"};
#define N_BUCKETS (sizeof buckets / sizeof *buckets)

static void print_phases(FILE *out, const lst_estimate *e)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } marks[] = {{"after loading", e->after_load},
                 {"start of a step", e->steady.start},
                 {"after forward (logits)", e->steady.after_fwd},
                 {"after the loss", e->steady.after_loss},
                 {"highest in backward", e->steady.bwd_peak},
                 {"after backward", e->steady.after_bwd},
                 {"highest in the optimizer", e->steady.opt_peak},
                 {"first step's peak", e->first.peak}};
    fprintf(out, "\nBy phase (live tensors):\n");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        print_row(out, marks[i].name, marks[i].bytes);
    fprintf(out, "  backward is highest at: %s\n", e->steady.bwd_peak_at);
}

void cli_torch_print(FILE *out, const lst_torch_run *run, const lst_estimate *e)
{
    char integer[32];
    fprintf(out, "%s for PyTorch: an estimate%s\n", run->shape.name,
            e->uncertainty > 0 ? ", not what leanstep itself would take"
                               : " of tensor bytes, exact for float32 on a CPU");
    fprintf(out, "%s parameters", cli_print_integer(integer, sizeof integer, e->params));
    fprintf(out, ", %s trained\n\n", cli_print_integer(integer, sizeof integer, e->trainable));
    for (size_t i = 0; i < N_BUCKETS; i++) {
        if (bucket_bytes(e, buckets[i]))
            print_row(out, buckets[i], bucket_bytes(e, buckets[i]));
    }
    fprintf(out, "\n");
    print_row(out, "sum, as if all lived at once", e->sum_bytes);
    print_row(out, "peak of live tensors", e->steady.peak);
    fprintf(out, "  the peak comes in: %s\n", e->steady.peak_phase);
    if (run->gpu) {
        print_row(out, "on the device", e->device_bytes);
        fprintf(out, "  with rounding, cached blocks and context; give or take %.0f %%\n", 100 * e->uncertainty);
    }
    print_phases(out, e);
}

lst_status cli_torch_bucket(const char *bucket, lst_error *err)
{
    char list[160] = "";
    bool found = false;
    for (size_t i = 0; i < N_BUCKETS; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", buckets[i]);
        found = found || strcmp(buckets[i], bucket) == 0;
    }
    return found ? LST_OK : lst__fail(err, LST_ERR_ARGUMENT, "--explain %.40s: there are %s", bucket, list);
}

void cli_torch_explain(FILE *out, const lst_estimate *e, const char *bucket)
{
    fprintf(out, "\n%s:\n", bucket);
    for (size_t i = 0; i < e->n_lines; i++) {
        const lst_estimate_line *line = &e->lines[i];
        if (strcmp(line->bucket, bucket) == 0)
            fprintf(out, "  %16" PRIu64 "  %-46s %s\n", line->bytes, line->what, line->formula);
    }
    fprintf(out, "  %16" PRIu64 "  in all\n", bucket_bytes(e, bucket));
}

/* ---- as a program reads it ---- */

static json_t *step_json(const lst_torch_step *s)
{
    return json_pack("{sI sI sI sI sI sI sI sI sI sI ss ss}", "start_bytes", (json_int_t)s->start,
                     "after_forward_bytes", (json_int_t)s->after_fwd, "loss_peak_bytes", (json_int_t)s->loss_peak,
                     "after_loss_bytes", (json_int_t)s->after_loss, "backward_peak_bytes", (json_int_t)s->bwd_peak,
                     "after_backward_bytes", (json_int_t)s->after_bwd, "optimizer_peak_bytes", (json_int_t)s->opt_peak,
                     "after_optimizer_bytes", (json_int_t)s->after_opt, "end_bytes", (json_int_t)s->end, "peak_bytes",
                     (json_int_t)s->peak, "peak_phase", s->peak_phase, "backward_peak_at", s->bwd_peak_at);
}

json_t *cli_torch_json(const lst_torch_run *run, const lst_estimate *e, uint64_t limit)
{
    json_t *lines = json_array(), *sums = json_object();
    for (size_t i = 0; i < N_BUCKETS; i++)
        json_object_set_new(sums, buckets[i], json_integer((json_int_t)bucket_bytes(e, buckets[i])));
    for (size_t i = 0; i < e->n_lines; i++)
        json_array_append_new(lines, json_pack("{ss ss ss sI}", "bucket", e->lines[i].bucket, "what", e->lines[i].what,
                                               "formula", e->lines[i].formula, "bytes", (json_int_t)e->lines[i].bytes));
    const uint64_t need = cli_torch_need(run, e);
    return json_pack("{ss ss ss sI sI so so so so sI sI sI sI sI sI sf sI sb}", "schema", "leanstep.estimate.1", "for",
                     "torch", "model", run->shape.name, "parameters", (json_int_t)e->params, "trainable",
                     (json_int_t)e->trainable, "buckets", sums, "terms", lines, "first_step", step_json(&e->first),
                     "steady_step", step_json(&e->steady), "sum_bytes", (json_int_t)e->sum_bytes, "peak_bytes",
                     (json_int_t)e->steady.peak, "rounding_bytes", (json_int_t)e->rounding_bytes, "cache_bytes",
                     (json_int_t)e->cache_bytes, "context_bytes", (json_int_t)e->context_bytes, "needed_bytes",
                     (json_int_t)need, "uncertainty", e->uncertainty, "limit_bytes", (json_int_t)limit, "fits",
                     limit == 0 || need <= limit);
}

/* ---- one page, no network ---- */

static const char *const colours[N_BUCKETS] = {"#4269d0", "#97bbf5", "#efb118", "#ff725c", "#ffb3a7",
                                               "#6cc5b0", "#a463f2", "#9498a0", "#c9c9c9"};

static void html_bars(FILE *out, const lst_estimate *e, uint64_t limit)
{
    uint64_t all = 0, x = 0;
    for (size_t i = 0; i < N_BUCKETS; i++)
        all += bucket_bytes(e, buckets[i]);
    const uint64_t width = all > limit ? all : limit;
    fprintf(out, "<svg viewBox='0 0 1000 60' role='img' aria-label='bytes by bucket'>\n");
    for (size_t i = 0; i < N_BUCKETS; i++) {
        const uint64_t bytes = bucket_bytes(e, buckets[i]);
        if (!bytes)
            continue;
        fprintf(out,
                "<rect x='%.2f' y='8' width='%.2f' height='36' fill='%s'><title>%s: %" PRIu64 " bytes</title></rect>\n",
                1000.0 * (double)x / (double)width, 1000.0 * (double)bytes / (double)width, colours[i], buckets[i],
                bytes);
        x += bytes;
    }
    if (limit)
        fprintf(out,
                "<line x1='%.2f' x2='%.2f' y1='0' y2='60' stroke='#c00' stroke-width='3'><title>limit</title></line>\n",
                1000.0 * (double)limit / (double)width, 1000.0 * (double)limit / (double)width);
    fprintf(out, "</svg>\n<table>\n");
    for (size_t i = 0; i < N_BUCKETS; i++) {
        char text[100];
        if (bucket_bytes(e, buckets[i]))
            fprintf(out, "<tr><td><span style='background:%s'></span>%s</td><td>%s</td></tr>\n", colours[i], buckets[i],
                    cli_print_bytes(text, sizeof text, bucket_bytes(e, buckets[i])));
    }
    fprintf(out, "</table>\n");
}

static void html_page(FILE *out, const lst_torch_run *run, const lst_estimate *e, uint64_t limit)
{
    char text[100];
    fprintf(out,
            "<!doctype html>\n<html lang='en'><meta charset='utf-8'><title>Memory of a PyTorch run</title>\n"
            "<style>body{font:16px system-ui;max-width:60em;margin:2em auto;padding:0 1em}td{padding:.2em 1em .2em 0}"
            "td span{display:inline-block;width:.8em;height:.8em;margin-right:.5em}"
            ".n{text-align:right;font-variant-numeric:tabular-nums}</style>\n<h1>");
    for (const char *c = run->shape.name; *c; c++) /* a path is the user's text */
        fprintf(out, *c == '<' ? "&lt;" : *c == '&' ? "&amp;" : "%c", *c);
    fprintf(out, "</h1>\n<p>An estimate of a PyTorch run: batch %zu, sequence %zu. ", run->batch, run->seq);
    fprintf(out, "Peak of live tensors %s, in the %s phase; needed %s.</p>\n",
            cli_print_bytes(text, sizeof text, e->steady.peak), e->steady.peak_phase,
            cli_print_bytes((char[100]){0}, 100, cli_torch_need(run, e)));
    html_bars(out, e, limit);
    fprintf(out, "<h2>Terms</h2>\n<table>\n");
    for (size_t i = 0; i < e->n_lines; i++)
        fprintf(out, "<tr><td>%s</td><td>%s</td><td class='n'>%s</td><td>%s</td></tr>\n", e->lines[i].bucket,
                e->lines[i].what, cli_print_integer((char[40]){0}, 40, e->lines[i].bytes), e->lines[i].formula);
    fprintf(out, "</table>\n</html>\n");
}

lst_status cli_torch_html(const char *path, const lst_torch_run *run, const lst_estimate *e, uint64_t limit,
                          lst_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);
    if (!memory)
        return lst__fail_memory(err, path, 1);
    html_page(memory, run, e, limit);
    lst_status status = fclose(memory) == 0 ? LST_OK : lst__fail_memory(err, path, n);
    lst_writer *writer = NULL;
    if (status == LST_OK)
        status = lst__writer_open(&writer, path, err);
    if (status == LST_OK) {
        status = lst__writer_write(writer, text, n, err);
        if (status == LST_OK)
            status = lst__writer_commit(writer, err);
        else
            lst__writer_abort(writer);
    }
    free(text); /* open_memstream's own */
    return status;
}
