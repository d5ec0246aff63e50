/* SPDX-License-Identifier: MIT
 *
 * `plan --for torch`: an estimate of a PyTorch run, its verdict, levers, comparisons.
 */
#ifndef CLI_PLAN_TORCH_H
#define CLI_PLAN_TORCH_H

#include <jansson.h>
#include <stdio.h>

#include "cli/args.h"
#include "leanstep/estimate.h"

int cli_plan_torch(const cli_args *args); /* an exit status */

/* ---- parts, for the printers ---- */

/* What the run needs: on a GPU with rounding, cache and context. */
uint64_t cli_torch_need(const lst_torch_run *run, const lst_estimate *e);

typedef struct cli_torch_lever {
    const char *what, *option, *price;
    uint64_t need; /* after this lever alone */
} cli_torch_lever;
#define CLI_TORCH_MAX_LEVERS 16
/* Those that save bytes, most first. */
size_t cli_torch_levers(const lst_torch_run *run, uint64_t need, cli_torch_lever out[CLI_TORCH_MAX_LEVERS]);
/* Largest micro-batch, or longest sequence, that needs at most limit bytes; 0 if none does. */
size_t cli_torch_largest(const lst_torch_run *run, uint64_t limit, bool sequence);

void cli_torch_print(FILE *out, const lst_torch_run *run, const lst_estimate *e);
/* LST_ERR_ARGUMENT lists the buckets. */
LST_MUST_USE lst_status cli_torch_bucket(const char *bucket, lst_error *err);
void cli_torch_explain(FILE *out, const lst_estimate *e, const char *bucket);
json_t *cli_torch_json(const lst_torch_run *run, const lst_estimate *e, uint64_t limit);
LST_MUST_USE lst_status cli_torch_html(const char *path, const lst_torch_run *run, const lst_estimate *e,
                                       uint64_t limit, lst_error *err);

#endif
