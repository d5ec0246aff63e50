/* SPDX-License-Identifier: MIT */
#include "cli/hyper_options.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/args.h"

typedef struct field {
    const char *name;
    size_t offset;
    bool is_switch;
} field;

static const field fields[] = {
#define LST_X(name) {#name, offsetof(lst_hyper, name), false},
    LST_HYPER_NUMBER_LIST(LST_X)
#undef LST_X
#define LST_X(name) {#name, offsetof(lst_hyper, name), true},
        LST_HYPER_SWITCH_LIST(LST_X)
#undef LST_X
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

static bool has_own_option(const char *name)
{
    static const char *const own[] = {"lr",  "weight_decay", "beta1",     "beta2",
                                      "eps", "momentum",     "dampening", "amsgrad"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(own[i], name) == 0)
            return true;
    return false;
}

static bool belongs_here(const field *f, lst_rule rule)
{
    return lst_rule_uses(rule, f->name) && !has_own_option(f->name);
}

static lst_status fail_name(const char *name, size_t n, lst_rule rule, lst_error *err)
{
    char list[400] = "none";
    size_t used = 0;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (belongs_here(&fields[i], rule))
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", fields[i].name);
    return lst__fail(err, LST_ERR_ARGUMENT,
                     "--hyper: \"%.*s\" is nothing that --optimizer %s takes here; there are: %s", (int)n, name,
                     lst_rule_name(rule), list);
}

static lst_status set_field(const field *f, const char *value, lst_hyper *out, lst_error *err)
{
    char *at = (char *)out + f->offset;
    if (!f->is_switch)
        return cli_parse_real("hyper", value, (double *)at, err);
    const bool on = strcmp(value, "on") == 0;
    if (!on && strcmp(value, "off") != 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "--hyper %s=%s: expected on or off", f->name, value);
    *(bool *)at = on;
    return LST_OK;
}

static lst_status read_one(const char *word, size_t n, lst_rule rule, lst_hyper *out, lst_error *err)
{
    const char *equals = memchr(word, '=', n);
    char value[64];
    if (!equals || n - (size_t)(equals - word) > sizeof value)
        return lst__fail(err, LST_ERR_ARGUMENT, "--hyper: \"%.*s\" is not NAME=VALUE", (int)n, word);
    const size_t length = (size_t)(equals - word);
    snprintf(value, sizeof value, "%.*s", (int)(n - length - 1), equals + 1);
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, word, length) == 0 &&
            belongs_here(&fields[i], rule))
            return set_field(&fields[i], value, out, err);
    return fail_name(word, length, rule, err);
}

lst_status cli_hyper_read(const char *text, lst_rule rule, lst_hyper *out, lst_error *err)
{
    lst_status status = LST_OK;
    for (const char *at = text; at && status == LST_OK; at = strchr(at, ','), at += at != NULL)
        status = read_one(at, strcspn(at, ","), rule, out, err);
    return status;
}

void cli_hyper_text(const lst_hyper *hyper, lst_rule rule, char *out, size_t n)
{
    lst_hyper standard;
    lst_hyper_default(rule, &standard);
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < N_FIELDS && used < n; i++) {
        const char *ours = (const char *)hyper + fields[i].offset, *theirs = (const char *)&standard + fields[i].offset;
        if (!belongs_here(&fields[i], rule) ||
            memcmp(ours, theirs, fields[i].is_switch ? sizeof(bool) : sizeof(double)) == 0)
            continue;
        const char *comma = used ? "," : "";
        if (fields[i].is_switch)
            used += (size_t)snprintf(out + used, n - used, "%s%s=%s", comma, fields[i].name,
                                     *(const bool *)ours ? "on" : "off");
        else
            used += (size_t)snprintf(out + used, n - used, "%s%s=%.17g", comma, fields[i].name, *(const double *)ours);
    }
}
