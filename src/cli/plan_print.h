/* SPDX-License-Identifier: MIT
 *
 * A plan as a person reads it, and as a program does. `train` prints the same table before it starts.
 */
#ifndef CLI_PLAN_PRINT_H
#define CLI_PLAN_PRINT_H

#include <stdio.h>

#include <jansson.h>

#include "cli/recipe_options.h"
#include "leanstep/plan.h"

/* Buckets (bytes, GiB, GB, bytes per parameter), sum, peak and its phase, the share of optimizer state. */
void cli_print_plan(FILE *out, const lst_plan *plan);
void cli_print_assumed(FILE *out, const cli_assumed *assumed);
/* Every buffer with offset, bytes and life. */
void cli_print_buffers(FILE *out, const lst_plan *plan);

/* The schema of docs/formats.md; NULL if memory runs out. limit_bytes 0: bytes available are not known. */
json_t *cli_plan_json(const lst_plan *plan, const char *model, const cli_assumed *assumed, uint64_t limit_bytes,
                      const char *limit_from);

#endif
