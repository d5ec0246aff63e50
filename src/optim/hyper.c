/* SPDX-License-Identifier: MIT
 *
 * Checks of hyper-parameters: ranges, and no option without effect.
 */
#include "optim/rule.h"

#include <math.h>
#include <stdio.h>

#include "base/fail.h"

typedef enum field_kind { KIND_RATE, KIND_BETA, KIND_FLAG } field_kind;

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

static lst_status check_range(const field *f, double value, size_t group, lst_error *err)
{
    if (f->kind == KIND_RATE && !(isfinite(value) && value >= 0))
        return lst__fail(err, LST_ERR_ARGUMENT, "group %zu: %s is %g; expected a finite number of at least 0", group,
                         f->name, value);
    if (f->kind == KIND_BETA && !(value >= 0 && value < 1))
        return lst__fail(err, LST_ERR_ARGUMENT, "group %zu: %s is %g; expected 0 <= %s < 1", group, f->name, value,
                         f->name);
    return LST_OK;
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
