/* SPDX-License-Identifier: MIT
 *
 * Checks of hyper-parameters: ranges, and no option without effect.
 */
#include "optim/rule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

typedef enum field_kind { KIND_RATE, KIND_BETA, KIND_DECAY, KIND_REAL, KIND_WHOLE, KIND_FLAG } field_kind;

typedef struct field {
    const char *name;
    size_t offset;
    field_kind kind;
} field;

static const field fields[LST__N_FIELDS] = {
#define LST_X(id, member, kind) {#member, offsetof(lst_hyper, member), KIND_##kind},
    LST__FIELD_LIST(LST_X)
#undef LST_X
};

static double value_of(const lst_hyper *hyper, const field *f)
{
    const char *at = (const char *)hyper + f->offset;
    return f->kind == KIND_FLAG ? (double)*(const bool *)at : *(const double *)at;
}

static bool in_range(field_kind kind, double value)
{
    switch (kind) {
    case KIND_RATE:
        return isfinite(value) && value >= 0;
    case KIND_BETA:
        return value >= 0 && value < 1;
    case KIND_DECAY:
        return isfinite(value) && value <= 0;
    case KIND_REAL:
        return isfinite(value);
    case KIND_WHOLE:
        return value >= 0 && value <= 0x1p53 && value == floor(value);
    case KIND_FLAG:
        break;
    }
    return true;
}

static lst_status check_range(const field *f, double value, size_t group, lst_error *err)
{
    static const char *const expected[] = {[KIND_RATE] = "a finite number of at least 0",
                                           [KIND_BETA] = "a number from 0 to below 1",
                                           [KIND_DECAY] = "a finite number of at most 0",
                                           [KIND_REAL] = "a finite number",
                                           [KIND_WHOLE] = "a whole number of at least 0"};
    if (in_range(f->kind, value))
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT, "group %zu: %s is %g; expected %s", group, f->name, value,
                     expected[f->kind]);
}

/* Every field of the struct is in the table: nothing may be forgotten when one is added. */
#define LST_X(field) +sizeof(double)
#define LST_Y(field) +sizeof(bool)
_Static_assert((0 LST_HYPER_NUMBER_LIST(LST_X) LST_HYPER_SWITCH_LIST(LST_Y) + 7) / 8 * 8 == sizeof(lst_hyper),
               "LST_HYPER_NUMBER_LIST and LST_HYPER_SWITCH_LIST name every field");
#undef LST_X
#undef LST_Y

bool lst_rule_uses(lst_rule rule, const char *name)
{
    for (size_t i = 0; i < LST__N_FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0)
            return lst__rule_get(rule)->fields >> i & 1;
    return false;
}

lst_status lst__hyper_check(lst_rule rule, const lst_hyper *hyper, size_t group, lst_error *err)
{
    const lst__rule *r = lst__rule_get(rule);
    for (size_t i = 0; i < LST__N_FIELDS; i++) {
        const field *f = &fields[i];
        const double value = value_of(hyper, f), standard = value_of(&r->defaults, f);
        lst_status status = check_range(f, value, group, err);
        if (status != LST_OK)
            return status;
        if (!(r->fields & (1u << i)) && value != standard)
            return lst__fail(
                err, LST_ERR_ARGUMENT,
                "group %zu: %s is %g, but the rule %s does not use it; leave it at %g or choose another rule", group,
                f->name, value, lst_rule_name(rule), standard);
    }
    if (!r->check)
        return LST_OK;
    char where[40];
    snprintf(where, sizeof where, "group %zu", group);
    return r->check(hyper, where, err);
}
