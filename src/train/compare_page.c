/* SPDX-License-Identifier: MIT
 *
 * compare.html: the frontier drawn, bytes a parameter against validation loss, and the table under it. One file, no
 * network, light and dark.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/files.h"
#include "train/compare.h"
#include "train/report.h"
#include "train/run_private.h"

enum { WIDTH = 860, HEIGHT = 430, LEFT = 64, RIGHT = 790, TOP = 26, BOTTOM = 376 };

/* Beyond this difference a point is drawn at the upper edge, so that it does not squeeze the others. */
#define MOST_PERCENT 4.0
/* What counts as no worse, where the first recipe's own spread over seeds is not larger. */
#define LEAST_BAND 0.5

typedef struct point {
    double x, y;                   /* pixels */
    double bytes, percent, spread; /* spread: NaN where there is one seed */
    bool beyond, best;             /* best: nothing takes as few bytes and learns as well */
    const char *name;
    double label_y;
    bool label_left;
} point;

typedef struct frame {
    double bytes_low, bytes_high, low, high; /* low, high: percent */
    double band;                             /* percent: the first recipe's spread over seeds, at least LEAST_BAND */
    size_t n;
    point points[TRAIN_MAX_CONTENDERS];
} frame;

static double x_of(const frame *f, double bytes)
{
    return LEFT + (bytes - f->bytes_low) / (f->bytes_high - f->bytes_low) * (RIGHT - LEFT);
}

static double y_of(const frame *f, double percent)
{
    return BOTTOM - (percent - f->low) / (f->high - f->low) * (BOTTOM - TOP);
}

static void collect(frame *f, const train_compare *c, const train_standing *standings)
{
    *f = (frame){.bytes_low = INFINITY, .band = LEAST_BAND};
    for (size_t i = 0; i < c->n_contenders; i++)
        if (standings[i].contender == 0 && isfinite(standings[i].loss_spread))
            f->band = fmax(f->band, 100 * standings[i].loss_spread / standings[i].loss);
    f->low = -f->band;
    f->high = f->band;
    for (size_t i = 0; i < c->n_contenders; i++) {
        const train_standing *s = &standings[i];
        if (!s->trial || isnan(s->percent))
            continue;
        point *p = &f->points[f->n++];
        *p = (point){.bytes = (double)s->trial->fixed_bytes / (double)s->trial->params,
                     .percent = s->percent,
                     .spread = s->percent_spread,
                     .beyond = s->percent > MOST_PERCENT,
                     .name = c->contenders[s->contender].name};
        f->bytes_low = fmin(f->bytes_low, p->bytes);
        f->bytes_high = fmax(f->bytes_high, p->bytes);
        if (p->beyond)
            continue;
        const double reach = isfinite(p->spread) ? p->spread : 0;
        f->low = fmin(f->low, p->percent - reach);
        f->high = fmax(f->high, p->percent + reach);
    }
    f->bytes_low = fmax(0, floor(f->bytes_low - 0.6));
    f->bytes_high = ceil(f->bytes_high + 0.6);
    const double margin = (f->high - f->low) * 0.09;
    f->low -= margin;
    f->high += 2 * margin; /* room for those beyond */
}

static void find_best(frame *f)
{
    for (size_t i = 0; i < f->n; i++) {
        f->points[i].best = !f->points[i].beyond;
        for (size_t k = 0; k < f->n; k++)
            if (f->points[k].bytes <= f->points[i].bytes && f->points[k].percent < f->points[i].percent)
                f->points[i].best = false;
    }
}

static int by_height(const void *left, const void *right)
{
    const point *a = left, *b = right;
    return a->y < b->y ? -1 : a->y > b->y;
}

/* Labels stand right of their points (left of them at the right edge), and move down where another is in the way. */
static void place_labels(frame *f)
{
    for (size_t i = 0; i < f->n; i++) {
        point *p = &f->points[i];
        p->x = x_of(f, p->bytes);
        p->y = p->beyond ? TOP + 4 : y_of(f, p->percent);
    }
    qsort(f->points, f->n, sizeof *f->points, by_height);
    for (size_t i = 0; i < f->n; i++) {
        point *p = &f->points[i];
        const double width = 6.6 * (double)strlen(p->name) + (p->beyond ? 60 : 0);
        p->label_left = p->x + 12 + width > WIDTH - 4;
        p->label_y = p->y + 4;
        for (size_t k = 0; k < i; k++) {
            const point *q = &f->points[k];
            const double theirs = 6.6 * (double)strlen(q->name) + (q->beyond ? 60 : 0);
            const double from = p->label_left ? p->x - width - 12 : p->x, to = p->label_left ? p->x : p->x + width + 12;
            const double q_from = q->label_left ? q->x - theirs - 12 : q->x,
                         q_to = q->label_left ? q->x : q->x + theirs + 12;
            if (from < q_to && q_from < to && fabs(p->label_y - q->label_y) < 14)
                p->label_y = q->label_y + 14;
        }
    }
}

static double tick(double range, int n)
{
    const double raw = range / n, power = pow(10, floor(log10(raw))), times = raw / power;
    return power * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static void axes(FILE *out, const frame *f)
{
    const double step = tick(f->high - f->low, 6), bytes_step = tick(f->bytes_high - f->bytes_low, 9);
    fprintf(out, "<rect class=\"band\" x=\"%d\" width=\"%d\" y=\"%.1f\" height=\"%.1f\"/>\n", LEFT, RIGHT - LEFT,
            y_of(f, f->band), y_of(f, -f->band) - y_of(f, f->band));
    for (double i = ceil(f->low / step); i * step <= f->high; i++)
        fprintf(out,
                "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%s%g %%</text>\n",
                i == 0 ? "zero" : "grid", LEFT, RIGHT, y_of(f, i * step), y_of(f, i * step), LEFT - 6,
                y_of(f, i * step) + 4, i > 0 ? "+" : "", i == 0 ? 0.0 : i * step);
    for (double v = ceil(f->bytes_low / bytes_step) * bytes_step; v <= f->bytes_high; v += bytes_step)
        fprintf(out,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%g</text>\n",
                x_of(f, v), x_of(f, v), TOP, BOTTOM, x_of(f, v), BOTTOM + 18, v);
    fprintf(out,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">bytes a parameter: weights + kept gradients + optimizer "
            "state</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 40);
    fprintf(out, "<text x=\"%d\" y=\"%d\">validation loss, against the first recipe (lower is better)</text>\n", LEFT,
            TOP - 10);
}

static int by_bytes(const void *left, const void *right)
{
    const point *a = left, *b = right;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static void draw(FILE *out, frame *f)
{
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"bytes a parameter against validation loss\">\n",
            WIDTH, HEIGHT);
    axes(out, f);
    fputs("<polyline class=\"frontier\" points=\"", out);
    qsort(f->points, f->n, sizeof *f->points, by_bytes);
    for (size_t i = 0; i < f->n; i++)
        if (f->points[i].best)
            fprintf(out, "%.1f,%.1f ", f->points[i].x, f->points[i].y);
    fputs("\"/>\n", out);
    for (size_t i = 0; i < f->n; i++) {
        const point *p = &f->points[i];
        const char *class = p->best ? "best" : "other";
        if (!p->beyond && isfinite(p->spread) && p->spread > 0)
            fprintf(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", class, p->x, p->x,
                    y_of(f, p->percent - p->spread), y_of(f, p->percent + p->spread));
        if (p->beyond)
            fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f l6 10 h-12 z\">", class, p->x, p->y - 5);
        else
            fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5.5\">", class, p->x, p->y);
        fprintf(out, "<title>%s: %.3f bytes a parameter, %+.2f %%</title>%s", p->name, p->bytes, p->percent,
                p->beyond ? "</path>" : "</circle>");
        fprintf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s",
                p->x + (p->label_left ? -11 : 11), p->label_y, p->label_left ? "end" : "start", p->name);
        if (p->beyond)
            fprintf(out, " (%+.0f %%)", p->percent);
        fputs("</text>\n", out);
    }
    fputs("</svg>\n", out);
}

/* ---- the table ---- */

static void cell(FILE *out, double value, const char *format)
{
    fputs("<td class=\"num\">", out);
    if (isfinite(value))
        fprintf(out, format, value); /* NOLINT: formats are ours */
    else
        fputs("–", out);
    fputs("</td>", out);
}

static void row(FILE *out, const train_compare *c, const train_standing *s)
{
    const train_trial *t = s->trial;
    const double n = t ? (double)t->params : 1;
    fprintf(out, "<tr><td>%s</td>", c->contenders[s->contender].name);
    cell(out, t ? (double)t->fixed_bytes / n : NAN, "%.3f");
    cell(out, t ? (double)t->state_bytes / n : NAN, "%.3f");
    cell(out, t ? (double)t->fixed_bytes / 1048576 : NAN, "%.2f");
    fprintf(out, "<td class=\"%s</td>", !t ? "\">–" : t->as_planned ? "ok\">equal" : "bad\">differs");
    cell(out, s->step_ms, "%.1f");
    cell(out, s->lr, s->at_end ? "%.3g (end)" : "%.3g");
    cell(out, s->loss, "%.4f");
    cell(out, s->loss_spread, "%.4f");
    cell(out, s->percent, "%+.2f %%");
    cell(out, s->percent_spread, "%.2f %%");
    fprintf(out, "<td class=\"num\">%zu</td></tr>\n", s->n_seeds);
}

static void style(FILE *out)
{
    fputs("<style>.frontier{stroke:var(--ok);stroke-width:2;stroke-dasharray:5 4}circle.best,path.best{fill:var(--ok)}"
          "circle.other,path.other{fill:var(--soft)}line.best{stroke:var(--ok);stroke-width:1.6}"
          "line.other{stroke:var(--soft);stroke-width:1.6}.band{fill:var(--ok);opacity:.09}"
          "svg text.name{fill:var(--ink);font-size:12.5px;paint-order:stroke;stroke:var(--card);stroke-width:4px}"
          ".zero{stroke:var(--ink);stroke-width:1.4}.lead{font-size:1.15rem;margin:0 0 1rem}"
          "table{font-size:13px}th,td{padding:6px 7px}td:first-child{white-space:nowrap}</style>\n",
          out);
}

/* The fewest bytes that learn as well as the first recipe, in a sentence. */
static void lead(FILE *out, const frame *f, const train_compare *c)
{
    const point *fewest = NULL, *first = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const point *p = &f->points[i];
        if (strcmp(p->name, c->contenders[0].name) == 0)
            first = p;
        if (p->percent <= f->band && (!fewest || p->bytes < fewest->bytes))
            fewest = p;
    }
    if (!first || !fewest)
        return;
    fprintf(out, "<p class=\"lead\"><b>%s</b> takes %.2f bytes a parameter ", fewest->name, fewest->bytes);
    if (fewest == first)
        fputs("and no recipe with fewer learns as well.</p>\n", out);
    else
        fprintf(out, "where %s takes %.2f, and learns as well: %+.2f %% of its validation loss.</p>\n", first->name,
                first->bytes, fewest->percent);
}

static void put_page(FILE *out, const train_compare *c, const train_standing *standings)
{
    const train_settings *s = &c->base;
    const double tokens =
        (double)s->schedule.total_steps * (double)(s->recipe.batch * s->recipe.accumulation * s->recipe.seq);
    static frame f;
    collect(&f, c, standings);
    find_best(&f);
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Leanstep: what the bytes "
          "buy</title>\n",
          out);
    train__report_style(out);
    style(out);
    fputs("</head><body><main>\n<header><h1>What the bytes buy</h1><p>", out);
    train__report_text(out, s->model);
    fprintf(out,
            ", %lld steps, %.3g million tokens a trial, %zu seed%s; each recipe at its best of at least %zu learning "
            "rates.</p></header>\n<section>\n",
            (long long)s->schedule.total_steps, tokens / 1e6, c->n_seeds, c->n_seeds == 1 ? "" : "s", c->n_rates);
    if (f.n > 0) {
        lead(out, &f, c);
        place_labels(&f);
        draw(out, &f);
    }
    fputs("<p class=\"keys\"><span><span class=\"key\" style=\"background:var(--ok)\"></span>on the frontier: nothing "
          "takes as few bytes and learns better</span><span><span class=\"key\" "
          "style=\"background:var(--soft)\"></span>behind it</span><span>bars: ± seeds; the band: no worse than seeds "
          "differ, or 0.5 %</span></p></section>\n<section><h2>Recipes</h2>\n"
          "<div class=\"wide\"><table><thead><tr><th>recipe</th><th class=\"num\">bytes/param</th>"
          "<th class=\"num\">state</th><th class=\"num\">fixed MiB</th><th>plan</th>"
          "<th class=\"num\">ms/step</th><th class=\"num\">rate</th><th class=\"num\">validation loss</th>"
          "<th class=\"num\">± seeds</th><th class=\"num\">to first</th><th class=\"num\">± seeds</th>"
          "<th class=\"num\">seeds</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < c->n_contenders; i++)
        row(out, c, &standings[i]);
    fprintf(out,
            "</tbody></table></div>\n<p class=\"note\">Differences are taken seed by seed against %s, so that what a "
            "seed does to both cancels; ± is the standard deviation over seeds. The rate is chosen by the first "
            "seed.</p></section>\n<footer>Written by Leanstep. This page is one file and needs no network.</footer>\n"
            "</main></body></html>\n",
            c->contenders[0].name);
}

lst_status train__compare_page(const train_compare *c, const train_standing *standings, const char *path,
                               lst_error *err)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);
    if (!out)
        return lst__fail(err, LST_ERR_MEMORY, "no memory for the page");
    put_page(out, c, standings);
    const bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return lst__fail(err, LST_ERR_MEMORY, "no memory for the page");
    }
    lst_status status = train__write_text(path, text, err);
    free(text);
    return status;
}
