/* SPDX-License-Identifier: MIT
 *
 * Numbers as people type them: 7e9, 1.54B, 2GiB. Counts and sizes are exact integers: nothing goes through a double.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/args.h"

/* digits [. digits] [e exponent] as mantissa * 10^exponent; returns where it ends, NULL if there is no number. */
static const char *scan_decimal(const char *text, uint64_t *mantissa, int *exponent)
{
    const char *at = text;
    bool any = false;
    *mantissa = 0;
    *exponent = 0;
    for (bool fraction = false; isdigit((unsigned char)*at) || (*at == '.' && !fraction); at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        any = true;
        if (*mantissa > (UINT64_MAX - 9) / 10)
            return NULL;
        *mantissa = *mantissa * 10 + (uint64_t)(*at - '0');
        *exponent -= fraction;
    }
    if (!any)
        return NULL;
    if ((*at == 'e' || *at == 'E') &&
        (isdigit((unsigned char)at[1]) || (at[1] == '+' && isdigit((unsigned char)at[2])))) {
        char *end;
        long written = strtol(at + 1, &end, 10);
        if (written > 40)
            return NULL;
        *exponent += (int)written;
        at = end;
    }
    return at;
}

/* mantissa * 10^exponent * unit, if that is a whole number below 2^64. */
static bool scale_exact(uint64_t mantissa, int exponent, uint64_t unit, uint64_t *out)
{
    unsigned __int128 value = (unsigned __int128)mantissa * unit;
    for (; exponent < 0 && value; exponent++) {
        if (value % 10)
            return false;
        value /= 10;
    }
    for (; exponent > 0 && value; exponent--) {
        value *= 10;
        if (value > UINT64_MAX)
            return false;
    }
    *out = (uint64_t)value;
    return value <= UINT64_MAX;
}

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static const unit count_units[] = {
    {"", 1},           {"k", 1000},  {"K", 1000},     {"M", 1000000},     {"B", 1000000000},
    {"G", 1000000000}, {"Ki", 1024}, {"Mi", 1048576}, {"Gi", 1073741824}, {NULL, 0}};

static const unit size_units[] = {{"", 1},
                                  {"B", 1},
                                  {"kB", 1000},
                                  {"KB", 1000},
                                  {"MB", 1000000},
                                  {"GB", 1000000000},
                                  {"TB", 1000000000000},
                                  {"KiB", 1024},
                                  {"MiB", 1048576},
                                  {"GiB", 1073741824},
                                  {"TiB", 1099511627776},
                                  {NULL, 0}};

static const unit *find_unit(const unit *units, const char *name)
{
    for (; units->name; units++)
        if (!strcmp(units->name, name))
            return units;
    return NULL;
}

lst_status cli_parse_count(const char *option, const char *text, uint64_t *out, lst_error *err)
{
    uint64_t mantissa;
    int exponent;
    const char *end = scan_decimal(text, &mantissa, &exponent);
    const unit *found = end ? find_unit(count_units, end) : NULL;
    if (!found || !scale_exact(mantissa, exponent, found->factor, out))
        return lst__fail(err, LST_ERR_ARGUMENT, "--%s %s: expected a whole number, such as 128, 7e9, 124M or 1.5B",
                         option, text);
    return LST_OK;
}

lst_status cli_parse_size(const char *option, const char *text, uint64_t *out, lst_error *err)
{
    uint64_t mantissa;
    int exponent;
    const char *end = scan_decimal(text, &mantissa, &exponent);
    if (end && strlen(end) == 1 && strchr("kKmMgGtT", *end)) {
        char big = (char)toupper((unsigned char)*end);
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "--%s %s: is %c a power of 1,024 or of 1,000? Write %.*s%ciB or %.*s%cB", option, text, big,
                         (int)(end - text), text, big, (int)(end - text), text, big);
    }
    const unit *found = end ? find_unit(size_units, end) : NULL;
    if (!found || !scale_exact(mantissa, exponent, found->factor, out))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "--%s %s: expected a size in whole bytes, such as 2GiB, 2GB, 512MiB or 2147483648", option,
                         text);
    return LST_OK;
}

lst_status cli_parse_real(const char *option, const char *text, double *out, lst_error *err)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || isspace((unsigned char)*text) || strchr(text, 'x') ||
        strchr(text, 'X'))
        return lst__fail(err, LST_ERR_ARGUMENT, "--%s %s: expected a number, such as 0.1 or 3e-4", option, text);
    *out = value;
    return LST_OK;
}
