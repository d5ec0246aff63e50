/* SPDX-License-Identifier: MIT
 *
 * How right the estimates for PyTorch trainers are.
 *
 *     plan_accuracy FILE.csv [--all]
 *
 * FILE has the columns of measured_memory.csv (published measurements; rows of quality A and B count, --all takes the
 * others too) or of torch_step_bytes.csv (counted bytes). Prints predicted, measured and signed error of every row it
 * accepts, slopes between rows that differ in batch or sequence alone, the median and the 90th percentile of the
 * absolute error by group, and the rows it refuses with the reason.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/torch_measured.h"
#include "plan/torch_rows.h"

#define GIB (1024.0 * 1024.0 * 1024.0)
#define LIMIT ((size_t)256 << 20)
#define MAX_GROUPS 24

typedef struct group {
    const char *name;
    size_t n, capacity;
    double *error; /* signed, relative */
} group;

typedef struct groups {
    size_t n;
    group item[MAX_GROUPS];
} groups;

static int add_error(groups *all, const char *name, double error)
{
    size_t i = 0;
    while (i < all->n && strcmp(all->item[i].name, name) != 0)
        i++;
    if (i == MAX_GROUPS)
        return 1;
    group *g = &all->item[i];
    if (i == all->n) {
        all->n++;
        g->name = name;
    }
    if (g->n == g->capacity) {
        const size_t capacity = g->capacity ? 2 * g->capacity : 64;
        double *grown = lst__realloc(g->error, capacity, sizeof *grown);
        if (!grown)
            return 1;
        g->error = grown;
        g->capacity = capacity;
    }
    g->error[g->n++] = error;
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return x < y ? -1 : x > y;
}

/* Nearest rank: the smallest error that at least p of all are no larger than. */
static double percentile(const group *g, double p)
{
    size_t rank = (size_t)ceil(p * (double)g->n);
    return fabs(g->error[rank ? rank - 1 : 0]);
}

static void print_groups(groups *all)
{
    printf("\n%-18s %5s %10s %10s %10s\n", "group", "n", "median", "90th pct", "worst");
    for (size_t i = 0; i < all->n; i++) {
        group *g = &all->item[i];
        qsort(g->error, g->n, sizeof *g->error, by_size);
        printf("%-18s %5zu %9.2f%% %9.2f%% %+9.2f%%\n", g->name, g->n, 100 * percentile(g, 0.5),
               100 * percentile(g, 0.9), 100 * g->error[g->n - 1]);
        lst__free(g->error);
    }
}

/* ---- counted bytes ---- */

static int counted_row(const lst_csv *csv, size_t row, groups *all)
{
    lst_torch_run run;
    lst_estimate *e = NULL;
    lst_error err;
    const char *id = lst__csv_get(csv, row, "id");
    if (lst__torch_row(csv, row, &run, &err) != LST_OK || lst_torch_estimate(&e, &run, &err) != LST_OK) {
        printf("%-22s refused: %s\n", id, err.message);
        return 0;
    }
    const struct {
        const char *column;
        uint64_t value;
    } marks[] = {{"after_load", e->after_load},
                 {"steady_after_loss", e->steady.after_loss},
                 {"steady_bwd_peak", e->steady.bwd_peak},
                 {"steady_opt_peak", e->steady.opt_peak},
                 {"first_peak", e->first.peak}};
    int failed = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks && !failed; i++) {
        uint64_t counted = 0;
        if (lst__csv_get_u64(csv, row, marks[i].column, &counted, &err) != LST_OK || counted == 0) {
            fprintf(stderr, "plan_accuracy: %s\n", err.message);
            failed = 1;
            break;
        }
        const double error = (double)marks[i].value / (double)counted - 1;
        printf("%-22s %-18s %14" PRIu64 " predicted %14" PRIu64 " counted %+8.3f%%\n", id, marks[i].column,
               marks[i].value, counted, 100 * error);
        failed = add_error(all, marks[i].column, error);
    }
    lst_estimate_destroy(e);
    return failed;
}

static int counted(const lst_csv *csv)
{
    groups all = {0};
    int failed = 0;
    for (size_t row = 0; row < csv->n_rows && !failed; row++)
        failed = counted_row(csv, row, &all);
    print_groups(&all);
    return failed;
}

/* ---- published measurements ---- */

/* Whether two runs differ in batch or sequence alone. */
static bool differ_in_tokens_alone(const lst__measured *a, const lst__measured *b)
{
    if (!a->is_run || !b->is_run)
        return false;
    lst_torch_run x = a->run, y = b->run;
    const bool differ = x.batch != y.batch || x.seq != y.seq;
    x.batch = y.batch;
    x.seq = y.seq;
    return differ && memcmp(&x, &y, sizeof x) == 0;
}

static int slopes(const lst_csv *csv, const lst__measured *rows, groups *all)
{
    printf("\nslopes: bytes a token between neighbouring runs that differ in batch or sequence alone\n");
    for (size_t i = 0; i < csv->n_rows; i++) {
        for (size_t j = i + 1; j < csv->n_rows; j++) {
            if (!differ_in_tokens_alone(&rows[i], &rows[j]) ||
                strcmp(lst__csv_get(csv, i, "metric"), lst__csv_get(csv, j, "metric")) != 0)
                continue;
            const double tokens = (double)rows[j].run.batch * (double)rows[j].run.seq -
                                  (double)rows[i].run.batch * (double)rows[i].run.seq;
            if (tokens == 0)
                continue;
            const double predicted = (rows[j].predicted - rows[i].predicted) / tokens;
            const double measured = (rows[j].measured - rows[i].measured) / tokens;
            const double error = predicted / measured - 1;
            printf("%s -> %s  %10.0f predicted %10.0f measured %+7.1f%%\n", lst__csv_get(csv, i, "id"),
                   lst__csv_get(csv, j, "id"), predicted, measured, 100 * error);
            if (add_error(all, "slope", error))
                return 1;
            break;
        }
    }
    return 0;
}

static int print_accepted(const lst_csv *csv, const lst__measured *rows, groups *all)
{
    for (size_t i = 0; i < csv->n_rows; i++) {
        const lst__measured *m = &rows[i];
        if (!m->accepted)
            continue;
        const double unit = strcmp(m->group, "layer") == 0 ? 1.0 : GIB, error = m->predicted / m->measured - 1;
        printf("%-5s %-8s %8.3f predicted %8.3f measured %+7.2f%%  %.40s, %.50s\n", lst__csv_get(csv, i, "id"),
               m->group, m->predicted / unit, m->measured / unit, 100 * error, lst__csv_get(csv, i, "model"),
               lst__csv_get(csv, i, "method"));
        if (add_error(all, m->group, error) || (m->is_run && add_error(all, "all runs", error)))
            return 1;
    }
    return 0;
}

static void print_refused(const lst_csv *csv, const lst__measured *rows)
{
    printf("\nrefused:\n");
    for (size_t i = 0; i < csv->n_rows; i++) {
        if (!rows[i].accepted && rows[i].reason[0])
            printf("%-5s %s\n", lst__csv_get(csv, i, "id"), rows[i].reason);
    }
}

static int published(const lst_csv *csv, bool every_quality)
{
    groups all = {0};
    lst_error err;
    lst__measured *rows = lst__alloc(csv->n_rows + 1, sizeof *rows);
    if (!rows)
        return 1;
    for (size_t i = 0; i < csv->n_rows; i++) {
        const char *quality = lst__csv_get(csv, i, "quality");
        if (!every_quality && quality && strcmp(quality, "A") != 0 && strcmp(quality, "B") != 0)
            continue;
        if (lst__measured_row(csv, i, &rows[i], &err) != LST_OK)
            snprintf(rows[i].reason, sizeof rows[i].reason, "%.150s", err.message);
    }
    int failed = print_accepted(csv, rows, &all);
    if (!failed)
        failed = slopes(csv, rows, &all);
    print_groups(&all);
    print_refused(csv, rows);
    lst__free(rows);
    return failed;
}

int main(int argc, char **argv)
{
    const bool every_quality = argc == 3 && strcmp(argv[2], "--all") == 0;
    if (argc != 2 && !every_quality) {
        fprintf(stderr, "usage: plan_accuracy FILE.csv [--all]\n");
        return 2;
    }
    lst_csv csv;
    lst_error err;
    if (lst__csv_read(argv[1], LIMIT, &csv, &err) != LST_OK) {
        fprintf(stderr, "plan_accuracy: %s\n", err.message);
        return 1;
    }
    int failed = 1;
    if (lst__csv_find(&csv, "id") == SIZE_MAX)
        fprintf(stderr, "plan_accuracy: %s has no column \"id\"\n", argv[1]);
    else if (lst__csv_find(&csv, "steady_bwd_peak") != SIZE_MAX)
        failed = counted(&csv);
    else if (lst__csv_find(&csv, "value") != SIZE_MAX)
        failed = published(&csv, every_quality);
    else
        fprintf(stderr, "plan_accuracy: %s has neither the columns of counted bytes nor those of measurements\n",
                argv[1]);
    lst__csv_free(&csv);
    return failed;
}
