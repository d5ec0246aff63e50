/* SPDX-License-Identifier: MIT */
#include "cli/plan_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/print.h"
#include "leanstep/plan.h"

static const lst_weight_form forms[] = {LST_WEIGHT_F32, LST_WEIGHT_BF16_MASTER, LST_WEIGHT_SPLIT32, LST_WEIGHT_SPLIT24,
                                        LST_WEIGHT_BF16_SR};
static const lst_codec codecs[] = {LST_CODEC_F32, LST_CODEC_Q8, LST_CODEC_Q8_DYNAMIC, LST_CODEC_Q4};

enum { N_FORMS = sizeof forms / sizeof forms[0], N_CODECS = sizeof codecs / sizeof codecs[0], ASSUMED_WIDTH = 4096 };

/* Bytes a parameter of one rule in every format; NaN where the two do not go together. */
typedef struct rule_bytes {
    double state[N_CODECS][N_FORMS], fixed[N_CODECS][N_FORMS];
} rule_bytes;

typedef struct table {
    const lst_arch *arch;
    uint64_t n_params;
    const lst_recipe *base;
    rule_bytes rules[LST_N_RULES];
} table;

/* ---- which rules look at shapes ---- */

static uint64_t state_of(lst_rule rule, const lst_tensor *tensor)
{
    lst_hyper hyper;
    lst_slot slots[LST_MAX_SLOTS];
    size_t n_slots = 0;
    uint64_t bytes = 0;
    lst_hyper_default(rule, &hyper);
    const lst_optim_options options = {.struct_size = sizeof options, .rule = rule, .n_groups = 1, .groups = &hyper};
    if (lst_optim_slots(&options, tensor, slots, &n_slots, NULL) != LST_OK)
        return UINT64_MAX;
    for (size_t i = 0; i < n_slots; i++)
        bytes += slots[i].bytes;
    return bytes;
}

bool cli_plan_counts_suffice(lst_rule rule)
{
    const lst_tensor vector = {.name = "vector", .n_dims = 1, .dims = {4096}},
                     matrix = {.name = "matrix", .n_dims = 2, .dims = {64, 64}};
    return state_of(rule, &vector) == state_of(rule, &matrix);
}

/* ---- the numbers ---- */

static lst_recipe recipe_of(const table *t, lst_rule rule, lst_codec state, lst_weight_form form)
{
    lst_recipe r = *t->base;
    r.rule = rule;
    lst_hyper_default(rule, &r.hyper);
    r.weights = form;
    r.state = state;
    r.f32_embeddings = r.f32_embeddings && state != LST_CODEC_F32;
    r.grads = r.grad_mode == LST_GRAD_KEEP ? lst_weight_form_codec(form) : LST_CODEC_F32;
    r.loss_scale = false;
    return r;
}

static lst_status fill_cell(table *t, lst_rule rule, size_t codec, size_t form, lst_error *err)
{
    lst_plan *plan = NULL;
    const lst_recipe r = recipe_of(t, rule, codecs[codec], forms[form]);
    double *state = &t->rules[rule].state[codec][form], *fixed = &t->rules[rule].fixed[codec][form];
    *state = *fixed = NAN;
    if (lst_recipe_check(&r, t->arch, NULL) != LST_OK)
        return LST_OK; /* the two do not go together */
    uint64_t n = t->n_params;
    if (!cli_plan_counts_suffice(rule))
        n = (n + ASSUMED_WIDTH - 1) / ASSUMED_WIDTH * ASSUMED_WIDTH;
    lst_status status = t->arch ? lst_plan_create(&plan, t->arch, &r, err) : lst_plan_create_params(&plan, n, &r, err);
    if (status == LST_OK) {
        *state = (double)plan->optimizer_state_bytes / (double)plan->n_params;
        *fixed = (double)plan->fixed_bytes / (double)plan->n_params;
    }
    lst_plan_destroy(plan);
    return status;
}

/* Within a byte in ten thousand parameters: a width rounded up must not part rules that keep the same. */
static bool same_bytes(const rule_bytes *a, const rule_bytes *b)
{
    for (size_t c = 0; c < N_CODECS; c++)
        for (size_t f = 0; f < N_FORMS; f++) {
            const double x = a->fixed[c][f], y = b->fixed[c][f];
            if (isnan(x) != isnan(y) || fabs(x - y) > 1e-4 || fabs(a->state[c][f] - b->state[c][f]) > 1e-4)
                return false;
        }
    return true;
}

/* ---- printing ---- */

static void print_row(const table *t, const double bytes[N_FORMS], lst_codec codec)
{
    printf("    %-15s", lst_codec_name(codec));
    for (size_t f = 0; f < N_FORMS; f++) {
        if (isnan(bytes[f]))
            printf(" %18s", "-");
        else
            printf(" %8.4g %9.2f", bytes[f], bytes[f] * (double)t->n_params / 1e9);
    }
    printf("\n");
}

/* A line of all rules that keep as many bytes as `first`, then a row for each way to keep moments. */
static void print_rules(const table *t, int first, bool fixed)
{
    printf("  ");
    for (int rule = first; rule < LST_N_RULES; rule++)
        if (same_bytes(&t->rules[first], &t->rules[rule]))
            printf("%s%s%s", rule > first ? ", " : "", lst_rule_name((lst_rule)rule),
                   t->arch || cli_plan_counts_suffice((lst_rule)rule) ? "" : "*");
    printf("\n");
    for (size_t c = 0; c < N_CODECS; c++)
        if (!isnan(t->rules[first].fixed[c][0]))
            print_row(t, fixed ? t->rules[first].fixed[c] : t->rules[first].state[c], codecs[c]);
}

static void print_part(const table *t, bool fixed)
{
    printf("%s: bytes a parameter, and GB\n\n    %-15s",
           !fixed ? "Optimizer state (master and moments)"
           : t->base->grad_mode == LST_GRAD_KEEP
               ? "What no batch size changes (weights, gradients, optimizer state)"
               : "What no batch size changes (weights, optimizer state; gradients are released)",
           "moments");
    for (size_t f = 0; f < N_FORMS; f++)
        printf(" %18s", lst_weight_form_name(forms[f]));
    printf("\n");
    for (int rule = 0; rule < LST_N_RULES; rule++) {
        bool shown = false;
        for (int before = 0; before < rule && !shown; before++)
            shown = same_bytes(&t->rules[before], &t->rules[rule]);
        if (!shown)
            print_rules(t, rule, fixed);
    }
    printf("\n");
}

lst_status cli_plan_table(const lst_arch *arch, uint64_t n_params, const lst_recipe *base, lst_error *err)
{
    static table t;
    t = (table){.arch = arch, .n_params = n_params, .base = base};
    char number[32];
    for (int rule = 0; rule < LST_N_RULES; rule++)
        for (size_t c = 0; c < N_CODECS; c++)
            for (size_t f = 0; f < N_FORMS; f++) {
                lst_status status = fill_cell(&t, (lst_rule)rule, c, f, err);
                if (status != LST_OK)
                    return status;
            }
    printf(
        "%s parameters. Columns: how weights are kept (--weights; --precision fp32 is f32, bf16 bf16+master, fp16 as "
        "much).\nRows: the rule (--optimizer) and how its moments are kept (--state).\n\n",
        cli_print_integer(number, sizeof number, n_params));
    print_part(&t, false);
    print_part(&t, true);
    if (!arch)
        printf("* depends on shapes, which are not known: as if all parameters were matrices 4,096 wide. A MODEL gives "
               "its "
               "own.\n\n");
    return LST_OK;
}
