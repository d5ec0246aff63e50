/* SPDX-License-Identifier: MIT
 *
 * The look of report.html. Colours are variables with a light and a dark set, one for each bucket (class b0 is the
 * first of LST_BUCKET_LIST): weights blue, gradients orange, state greens, activations reds, the rest greys.
 */
#include "leanstep/ledger.h"
#include "train/report.h"

/* In light mode, in dark mode. A rule keeps two or three of the state's buckets at most, so their greens may repeat. */
static const char *const bucket_colours[LST_N_BUCKETS][2] = {
    [LST_BUCKET_WEIGHTS] = {"#3b6fd4", "#6d9bf1"},        [LST_BUCKET_MASTER] = {"#7f56c9", "#a98aea"},
    [LST_BUCKET_GRADIENTS] = {"#e08a1e", "#f0a84a"},      [LST_BUCKET_MOMENTUM_BUFFER] = {"#2f9e6e", "#54c796"},
    [LST_BUCKET_EXP_AVG] = {"#2f9e6e", "#54c796"},        [LST_BUCKET_EXP_AVG_SQ] = {"#7dbb42", "#a3d86f"},
    [LST_BUCKET_MAX_EXP_AVG_SQ] = {"#bfae2f", "#dccd57"}, [LST_BUCKET_EXP_AVG_SQ_ROW] = {"#7dbb42", "#a3d86f"},
    [LST_BUCKET_EXP_AVG_SQ_COL] = {"#bfae2f", "#dccd57"}, [LST_BUCKET_SQUARE_AVG] = {"#7dbb42", "#a3d86f"},
    [LST_BUCKET_GRAD_AVG] = {"#bfae2f", "#dccd57"},       [LST_BUCKET_Z] = {"#2f9e6e", "#54c796"},
    [LST_BUCKET_AVERAGING] = {"#bfae2f", "#dccd57"},      [LST_BUCKET_ACTIVATIONS] = {"#d2504f", "#ec7a78"},
    [LST_BUCKET_LOSS] = {"#c2519c", "#e180c0"},           [LST_BUCKET_WORKSPACE] = {"#8a8f98", "#7d838d"},
    [LST_BUCKET_DATA] = {"#2aa0ad", "#55c5d1"},
};

static void colours(FILE *out, int mode)
{
    for (int b = 0; b < LST_N_BUCKETS; b++) {
        const char *colour = bucket_colours[b][mode];
        fprintf(out, "--b%d:%s;", b, colour ? colour : "#2f9e6e");
    }
}

void train__report_style(FILE *out)
{
    fputs("<style>\n:root{color-scheme:light "
          "dark;--paper:#fbfaf8;--ink:#23262b;--soft:#6a7078;--line:#e3e1dc;--card:#ffffff;"
          "--train:#3b6fd4;--valid:#d2504f;--ok:#1f7a4d;--bad:#b3261e;",
          out);
    colours(out, 0);
    fputs(
        "}\n@media "
        "(prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e4e6ea;--soft:#9aa1ab;--line:#2d3138;--card:#1e2126;"
        "--train:#6d9bf1;--valid:#ec7a78;--ok:#6fd3a0;--bad:#ff8a80;",
        out);
    colours(out, 1);
    fputs("}}\n", out);
    for (int b = 0; b < LST_N_BUCKETS; b++)
        fprintf(out, ".b%d{fill:var(--b%d);background:var(--b%d)}", b, b, b);
    fputs(
        "\n*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 "
        "system-ui,-apple-system,"
        "\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}\n"
        "main{max-width:940px;margin:0 auto;padding:36px 20px 60px}h1{font-size:28px;margin:0}header p{margin:4px 0 "
        "0;color:var(--soft)}\n"
        "h2{font-size:19px;margin:0 0 "
        "12px}section{margin-top:34px}footer{margin-top:44px;color:var(--soft);font-size:14px}\n"
        ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:14px}\n"
        ".card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px}\n"
        ".label{color:var(--soft);font-size:14px}.value{font-size:26px;font-weight:600;font-variant-numeric:tabular-"
        "nums}"
        ".note{color:var(--soft);font-size:13.5px}\n"
        "svg{width:100%;height:auto;background:var(--card);border:1px solid "
        "var(--line);border-radius:12px;padding:6px}\n"
        "svg text{fill:var(--soft);font-size:12.5px;font-family:inherit}svg "
        "text.phase{font-size:11px}.grid{stroke:var(--line)}\n"
        "polyline{fill:none;stroke-linejoin:round}.raw{stroke:var(--train);opacity:.28;stroke-width:1}"
        ".train{stroke:var(--train);stroke-width:2.2}polyline.valid{stroke:var(--valid);stroke-width:1.8}circle.valid{"
        "fill:var(--valid)}\n"
        "svg text.legend{font-size:14px}svg .ink-train{fill:var(--train)}svg .ink-valid{fill:var(--valid)}\n"
        ".measured{stroke:var(--ink);stroke-width:2}g:hover rect{opacity:.82}\n"
        ".keys{display:flex;flex-wrap:wrap;gap:4px 18px;margin:10px 0 0;font-size:14px}"
        ".key{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:7px;vertical-align:-1px}"
        ".key.mark{height:3px;background:var(--ink);vertical-align:4px}\n"
        ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;background:var(--card);border:1px solid "
        "var(--line);"
        "border-radius:12px;font-size:14.5px}th,td{text-align:left;padding:7px 14px;border-bottom:1px solid "
        "var(--line)}"
        "th{color:var(--soft);font-weight:500}.num{text-align:right;font-variant-numeric:tabular-nums;white-space:"
        "nowrap}"
        "tbody+tbody td{color:var(--soft)}.ok{color:var(--ok)}.bad{color:var(--bad);font-weight:600}\n"
        "pre{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px;overflow-x:auto;"
        "font:13.5px/1.45 ui-monospace,\"SF Mono\",Menlo,\"DejaVu Sans Mono\",monospace}.sample{white-space:pre-wrap;"
        "overflow-wrap:anywhere}summary{cursor:pointer;color:var(--soft)}\n</style>\n",
        out);
}
