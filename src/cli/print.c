/* SPDX-License-Identifier: MIT */
#include "cli/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *cli_print_integer(char *out, size_t n, uint64_t value)
{
    char digits[24];
    int n_digits = snprintf(digits, sizeof digits, "%" PRIu64, value);
    size_t at = 0;
    for (int i = 0; i < n_digits && at + 2 < n; i++) {
        if (i && (n_digits - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

static char *print_scaled(char *out, size_t n, uint64_t bytes, double step, const char *const units[5])
{
    double value = (double)bytes;
    size_t u = 0;
    while (u < 4 && value >= step) {
        value /= step;
        u++;
    }
    snprintf(out, n, u ? "%.2f %s" : "%.0f %s", value, units[u]);
    return out;
}

char *cli_print_binary(char *out, size_t n, uint64_t bytes)
{
    static const char *const units[5] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return print_scaled(out, n, bytes, 1024, units);
}

char *cli_print_decimal(char *out, size_t n, uint64_t bytes)
{
    static const char *const units[5] = {"B", "kB", "MB", "GB", "TB"};
    return print_scaled(out, n, bytes, 1000, units);
}

char *cli_print_bytes(char *out, size_t n, uint64_t bytes)
{
    char exact[32], binary[32], decimal[32];
    snprintf(out, n, "%s bytes (%s, %s)", cli_print_integer(exact, sizeof exact, bytes),
             cli_print_binary(binary, sizeof binary, bytes), cli_print_decimal(decimal, sizeof decimal, bytes));
    return out;
}
