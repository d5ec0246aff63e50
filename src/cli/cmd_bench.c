/* SPDX-License-Identifier: MIT
 *
 * leanstep bench: how fast the optimizers are on this machine, beside what its memory gives.
 */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/args.h"
#include "cli/bench_optim.h"
#include "cli/print.h"

static const cli_option options[] = {
    {"size", CLI_COUNT, "N", "64Mi", "parameters of the one tensor that is stepped"},
    {"threads", CLI_COUNT, "N", NULL, "threads; as many as the process may use when not given"},
    {"seconds", CLI_DOUBLE, "S", "2", "time for each recipe"},
    {"recipes", CLI_STRING, "A,B", NULL, "only these, by name (\"adamw f32,sgd f32\"); all when not given"},
    {"json", CLI_FLAG, NULL, NULL, "one JSON object instead of the table"},
    {NULL, CLI_FLAG, NULL, NULL, NULL},
};

static bool in_list(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == 0))
            return true;
    return false;
}

/* Every name of the list must be a recipe. */
static lst_status check_list(const char *list, lst_error *err)
{
    char names[1024] = "";
    for (size_t i = 0; i < cli_bench_n_recipes; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", cli_bench_recipes[i].name);
    }
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL) {
        const size_t n = strcspn(at, ",");
        bool known = false;
        for (size_t i = 0; i < cli_bench_n_recipes && !known; i++)
            known = strlen(cli_bench_recipes[i].name) == n && strncmp(at, cli_bench_recipes[i].name, n) == 0;
        if (!known)
            return lst__fail(err, LST_ERR_ARGUMENT, "--recipes: there is no recipe \"%.*s\"; there are: %s", (int)n, at,
                             names);
    }
    return LST_OK;
}

typedef struct report {
    bool json;
    double reference; /* best rate of adamw f32; 0 until it was measured */
    size_t n_rows;
} report;

static void print_head(const report *r, size_t n_elems, size_t threads)
{
    char size[32];
    if (r->json) {
        printf("{\"params\": %zu, \"threads\": %zu, \"rows\": [", n_elems, threads);
        return;
    }
    printf("One tensor of %s parameters, %zu thread%s. Rates are the best timing; the median is beside it.\n"
           "share: of the GB/s of a plain loop over float32 AdamW's arrays, measured in turn; ratio: to adamw f32.\n\n",
           cli_print_integer(size, sizeof size, n_elems), threads, threads == 1 ? "" : "s");
    printf("%-22s %8s %10s %10s %7s %7s %6s\n", "recipe", "B/param", "Mparam/s", "median", "GB/s", "share", "ratio");
}

static void print_row(report *r, const char *name, const cli_bench_row *row)
{
    const double gb = row->best * row->bytes_per_param / 1e9, share = gb / row->stream_gb_per_s;
    const double ratio = r->reference > 0 ? row->best / r->reference : 0;
    if (r->json) {
        printf("%s\n  {\"recipe\": \"%s\", \"bytes_per_param\": %.4f, \"params_per_s\": %.0f, \"median_params_per_s\": "
               "%.0f, "
               "\"gb_per_s\": %.3f, \"stream_gb_per_s\": %.3f, \"share\": %.4f, \"ratio\": ",
               r->n_rows ? "," : "", name, row->bytes_per_param, row->best, row->median, gb, row->stream_gb_per_s,
               share);
        if (ratio > 0)
            printf("%.4f}", ratio);
        else
            printf("null}");
    } else {
        printf("%-22s %8.3f %10.1f %10.1f %7.2f %6.1f%% ", name, row->bytes_per_param, row->best / 1e6,
               row->median / 1e6, gb, 100 * share);
        if (ratio > 0)
            printf("%6.2f\n", ratio);
        else
            printf("%6s\n", "-");
    }
    fflush(stdout);
    r->n_rows++;
}

static lst_status bench_all(const cli_args *args, lst_pool *pool, lst_error *err)
{
    const cli_bench_setup setup = {
        .n_elems = cli_count(args, "size"), .seconds = cli_real(args, "seconds"), .pool = pool};
    const char *list = cli_text(args, "recipes");
    report r = {.json = cli_flag(args, "json")};
    print_head(&r, setup.n_elems, lst_pool_threads(pool));
    for (size_t i = 0; i < cli_bench_n_recipes; i++) {
        const cli_bench_recipe *recipe = &cli_bench_recipes[i];
        cli_bench_row row = {0};
        if (list && !in_list(list, recipe->name))
            continue;
        lst_status status = cli_bench_run(recipe, &setup, &row, err);
        if (status != LST_OK)
            return status;
        if (i == 0)
            r.reference = row.best;
        print_row(&r, recipe->name, &row);
    }
    if (r.json)
        printf("\n]}\n");
    return LST_OK;
}

static lst_status check(const cli_args *args, lst_error *err)
{
    if (cli_count(args, "size") == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "--size 0: expected at least 1 parameter");
    if (!(cli_real(args, "seconds") > 0))
        return lst__fail(err, LST_ERR_ARGUMENT, "--seconds %g: expected more than 0", cli_real(args, "seconds"));
    if (cli_given(args, "threads") && cli_count(args, "threads") == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "--threads 0: expected at least 1");
    return cli_given(args, "recipes") ? check_list(cli_text(args, "recipes"), err) : LST_OK;
}

static int run(const cli_args *args)
{
    lst_error err;
    lst_pool *pool = NULL;
    lst_status status = check(args, &err);
    if (status == LST_OK)
        status = lst_pool_create(&pool, cli_given(args, "threads") ? cli_count(args, "threads") : 0, &err);
    if (status == LST_OK)
        status = bench_all(args, pool, &err);
    lst_pool_destroy(pool);
    return status == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_bench = {
    .name = "bench",
    .summary = "time the optimizers on this machine, beside what its memory gives",
    .positionals = "[options]",
    .examples = "  leanstep bench                        64 Mi parameters, all recipes, every thread\n"
                "  leanstep bench --size 1Mi --threads 1 --recipes \"adamw f32,sgd f32\"\n",
    .text = "Takes memory for one tensor at a time: up to 32 bytes a parameter (2 GiB at 64 Mi).\n",
    .tables = {{"Options", options}},
    .run = run,
};
