/* SPDX-License-Identifier: MIT
 *
 * The table of rules.
 */
#include "optim/rule.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static const lst__rule *const rules[LST_N_RULES] = {
    [LST_RULE_SGD] = &lst__rule_sgd,
    [LST_RULE_MOMENTUM] = &lst__rule_momentum,
    [LST_RULE_NESTEROV] = &lst__rule_nesterov,
    [LST_RULE_ADAM] = &lst__rule_adam,
    [LST_RULE_ADAMW] = &lst__rule_adamw,
    [LST_RULE_LION] = &lst__rule_lion,
    [LST_RULE_RMSPROP] = &lst__rule_rmsprop,
    [LST_RULE_LARS] = &lst__rule_lars,
    [LST_RULE_LAMB] = &lst__rule_lamb,
    [LST_RULE_ADAFACTOR] = &lst__rule_adafactor,
    [LST_RULE_ADAFACTOR_TORCH] = &lst__rule_adafactor_torch,
    [LST_RULE_MUON] = &lst__rule_muon,
    [LST_RULE_ADAM_MINI] = &lst__rule_adam_mini,
    [LST_RULE_SCHEDULE_FREE] = &lst__rule_schedule_free,
};

static const char *const names[LST_N_RULES] = {
#define LST_X(id, name) name,
    LST_RULE_LIST(LST_X)
#undef LST_X
};

const lst__rule *lst__rule_get(lst_rule rule)
{
    return rules[rule];
}

const char *lst_rule_name(lst_rule rule)
{
    return (unsigned)rule < LST_N_RULES ? names[rule] : "unknown";
}

lst_status lst_rule_find(const char *name, lst_rule *out, lst_error *err)
{
    char list[256] = "";
    for (unsigned i = 0; i < LST_N_RULES; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (lst_rule)i;
            return LST_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return lst__fail(err, LST_ERR_ARGUMENT, "no optimizer is named \"%s\"; there are: %s", name, list);
}

void lst_hyper_default(lst_rule rule, lst_hyper *out)
{
    *out = rules[rule]->defaults;
}
