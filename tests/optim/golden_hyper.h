/* SPDX-License-Identifier: MIT
 *
 * From a golden case's names (those of the peers) to ours: rule, hyper-parameters, state.
 */
#ifndef TESTS_GOLDEN_HYPER_H
#define TESTS_GOLDEN_HYPER_H

#include "leanstep/optim.h"
#include "optim/golden_file.h"

/* The rule of a case, or false if there is none. PyTorch's SGD is three rules here. */
static inline bool golden_rule_of(const json_t *spec, lst_rule *out)
{
    const char *name = json_string_value(json_object_get(spec, "rule"));
    const json_t *hyper = json_object_get(spec, "hyper");
    lst_error err;
    static const char *const ours[][2] = {{"adafactor_hf", "adafactor"},
                                          {"adafactor_torch", "adafactor-torch"},
                                          {"schedulefree_adamw", "schedule-free-adamw"}};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i][0]) == 0)
            name = ours[i][1];
    if (strcmp(name, "sgd") == 0 && golden_member(hyper, "momentum", 0) > 0)
        name = json_is_true(json_object_get(hyper, "nesterov")) ? "nesterov" : "momentum";
    return lst_rule_find(name, out, &err) == LST_OK;
}

/* The slot that a peer's state is kept in; "step" for the count, "x" for the weights to evaluate; NULL for what we do
 * not keep. */
static inline const char *golden_slot_name(const char *peer)
{
    static const char *const ours[][2] = {
        {"row_var", "exp_avg_sq_row"}, {"col_var", "exp_avg_sq_col"}, {"variance", "exp_avg_sq"}, {"RMS", NULL}};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(peer, ours[i][0]) == 0)
            return ours[i][1];
    return peer;
}

static inline void golden_set(const json_t *from, const char *key, double *field)
{
    *field = golden_member(from, key, *field);
}

static inline void golden_switch(const json_t *from, const char *key, bool *field)
{
    const json_t *value = json_object_get(from, key);
    if (json_is_boolean(value))
        *field = json_is_true(value);
}

static inline void golden_apply_lists(const json_t *from, lst_hyper *h)
{
    const json_t *betas = json_object_get(from, "betas"), *eps = json_object_get(from, "eps");
    const json_t *coefficients = json_object_get(from, "ns_coefficients");
    h->beta1 = betas ? golden_number(json_array_get(betas, 0), 0) : h->beta1;
    h->beta2 = betas ? golden_number(json_array_get(betas, 1), 0) : h->beta2;
    if (json_is_array(eps)) {
        h->eps = golden_number(json_array_get(eps, 0), h->eps); /* null: the rule's own default */
        h->eps2 = golden_number(json_array_get(eps, 1), h->eps2);
    }
    if (coefficients) {
        h->ns_a = golden_number(json_array_get(coefficients, 0), 0);
        h->ns_b = golden_number(json_array_get(coefficients, 1), 0);
        h->ns_c = golden_number(json_array_get(coefficients, 2), 0);
    }
}

static inline void golden_apply(lst_rule rule, const json_t *from, lst_hyper *h)
{
    golden_set(from, "lr", &h->lr);
    golden_set(from, "momentum", &h->momentum);
    golden_set(from, "dampening", &h->dampening);
    golden_set(from, "weight_decay", &h->weight_decay);
    golden_set(from, "eps", &h->eps);
    golden_set(from, "alpha", &h->alpha);
    golden_set(from, "beta1", &h->beta1);
    golden_set(from, "trust_coefficient", &h->trust_coefficient);
    golden_set(from, "beta2_decay", &h->beta2_decay);
    golden_set(from, "decay_rate", &h->beta2_decay);
    golden_set(from, "clip_threshold", &h->clip_threshold);
    golden_set(from, "d", &h->clip_threshold);
    golden_set(from, "ns_steps", &h->ns_steps);
    golden_set(from, "warmup_steps", &h->warmup_steps);
    golden_set(from, "r", &h->r);
    golden_set(from, "weight_lr_power", &h->weight_lr_power);
    golden_switch(from, "amsgrad", &h->amsgrad);
    golden_switch(from, "maximize", &h->maximize);
    golden_switch(from, "centered", &h->centered);
    golden_switch(from, "exclude_1d", &h->exclude_1d);
    golden_switch(from, "scale_parameter", &h->scale_parameter);
    golden_switch(from, "relative_step", &h->relative_step);
    golden_switch(from, "warmup_init", &h->warmup_init);
    if (rule == LST_RULE_MUON) {
        const char *adjust = json_string_value(json_object_get(from, "adjust_lr_fn"));
        golden_switch(from, "nesterov", &h->nesterov);
        h->match_rms = adjust && strcmp(adjust, "match_rms_adamw") == 0;
    }
    golden_apply_lists(from, h);
}

/* Hyper-parameters of one tensor: the case's, then its group's. */
static inline void golden_hyper_of(lst_rule rule, const json_t *spec, size_t tensor, lst_hyper *out)
{
    lst_hyper_default(rule, out);
    golden_apply(rule, json_object_get(spec, "hyper"), out);
    const json_t *groups = json_object_get(spec, "groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i), *params = json_object_get(group, "params");
        for (size_t k = 0; k < json_array_size(params); k++)
            if ((size_t)json_integer_value(json_array_get(params, k)) == tensor)
                golden_apply(rule, group, out);
    }
}

#endif
