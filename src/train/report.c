/* SPDX-License-Identifier: MIT */
#include "train/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/files.h"

/* Length of the well-formed UTF-8 sequence at p (0 if there is none). */
static size_t utf8_length(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    if (n == 0 || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || beyond ? 0 : n;
}

void train__report_text(FILE *out, const char *text)
{
    static const char *const entities[][2] = {{"<", "&lt;"}, {">", "&gt;"}, {"&", "&amp;"}, {"\"", "&quot;"}};
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = utf8_length(p), entity = 0;
        while (entity < 4 && *p != (unsigned char)entities[entity][0][0])
            entity++;
        if (n == 0 || (*p < 32 && *p != '\n' && *p != '\t') || *p == 127)
            fputs("&#xFFFD;", out);
        else if (entity < 4)
            fputs(entities[entity][1], out);
        else
            fwrite(p, 1, n, out);
        p += n ? n : 1;
    }
}

static const char *bytes_text(char *out, size_t n, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(out, n, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
    return out;
}

static void card(FILE *out, const char *label, const char *value, const char *note)
{
    fprintf(out,
            "<div class=\"card\"><div class=\"label\">%s</div><div class=\"value\">%s</div><div "
            "class=\"note\">%s</div></div>\n",
            label, value, note);
}

static void loss_card(FILE *out, const char *label, double first, double last)
{
    char value[64], note[96] = "";
    if (isnan(last)) {
        card(out, label, "–", "not measured");
        return;
    }
    snprintf(value, sizeof value, "%.4f", last);
    snprintf(note, sizeof note, "from %.4f; perplexity %.4g", first, exp(last));
    card(out, label, value, note);
}

static void put_cards(FILE *out, const train_report *r)
{
    char value[64], note[128], other[32];
    fputs("<section class=\"cards\">\n", out);
    loss_card(out, "Validation loss", r->curve->first_valid, r->curve->last_valid);
    loss_card(out, "Training loss", r->curve->first_loss, r->curve->last_loss);
    snprintf(value, sizeof value, "%.0f", r->curve->tokens_per_s);
    snprintf(note, sizeof note, "over %lld steps on %zu threads", (long long)r->curve->last_step,
             r->plan->recipe.threads);
    card(out, "Tokens per second", value, note);
    bytes_text(value, sizeof value, r->plan->arena_bytes);
    snprintf(note, sizeof note, "reserved once; the system saw %s at most",
             bytes_text(other, sizeof other, r->memory.anon_peak_bytes));
    card(out, "Memory of the run", value, note);
    fputs("</section>\n", out);
}

static void number_cell(FILE *out, uint64_t bytes)
{
    char digits[32], grouped[48];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)bytes);
    size_t n = strlen(digits), at = 0;
    for (size_t i = 0; i < n; i++) {
        grouped[at++] = digits[i];
        if ((n - i - 1) % 3 == 0 && i + 1 < n)
            grouped[at++] = ',';
    }
    grouped[at] = '\0';
    fprintf(out, "<td class=\"num\">%s</td>", grouped);
}

static void compare_row(FILE *out, const char *key, const char *name, uint64_t planned, uint64_t measured)
{
    char text[32];
    fprintf(out, "<tr><td>%s%s</td>", key, name);
    number_cell(out, planned);
    number_cell(out, measured);
    fprintf(out, "<td class=\"num\">%s</td><td class=\"%s</td></tr>\n", bytes_text(text, sizeof text, measured),
            planned == measured ? "ok\">equal" : "bad\">differs");
}

static void system_row(FILE *out, const char *name, const char *note, uint64_t bytes)
{
    char text[32];
    fprintf(out, "<tr><td>%s</td><td></td>", name);
    number_cell(out, bytes);
    fprintf(out, "<td class=\"num\">%s</td><td>%s</td></tr>\n", bytes_text(text, sizeof text, bytes), note);
}

static void put_comparison(FILE *out, const train_report *r)
{
    fputs("<section><h2>Plan against what happened</h2>\n<div class=\"wide\"><table><thead><tr><th>bucket, most at one "
          "moment</th>"
          "<th class=\"num\">planned bytes</th><th class=\"num\">measured "
          "bytes</th><th></th><th></th></tr></thead><tbody>\n",
          out);
    for (int b = 0; b < LST_N_BUCKETS; b++)
        if (r->plan->bucket_bytes[b] || r->ledger->peak[b]) {
            char key[64];
            snprintf(key, sizeof key, "<span class=\"key b%d\"></span>", b);
            compare_row(out, key, lst_bucket_name((lst_bucket)b), r->plan->bucket_bytes[b], r->ledger->peak[b]);
        }
    compare_row(out, "", "<strong>peak</strong> of all buckets together", r->plan->peak_bytes, r->ledger->peak_total);
    fputs("</tbody><tbody>\n", out);
    system_row(out, "arena", "the peak, aligned and packed: what the run reserved", r->plan->arena_bytes);
    system_row(out, "anonymous memory, as the system saw it", "peak of the process", r->memory.anon_peak_bytes);
    uint64_t outside =
        r->memory.anon_peak_bytes > r->plan->arena_bytes ? r->memory.anon_peak_bytes - r->plan->arena_bytes : 0;
    system_row(out, "outside the plan", "the program itself: libraries, thread stacks, tables", outside);
    system_row(out, "file-backed memory", "program code and file cache; the system can take it back",
               r->memory.file_bytes);
    fputs("</tbody></table></div></section>\n", out);
}

static void put_page(FILE *out, const train_report *r)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Leanstep: ",
          out);
    train__report_text(out, r->title);
    fputs("</title>\n", out);
    train__report_style(out);
    fputs("</head><body><main>\n<header><h1>", out);
    train__report_text(out, r->title);
    fprintf(out,
            "</h1><p>%s, %.3g million parameters, %s with %s weights; batch %zu × %zu tokens × %zu.</p></header>\n",
            lst_family_name(r->plan->arch.family), (double)r->plan->n_params / 1e6, lst_rule_name(r->plan->recipe.rule),
            lst_weight_form_name(r->plan->recipe.weights), r->plan->recipe.batch, r->plan->recipe.seq,
            r->plan->recipe.accumulation);
    put_cards(out, r);
    fputs("<section><h2>Loss</h2>\n", out);
    train__report_loss(out, r->curve);
    fputs("</section>\n<section><h2>Memory through one step</h2>\n", out);
    train__report_phases(out, r->plan, r->ledger);
    fputs("</section>\n", out);
    put_comparison(out, r);
    if (r->sample) {
        fputs("<section><h2>A sample</h2>\n<pre class=\"sample\"><b>", out);
        train__report_text(out, r->prompt);
        fputs("</b>", out);
        train__report_text(out, r->sample);
        fputs("</pre></section>\n", out);
    }
    fputs("<section><h2>Settings</h2>\n<details><summary>settings.json</summary><pre>", out);
    train__report_text(out, r->settings);
    fputs("</pre></details></section>\n<footer>Written by Leanstep. This page is one file and needs no "
          "network.</footer>\n"
          "</main></body></html>\n",
          out);
}

lst_status train_report_write(const train_report *report, const char *path, lst_error *err)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);
    if (!out)
        return lst__fail(err, LST_ERR_MEMORY, "no memory for the report");
    put_page(out, report);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return lst__fail(err, LST_ERR_MEMORY, "no memory for the report");
    }
    lst_writer *writer;
    lst_status status = lst__writer_open(&writer, path, err);
    if (status == LST_OK && (status = lst__writer_write(writer, text, n_bytes, err)) == LST_OK)
        status = lst__writer_commit(writer, err);
    else if (status != LST_OK)
        lst__writer_abort(writer);
    free(text);
    return status;
}
