/* SPDX-License-Identifier: MIT
 *
 * What a person reads about the command line: --help, errors, the nearest name.
 */
#include <string.h>

#include "cli/args.h"

#define MAX_WORD 40

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance in insertions, deletions and substitutions (Levenshtein); words beyond MAX_WORD are far from all. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n_a = strlen(a), n_b = strlen(b);
    size_t row[MAX_WORD + 1];
    if (n_a > MAX_WORD || n_b > MAX_WORD)
        return MAX_WORD;
    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t above = row[j];
            row[j] = smaller(smaller(row[j - 1], above) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n_b];
}

const char *cli_nearest(const char *typed, const char *const *names, size_t n_names)
{
    const char *best = NULL;
    size_t best_distance = smaller(3, strlen(typed) / 2 + 1);
    for (size_t i = 0; i < n_names; i++) {
        size_t distance = edit_distance(typed, names[i]);
        /* A typed beginning of a name counts as near: --mem for --memory. */
        if (strlen(typed) >= 3 && !strncmp(typed, names[i], strlen(typed)))
            distance = smaller(distance, 1);
        if (distance < best_distance) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}

static void print_option(FILE *out, const cli_option *option)
{
    char left[MAX_WORD + 200];
    const char *value = option->value ? option->value + (*option->value == '|') : "";
    snprintf(left, sizeof left, "--%s%s%s", option->name, option->kind == CLI_FLAG ? "" : " ",
             option->kind == CLI_FLAG ? "" : value);
    if (strlen(left) > 28)
        fprintf(out, "  %s\n  %-28s  %s", left, "", option->help);
    else
        fprintf(out, "  %-28s  %s", left, option->help);
    if (option->fallback)
        fprintf(out, " [%s]", option->fallback);
    fputc('\n', out);
}

void cli_help(FILE *out, const cli_command *command)
{
    fprintf(out, "leanstep %s: %s\n\nExamples:\n%s\n", command->name, command->summary, command->examples);
    fprintf(out, "Usage: leanstep %s %s\n", command->name, command->positionals);
    for (size_t t = 0; t < CLI_MAX_TABLES && command->tables[t].options; t++) {
        fprintf(out, "\n%s (value in brackets: when not given)\n", command->tables[t].title);
        for (const cli_option *o = command->tables[t].options; o->name; o++)
            print_option(out, o);
    }
    if (command->text)
        fprintf(out, "\n%s", command->text);
    fprintf(out, "\nSizes: 2GiB is 2 x 1,073,741,824 bytes, 2GB is 2,000,000,000, a bare number is bytes.\n"
                 "Exit status: 0 done (plan: it fits), 1 the run failed (plan: it does not fit), 2 wrong usage.\n");
}

int cli_fail(const cli_args *args, const lst_error *err)
{
    fflush(stdout);
    fprintf(stderr, "leanstep %s: %s\n", args->command->name, err->message);
    if (err->status != LST_ERR_ARGUMENT)
        return CLI_FAILED;
    fprintf(stderr, "`leanstep %s --help` shows examples and every option.\n", args->command->name);
    return CLI_USAGE;
}
