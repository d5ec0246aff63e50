/* SPDX-License-Identifier: MIT
 *
 * The optimizer bench: one timer for `leanstep bench` and for tests. A recipe's rate is set against a plain loop that
 * reads and writes the same bytes per parameter as float32 AdamW through the same, equally staggered, arrays; the two
 * take turns, so that a noisy machine disturbs both.
 */
#ifndef CLI_BENCH_OPTIM_H
#define CLI_BENCH_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/optim.h"

typedef struct cli_bench_recipe {
    const char *name;
    lst_rule rule;
    lst_weight_form weights;
    lst_codec grads, state;
} cli_bench_recipe;

/* All recipes there are, "adamw f32" first. */
extern const cli_bench_recipe cli_bench_recipes[];
extern const size_t cli_bench_n_recipes;

typedef struct cli_bench_row {
    double bytes_per_param; /* that a step must move: what it reads, and what it writes again */
    double best, median;    /* parameters a second */
    double stream_gb_per_s; /* best of the plain loop that took turns with it */
    size_t n_timings;
} cli_bench_row;

typedef struct cli_bench_setup {
    size_t n_elems;
    double seconds; /* for one recipe */
    lst_pool *pool;
} cli_bench_setup;

LST_MUST_USE lst_status cli_bench_run(const cli_bench_recipe *recipe, const cli_bench_setup *setup, cli_bench_row *out,
                                      lst_error *err);

#endif
