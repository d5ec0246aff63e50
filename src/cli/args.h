/* SPDX-License-Identifier: MIT
 *
 * The command line as tables: a command is a row of commands.h with its cli_command, an option is a row of a
 * command's tables. Nothing is guessed: an unknown, repeated or malformed option is refused, with the nearest name.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "leanstep/status.h"

/* Exit statuses, the same for every command (and printed by --help). */
enum {
    CLI_OK = 0,     /* done; for `plan`: the run fits */
    CLI_FAILED = 1, /* the run failed; for `plan`: the run does not fit */
    CLI_USAGE = 2   /* the command line asks for something that does not exist or makes no sense */
};

typedef enum cli_option_kind {
    CLI_FLAG,   /* --json */
    CLI_COUNT,  /* --steps 1000, --params 7e9 or 124M or 1.5B: a whole number */
    CLI_SIZE,   /* --memory 2GiB, 2GB, 512MiB; a bare number is bytes */
    CLI_DOUBLE, /* --lr 3e-4 */
    CLI_STRING, /* --data PATH */
    CLI_CHOICE  /* --grads keep|release */
} cli_option_kind;

typedef struct cli_option {
    const char *name; /* without the dashes; NULL ends a table */
    cli_option_kind kind;
    const char
        *value; /* the word in the help ("PATH"); for a choice the names: "keep|release" (a leading | is skipped) */
    const char *fallback; /* what it is when not given, parsed like a given value; NULL: no value */
    const char *help;     /* one line; what it is not given may be said here in words */
} cli_option;

typedef struct cli_args cli_args;

#define CLI_MAX_TABLES 4
#define CLI_MAX_OPTIONS 80
#define CLI_MAX_POSITIONALS 8

typedef struct cli_command {
    const char *name;
    const char *summary;     /* one line of `leanstep --help` */
    const char *positionals; /* as in the usage line: "MODEL --data PATH" */
    size_t min_positionals, max_positionals;
    const char *examples; /* lines, first in the help */
    const char *text;     /* what it does, printed after the options; may be NULL */
    struct {
        const char *title;
        const cli_option *options;
    } tables[CLI_MAX_TABLES];
    int (*run)(const cli_args *args); /* returns an exit status */
} cli_command;

typedef struct cli_value {
    bool given;
    const char *text; /* as typed, or the fallback, or NULL */
    uint64_t count;   /* count, size; index of a choice */
    double real;
} cli_value;

struct cli_args {
    const cli_command *command;
    size_t n_options;
    const cli_option *options[CLI_MAX_OPTIONS];
    cli_value values[CLI_MAX_OPTIONS];
    size_t n_positionals;
    const char *positionals[CLI_MAX_POSITIONALS];
    bool help;
};

/* argv[0] is the first word after the command's name. With --help anywhere, *out has help set and nothing is
 * checked. */
LST_MUST_USE lst_status cli_args_parse(const cli_command *command, int argc, char **argv, cli_args *out,
                                       lst_error *err);

/* By name; a name that the command does not have is a programming error (asserted). */
bool cli_given(const cli_args *args, const char *name); /* typed by the user, not a fallback */
bool cli_flag(const cli_args *args, const char *name);
uint64_t cli_count(const cli_args *args, const char *name); /* also for sizes, in bytes */
double cli_real(const cli_args *args, const char *name);
const char *cli_text(const cli_args *args, const char *name);
size_t cli_choice(const cli_args *args, const char *name); /* index in the list of choices */
bool cli_has(const cli_args *args, const char *name);      /* whether the command has this option at all */
/* Refuses two options given together: "--a and --b contradict: why". */
LST_MUST_USE lst_status cli_not_both(const cli_args *args, const char *a, const char *b, const char *why,
                                     lst_error *err);

/* Parsers behind the kinds; `option` names the option in messages. */
LST_MUST_USE lst_status cli_parse_count(const char *option, const char *text, uint64_t *out, lst_error *err);
LST_MUST_USE lst_status cli_parse_size(const char *option, const char *text, uint64_t *out, lst_error *err);
LST_MUST_USE lst_status cli_parse_real(const char *option, const char *text, double *out, lst_error *err);

/* The name of `names` (count of them) nearest to `typed`, or NULL if none is near. */
const char *cli_nearest(const char *typed, const char *const *names, size_t n_names);

void cli_help(FILE *out, const cli_command *command);
/* Prints "leanstep COMMAND: message" to stderr and returns the exit status that fits: CLI_USAGE for
 * LST_ERR_ARGUMENT (with a pointer to --help), CLI_FAILED for the rest. */
int cli_fail(const cli_args *args, const lst_error *err);

#endif
