/* SPDX-License-Identifier: MIT
 *
 * The two pictures of report.html, as inline SVG: the loss curves, and the stacked memory of each phase.
 */
#include <math.h>
#include <string.h>

#include "train/report.h"

/* Plot area inside an 860 x 300 picture. */
enum { WIDTH = 860, LEFT = 56, RIGHT = 846, TOP = 14, BOTTOM = 260 };

typedef struct scale {
    double low, high; /* of the values */
    double from, to;  /* of the pixels */
} scale;

static double at(const scale *s, double value)
{
    return s->from + (value - s->low) / (s->high - s->low) * (s->to - s->from);
}

/* The round number (1, 2 or 5 times a power of ten) that cuts `range` into about n parts. */
static double tick_step(double range, int n)
{
    double raw = range / n, power = pow(10, floor(log10(raw)));
    double times = raw / power;
    return power * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static void open_svg(FILE *out, int height, const char *label)
{
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", WIDTH, height, label);
}

static void y_axis(FILE *out, const scale *y, double unit, const char *suffix)
{
    double step = tick_step((y->high - y->low) / unit, 5) * unit;
    for (double i = ceil(y->low / step - 1e-9), v = i * step + 0.0; v <= y->high + step * 1e-9; i += 1, v = i * step)
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%g%s</text>\n",
                LEFT, RIGHT, at(y, v), at(y, v), LEFT - 6, at(y, v) + 4, v == 0 ? 0.0 : v / unit, suffix);
}

static void polyline(FILE *out, const char *class, const train_point *points, size_t n, const scale *x, const scale *y)
{
    fprintf(out, "<polyline class=\"%s\" points=\"", class);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%.1f,%.1f ", at(x, points[i].step), at(y, points[i].loss));
    fputs("\"/>\n", out);
}

/* Running mean with a memory of about a fortieth of the curve: the eye's guide through noisy single steps. */
static size_t smooth(const train_point *points, size_t n, train_point *out)
{
    double keep = n > 40 ? 1 - 40.0 / (double)n : 0, weight = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum = keep * sum + (1 - keep) * points[i].loss;
        weight = keep * weight + (1 - keep);
        out[i] = (train_point){points[i].step, sum / weight};
    }
    return n;
}

static void widen(scale *s, const train_point *points, size_t n, bool loss)
{
    for (size_t i = 0; i < n; i++) {
        double v = loss ? points[i].loss : points[i].step;
        s->low = fmin(s->low, v);
        s->high = fmax(s->high, v);
    }
}

static void loss_legend(FILE *out, const train_metrics *curve)
{
    fprintf(
        out,
        "<text class=\"legend\" x=\"%d\" y=\"28\" text-anchor=\"end\"><tspan class=\"ink-train\">━ training</tspan>",
        RIGHT - 8);
    if (curve->n_valid)
        fputs("<tspan dx=\"14\" class=\"ink-valid\">● validation</tspan>", out);
    fputs("</text>\n", out);
}

void train__report_loss(FILE *out, const train_metrics *curve)
{
    if (curve->n_train == 0) {
        fputs("<p>No step was made.</p>\n", out);
        return;
    }
    scale x = {0, 1, LEFT, RIGHT}, y = {INFINITY, -INFINITY, BOTTOM, TOP};
    widen(&x, curve->train, curve->n_train, false);
    widen(&x, curve->valid, curve->n_valid, false);
    widen(&y, curve->train, curve->n_train, true);
    widen(&y, curve->valid, curve->n_valid, true);
    double margin = fmax((y.high - y.low) * 0.04, 1e-3);
    y.low -= margin;
    y.high += margin;
    open_svg(out, 300, "loss by step, training and validation");
    y_axis(out, &y, 1, "");
    double step = fmax(1, tick_step(x.high - x.low, 8));
    for (double v = 0; v <= x.high; v += step)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", at(&x, v), BOTTOM + 18, v);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n", (LEFT + RIGHT) / 2, BOTTOM + 36);
    train_point line[TRAIN_MAX_POINTS];
    polyline(out, "raw", curve->train, curve->n_train, &x, &y);
    polyline(out, "train", line, smooth(curve->train, curve->n_train, line), &x, &y);
    polyline(out, "valid", curve->valid, curve->n_valid, &x, &y);
    for (size_t i = 0; i < curve->n_valid; i++)
        fprintf(out,
                "<circle class=\"valid\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"><title>step %.0f: validation loss "
                "%.4f</title></circle>\n",
                at(&x, curve->valid[i].step), at(&y, curve->valid[i].loss), curve->n_valid > 80 ? 2.0 : 3.5,
                curve->valid[i].step, curve->valid[i].loss);
    loss_legend(out, curve);
    fputs("</svg>\n", out);
}

/* One phase's bar: buckets stacked from the bottom, and a mark where the ledger's own maximum stood. */
static void phase_bar(FILE *out, const lst_plan *plan, const lst_ledger *ledger, int phase, double left, double width,
                      const scale *y)
{
    uint64_t live[LST_N_BUCKETS];
    char name[64];
    lst_phase_name(plan->n_layers, phase, name, sizeof name);
    double mib = (double)lst_plan_live(plan, phase, live) / 1048576;
    uint64_t below = 0;
    fputs("<g>", out);
    for (int b = 0; b < LST_N_BUCKETS; b++) {
        double base = at(y, (double)below), top = at(y, (double)(below + live[b]));
        below += live[b];
        if (live[b])
            fprintf(out,
                    "<rect class=\"b%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>%s: %s %.2f MiB "
                    "of %.2f MiB</title></rect>",
                    b, left, top, width, base - top, name, lst_bucket_name((lst_bucket)b), (double)live[b] / 1048576,
                    mib);
    }
    if (ledger->phase_peak[phase])
        fprintf(out,
                "<line class=\"measured\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\"><title>%s: measured %.2f "
                "MiB</title></line>",
                left - 1, left + width + 1, at(y, (double)ledger->phase_peak[phase]),
                at(y, (double)ledger->phase_peak[phase]), name, (double)ledger->phase_peak[phase] / 1048576);
    fputs("</g>\n", out);
}

/* "load", "fwd 0", "loss", "bwd 3": short enough to stand below a bar. */
static void phase_label(const lst_plan *plan, int phase, char *out, size_t n)
{
    size_t layers = plan->n_layers;
    lst_phase_name(layers, phase, out, n);
    for (size_t i = 0; i < layers; i++) {
        if (phase == lst_phase_forward(i))
            snprintf(out, n, "fwd %zu", i);
        if (phase == lst_phase_backward(layers, i))
            snprintf(out, n, "bwd %zu", i);
    }
    if (phase == lst_phase_embed())
        snprintf(out, n, "embed");
    if (phase == lst_phase_embed_backward(layers))
        snprintf(out, n, "embed bwd");
}

static void phase_key(FILE *out, const lst_plan *plan)
{
    fputs("<p class=\"keys\">", out);
    for (int b = 0; b < LST_N_BUCKETS; b++)
        if (plan->bucket_bytes[b])
            fprintf(out, "<span><span class=\"key b%d\"></span>%s</span> ", b, lst_bucket_name((lst_bucket)b));
    fputs("<span><span class=\"key mark\"></span>measured</span></p>\n", out);
}

void train__report_phases(FILE *out, const lst_plan *plan, const lst_ledger *ledger)
{
    scale y = {0, (double)plan->peak_bytes * 1.05 + 1, BOTTOM, TOP};
    double unit = plan->peak_bytes >= (uint64_t)1 << 30 ? 1073741824.0
                  : plan->peak_bytes >= 1 << 20         ? 1048576.0
                                                        : 1024.0;
    open_svg(out, 330, "memory by phase, stacked by bucket");
    y_axis(out, &y, unit, unit > 2e6 ? " GiB" : unit > 2e3 ? " MiB" : " KiB");
    double slot = (double)(RIGHT - LEFT) / plan->n_phases, width = fmax(slot * 0.82, 0.5);
    for (int phase = 0; phase < plan->n_phases; phase++) {
        double left = LEFT + slot * phase + (slot - width) / 2;
        char label[64];
        phase_bar(out, plan, ledger, phase, left, width, &y);
        phase_label(plan, phase, label, sizeof label);
        if (slot >= 11)
            fprintf(
                out,
                "<text class=\"phase\" transform=\"translate(%.1f %d) rotate(-45)\" text-anchor=\"end\">%s</text>\n",
                left + width / 2 + 3, BOTTOM + 14, label);
    }
    fputs("</svg>\n", out);
    phase_key(out, plan);
    char name[64];
    lst_phase_name(plan->n_layers, plan->peak_phase, name, sizeof name);
    fprintf(out,
            "<p class=\"note\">Bars are the plan, phase by phase; the marks on top are what the run really held. The "
            "peak comes in the "
            "phase &ldquo;%s&rdquo;.</p>\n",
            name);
}
