/* SPDX-License-Identifier: MIT */
#include "cli/recipe_name.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

/* Codecs of moments that a name may ask for. */
static const lst_codec state_codecs[] = {LST_CODEC_F32, LST_CODEC_Q8, LST_CODEC_Q4, LST_CODEC_Q8_DYNAMIC,
                                         LST_CODEC_Q8_DYNAMIC_2048};

static bool same(const char *name, const char *word, size_t n)
{
    return strlen(name) == n && memcmp(name, word, n) == 0;
}

static bool read_form(const char *word, size_t n, lst_weight_form *out)
{
    for (int i = 0; i < LST_N_WEIGHT_FORMS; i++)
        if (same(lst_weight_form_name((lst_weight_form)i), word, n)) {
            *out = (lst_weight_form)i;
            return true;
        }
    return false;
}

static bool read_state(const char *word, size_t n, lst_codec *out)
{
    for (size_t i = 0; i < sizeof state_codecs / sizeof *state_codecs; i++)
        if (same(lst_codec_name(state_codecs[i]), word, n)) {
            *out = state_codecs[i];
            return true;
        }
    return false;
}

/* A form has a + of its own ("bf16+master"), so the whole is looked at first, then what stands before the last +. */
static bool read_format(const char *word, size_t n, lst_recipe *out)
{
    out->weights = LST_WEIGHT_F32;
    out->state = LST_CODEC_F32;
    if (read_form(word, n, &out->weights) || read_state(word, n, &out->state))
        return true;
    for (size_t plus = n; plus-- > 0;)
        if (word[plus] == '+')
            return read_form(word, plus, &out->weights) && read_state(word + plus + 1, n - plus - 1, &out->state);
    return false;
}

static bool read_rule(const char *word, size_t n, lst_rule *out)
{
    for (int i = 0; i < LST_N_RULES; i++)
        if (same(lst_rule_name((lst_rule)i), word, n)) {
            *out = (lst_rule)i;
            return true;
        }
    return false;
}

static lst_status fail(const char *option, const char *name, size_t n, lst_error *err)
{
    char rules[256] = "", forms[128] = "";
    for (int i = 0; i < LST_N_RULES; i++)
        snprintf(rules + strlen(rules), sizeof rules - strlen(rules), "%s%s", i ? ", " : "",
                 lst_rule_name((lst_rule)i));
    for (int i = 0; i < LST_N_WEIGHT_FORMS; i++)
        snprintf(forms + strlen(forms), sizeof forms - strlen(forms), "%s%s", i ? ", " : "",
                 lst_weight_form_name((lst_weight_form)i));
    return lst__fail(err, LST_ERR_ARGUMENT,
                     "--%s: \"%.*s\" is no recipe. One is RULE/FORMAT, as in adamw/split24+q8: rules %s; weights %s; "
                     "moments f32, q8, q4, q8-dynamic, q8-dynamic-2048",
                     option, (int)n, name, rules, forms);
}

lst_status cli_recipe_by_name(const char *option, const char *name, size_t n, lst_recipe *out, lst_error *err)
{
    lst_recipe r = *out;
    size_t end = 0;
    while (end < n && name[end] != ' ' && name[end] != '/' && name[end] != ':')
        end++;
    bool good;
    r.rule = LST_RULE_ADAMW;
    if (end == n && read_rule(name, n, &r.rule))
        good = read_format("f32", 3, &r);
    else if (end == n)
        good = read_format(name, n, &r);
    else
        good = read_rule(name, end, &r.rule) && read_format(name + end + 1, n - end - 1, &r);
    if (!good)
        return fail(option, name, n, err);
    *out = r;
    return LST_OK;
}

void cli_recipe_name(const lst_recipe *r, char *out, size_t n)
{
    const char *rule = lst_rule_name(r->rule), *weights = lst_weight_form_name(r->weights);
    if (r->state == LST_CODEC_F32)
        snprintf(out, n, "%s %s", rule, weights);
    else if (r->weights == LST_WEIGHT_F32)
        snprintf(out, n, "%s %s", rule, lst_codec_name(r->state));
    else
        snprintf(out, n, "%s %s+%s", rule, weights, lst_codec_name(r->state));
}
