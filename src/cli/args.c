/* SPDX-License-Identifier: MIT
 *
 * Parsing a command's words against its tables.
 */
#include "cli/args.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"

static void collect_options(const cli_command *command, cli_args *out)
{
    for (size_t t = 0; t < CLI_MAX_TABLES && command->tables[t].options; t++)
        for (const cli_option *o = command->tables[t].options; o->name; o++) {
            assert(out->n_options < CLI_MAX_OPTIONS);
            out->options[out->n_options++] = o;
        }
}

/* Index of `text` in "a|b|c", or -1. */
static int choice_index(const char *choices, const char *text)
{
    const char *at = choices + (*choices == '|');
    size_t n = strlen(text);
    for (int i = 0;; i++) {
        const char *end = strchrnul(at, '|');
        if ((size_t)(end - at) == n && !memcmp(at, text, n))
            return i;
        if (!*end)
            return -1;
        at = end + 1;
    }
}

static lst_status parse_choice(const cli_option *option, const char *text, uint64_t *out, lst_error *err)
{
    int index = choice_index(option->value, text);
    if (index >= 0) {
        *out = (uint64_t)index;
        return LST_OK;
    }
    char list[600] = "";
    size_t n = 0;
    for (const char *at = option->value + (*option->value == '|'); *at && n + 3 < sizeof list; at++) {
        list[n++] = *at == '|' ? ',' : *at;
        if (*at == '|')
            list[n++] = ' ';
    }
    list[n] = 0;
    return lst__fail(err, LST_ERR_ARGUMENT, "--%s %s: there is no such choice; there are: %s", option->name, text,
                     list);
}

static lst_status parse_value(const cli_option *option, const char *text, cli_value *value, lst_error *err)
{
    value->text = text;
    switch (option->kind) {
    case CLI_COUNT:
        return cli_parse_count(option->name, text, &value->count, err);
    case CLI_SIZE:
        return cli_parse_size(option->name, text, &value->count, err);
    case CLI_DOUBLE:
        return cli_parse_real(option->name, text, &value->real, err);
    case CLI_CHOICE:
        return parse_choice(option, text, &value->count, err);
    case CLI_STRING:
        if (!*text)
            return lst__fail(err, LST_ERR_ARGUMENT, "--%s: the value is empty; expected %s", option->name,
                             option->value);
        return LST_OK;
    case CLI_FLAG:
        break;
    }
    return LST_OK;
}

static lst_status fail_unknown(const cli_args *args, const char *word, size_t n, lst_error *err)
{
    const char *names[CLI_MAX_OPTIONS];
    char typed[64];
    size_t n_typed = n < sizeof typed - 1 ? n : sizeof typed - 1;
    memcpy(typed, word, n_typed);
    typed[n_typed] = 0;
    for (size_t i = 0; i < args->n_options; i++)
        names[i] = args->options[i]->name;
    const char *near = cli_nearest(typed, names, args->n_options);
    if (near)
        return lst__fail(err, LST_ERR_ARGUMENT, "there is no option --%s; did you mean --%s?", typed, near);
    return lst__fail(err, LST_ERR_ARGUMENT, "there is no option --%s", typed);
}

/* argv[*at] starts with "--"; leaves *at at the last word used. */
static lst_status parse_option(cli_args *out, int argc, char **argv, int *at, lst_error *err)
{
    const char *word = argv[*at] + 2;
    size_t n = (size_t)(strchrnul(word, '=') - word);
    size_t i = 0;
    while (i < out->n_options && !(strlen(out->options[i]->name) == n && !memcmp(out->options[i]->name, word, n)))
        i++;
    if (i == out->n_options)
        return fail_unknown(out, word, n, err);
    const cli_option *option = out->options[i];
    if (out->values[i].given)
        return lst__fail(err, LST_ERR_ARGUMENT, "--%s is given twice; give it once", option->name);
    out->values[i].given = true;
    if (option->kind == CLI_FLAG) {
        if (word[n])
            return lst__fail(err, LST_ERR_ARGUMENT, "--%s takes no value (found \"%s\")", option->name, word + n + 1);
        return LST_OK;
    }
    if (word[n])
        return parse_value(option, word + n + 1, &out->values[i], err);
    if (*at + 1 >= argc || !strncmp(argv[*at + 1], "--", 2))
        return lst__fail(err, LST_ERR_ARGUMENT, "--%s needs a value: --%s %s", option->name, option->name,
                         option->value + (*option->value == '|'));
    *at += 1;
    return parse_value(option, argv[*at], &out->values[i], err);
}

static lst_status parse_words(cli_args *out, int argc, char **argv, lst_error *err)
{
    bool only_positionals = false;
    for (int at = 0; at < argc; at++) {
        const char *word = argv[at];
        if (!only_positionals && !strcmp(word, "--")) {
            only_positionals = true;
            continue;
        }
        if (!only_positionals && !strncmp(word, "--", 2)) {
            lst_status status = parse_option(out, argc, argv, &at, err);
            if (status != LST_OK)
                return status;
            continue;
        }
        if (!only_positionals && word[0] == '-' && word[1])
            return lst__fail(err, LST_ERR_ARGUMENT, "there is no option %s; options have long names and two dashes",
                             word);
        if (out->n_positionals == out->command->max_positionals || out->n_positionals == CLI_MAX_POSITIONALS)
            return lst__fail(err, LST_ERR_ARGUMENT, "\"%s\" is one argument too many; usage: leanstep %s %s", word,
                             out->command->name, out->command->positionals);
        out->positionals[out->n_positionals++] = word;
    }
    return LST_OK;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

lst_status cli_args_parse(const cli_command *command, int argc, char **argv, cli_args *out, lst_error *err)
{
    memset(out, 0, sizeof *out);
    out->command = command;
    collect_options(command, out);
    out->help = asks_for_help(argc, argv);
    if (out->help)
        return LST_OK;
    lst_status status = parse_words(out, argc, argv, err);
    for (size_t i = 0; status == LST_OK && i < out->n_options; i++)
        if (!out->values[i].given && out->options[i]->fallback)
            status = parse_value(out->options[i], out->options[i]->fallback, &out->values[i], err);
    if (status != LST_OK)
        return status;
    if (out->n_positionals < command->min_positionals)
        return lst__fail(err, LST_ERR_ARGUMENT, "an argument is missing; usage: leanstep %s %s", command->name,
                         command->positionals);
    return LST_OK;
}

static size_t find_option(const cli_args *args, const char *name)
{
    size_t i = 0;
    while (i < args->n_options && strcmp(args->options[i]->name, name) != 0)
        i++;
    return i;
}

static const cli_value *value_of(const cli_args *args, const char *name)
{
    size_t i = find_option(args, name);
    assert(i < args->n_options);
    return &args->values[i];
}

bool cli_has(const cli_args *args, const char *name)
{
    return find_option(args, name) < args->n_options;
}

bool cli_given(const cli_args *args, const char *name)
{
    return value_of(args, name)->given;
}

bool cli_flag(const cli_args *args, const char *name)
{
    return value_of(args, name)->given;
}

uint64_t cli_count(const cli_args *args, const char *name)
{
    return value_of(args, name)->count;
}

double cli_real(const cli_args *args, const char *name)
{
    return value_of(args, name)->real;
}

const char *cli_text(const cli_args *args, const char *name)
{
    return value_of(args, name)->text;
}

size_t cli_choice(const cli_args *args, const char *name)
{
    return (size_t)value_of(args, name)->count;
}

lst_status cli_not_both(const cli_args *args, const char *a, const char *b, const char *why, lst_error *err)
{
    if (cli_given(args, a) && cli_given(args, b))
        return lst__fail(err, LST_ERR_ARGUMENT, "--%s and --%s contradict each other: %s", a, b, why);
    return LST_OK;
}
