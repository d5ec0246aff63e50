/* SPDX-License-Identifier: MIT
 *
 * The command line: numbers, tables, refusals with the nearest name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/args.h"
#include "cli/print.h"

static const cli_option options[] = {{"steps", CLI_COUNT, "N", "10", "how many"},
                                     {"memory", CLI_SIZE, "SIZE", NULL, "how much"},
                                     {"lr", CLI_DOUBLE, "RATE", "3e-4", "how fast"},
                                     {"data", CLI_STRING, "PATH", NULL, "from where"},
                                     {"grads", CLI_CHOICE, "|keep|release", "keep", "which"},
                                     {"json", CLI_FLAG, NULL, NULL, "as JSON"},
                                     {NULL, CLI_FLAG, NULL, NULL, NULL}};

static const cli_command command = {
    .name = "test", .positionals = "MODEL", .min_positionals = 1, .max_positionals = 1, .tables = {{"All", options}}};

/* Words up to a NULL. */
static lst_status parse(cli_args *out, lst_error *err, ...)
{
    char *words[16];
    int n = 0;
    va_list list;
    va_start(list, err);
    while ((words[n] = va_arg(list, char *)))
        n++;
    va_end(list);
    return cli_args_parse(&command, n, words, out, err);
}

static void values_and_fallbacks(void **state)
{
    (void)state;
    cli_args a;
    lst_error err;
    assert_int_equal(parse(&a, &err, "gpt2", "--memory=2GiB", "--json", "--grads", "release", (char *)NULL), LST_OK);
    assert_string_equal(a.positionals[0], "gpt2");
    assert_int_equal(cli_count(&a, "memory"), 2147483648);
    assert_int_equal(cli_count(&a, "steps"), 10);
    assert_false(cli_given(&a, "steps"));
    assert_true(cli_given(&a, "memory"));
    assert_true(cli_real(&a, "lr") == 3e-4);
    assert_true(cli_flag(&a, "json"));
    assert_int_equal(cli_choice(&a, "grads"), 1);
    assert_null(cli_text(&a, "data"));
    assert_true(cli_has(&a, "data"));
    assert_false(cli_has(&a, "dota"));
}

static void help_needs_nothing_else(void **state)
{
    (void)state;
    cli_args a;
    lst_error err;
    assert_int_equal(parse(&a, &err, "--nonsense", "--help", (char *)NULL), LST_OK);
    assert_true(a.help);
}

#define REFUSE(word, ...)                                                                                              \
    do {                                                                                                               \
        cli_args a_;                                                                                                   \
        lst_error err_ = {.message = ""};                                                                              \
        assert_int_equal(parse(&a_, &err_, __VA_ARGS__, (char *)NULL), LST_ERR_ARGUMENT);                              \
        if (!strstr(err_.message, word))                                                                               \
            fail_msg("the message \"%s\" does not say \"%s\"", err_.message, word);                                    \
    } while (0)

static void refusals(void **state)
{
    (void)state;
    REFUSE("did you mean --memory", "m", "--memroy", "2GiB");
    REFUSE("did you mean --memory", "m", "--mem=2GiB");
    REFUSE("no option --quantum", "m", "--quantum");
    REFUSE("given twice", "m", "--json", "--json");
    REFUSE("given twice", "m", "--steps", "1", "--steps=2");
    REFUSE("needs a value", "m", "--steps");
    REFUSE("needs a value", "m", "--data", "--json");
    REFUSE("takes no value", "m", "--json=yes");
    REFUSE("there are: keep, release", "m", "--grads", "relaese");
    REFUSE("one argument too many", "m", "n");
    REFUSE("argument is missing", "--json");
    REFUSE("two dashes", "m", "-s");
    REFUSE("empty", "m", "--data", "");
    REFUSE("whole number", "m", "--steps", "-1");
    REFUSE("whole number", "m", "--steps", "1.5");
    REFUSE("such as 0.1", "m", "--lr", "nan");
    REFUSE("such as 0.1", "m", "--lr", "fast");
    REFUSE("2GiB or 2GB", "m", "--memory", "2G");
    REFUSE("whole bytes", "m", "--memory", "2GiBs");
}

static void words_after_two_dashes(void **state)
{
    (void)state;
    cli_args a;
    lst_error err;
    assert_int_equal(parse(&a, &err, "--", "--json", (char *)NULL), LST_OK);
    assert_string_equal(a.positionals[0], "--json");
    assert_false(cli_flag(&a, "json"));
}

static void contradiction(void **state)
{
    (void)state;
    cli_args a;
    lst_error err;
    assert_int_equal(parse(&a, &err, "m", "--json", "--steps", "3", (char *)NULL), LST_OK);
    assert_int_equal(cli_not_both(&a, "json", "data", "why", &err), LST_OK);
    assert_int_equal(cli_not_both(&a, "json", "steps", "they do", &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "--json and --steps"));
}

typedef struct number {
    const char *text;
    uint64_t value;
} number;

static void exact_numbers(void **state)
{
    (void)state;
    const number counts[] = {
        {"7e9", 7000000000}, {"1.54e9", 1540000000}, {"1.5B", 1500000000}, {"124M", 124000000}, {"0", 0},
        {"12k", 12000},      {"1e+3", 1000},         {"0.5k", 500}};
    const number sizes[] = {{"2GB", 2000000000}, {"1.5GiB", 1610612736}, {"512MiB", 536870912}, {"4096", 4096}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t value = 1;
        assert_int_equal(cli_parse_count("n", counts[i].text, &value, NULL), LST_OK);
        assert_true(value == counts[i].value);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t value = 1;
        assert_int_equal(cli_parse_size("n", sizes[i].text, &value, NULL), LST_OK);
        assert_true(value == sizes[i].value);
    }
    uint64_t value;
    static const char *const bad[] = {"",     "e9", "1e",    "1e-3",  "99999999999999999999", "1e20", "7e9x",
                                      "0x10", " 7", "1e400", "64 KiB"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(cli_parse_count("n", bad[i], &value, NULL), LST_ERR_ARGUMENT);
}

static void bytes_as_people_read_them(void **state)
{
    (void)state;
    char out[100];
    assert_string_equal(cli_print_integer(out, sizeof out, 0), "0");
    assert_string_equal(cli_print_integer(out, sizeof out, 999), "999");
    assert_string_equal(cli_print_integer(out, sizeof out, 14000000000), "14,000,000,000");
    assert_string_equal(cli_print_integer(out, sizeof out, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(cli_print_bytes(out, sizeof out, 14000000000), "14,000,000,000 bytes (13.04 GiB, 14.00 GB)");
    assert_string_equal(cli_print_binary(out, sizeof out, 512), "512 B");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_and_fallbacks),
                                       cmocka_unit_test(help_needs_nothing_else),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(words_after_two_dashes),
                                       cmocka_unit_test(contradiction),
                                       cmocka_unit_test(exact_numbers),
                                       cmocka_unit_test(bytes_as_people_read_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
