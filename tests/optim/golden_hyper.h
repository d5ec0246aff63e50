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
    if (strcmp(name, "sgd") == 0 && golden_member(hyper, "momentum", 0) > 0)
        name = json_is_true(json_object_get(hyper, "nesterov")) ? "nesterov" : "momentum";
    return lst_rule_find(name, out, &err) == LST_OK;
}

/* The slot that a peer's state is kept in; "step" for the count; NULL for what we do not keep. */
static inline const char *golden_slot_name(const char *peer)
{
    return peer;
}

static inline void golden_set(const json_t *from, const char *key, double *field)
{
    *field = golden_member(from, key, *field);
}

static inline void golden_apply(const json_t *from, lst_hyper *h)
{
    const json_t *betas = json_object_get(from, "betas");
    golden_set(from, "lr", &h->lr);
    golden_set(from, "momentum", &h->momentum);
    golden_set(from, "dampening", &h->dampening);
    golden_set(from, "weight_decay", &h->weight_decay);
    golden_set(from, "eps", &h->eps);
    h->beta1 = betas ? golden_number(json_array_get(betas, 0), 0) : h->beta1;
    h->beta2 = betas ? golden_number(json_array_get(betas, 1), 0) : h->beta2;
    h->amsgrad = h->amsgrad || json_is_true(json_object_get(from, "amsgrad"));
    h->maximize = h->maximize || json_is_true(json_object_get(from, "maximize"));
}

/* Hyper-parameters of one tensor: the case's, then its group's. */
static inline void golden_hyper_of(lst_rule rule, const json_t *spec, size_t tensor, lst_hyper *out)
{
    lst_hyper_default(rule, out);
    golden_apply(json_object_get(spec, "hyper"), out);
    const json_t *groups = json_object_get(spec, "groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i), *params = json_object_get(group, "params");
        for (size_t k = 0; k < json_array_size(params); k++)
            if ((size_t)json_integer_value(json_array_get(params, k)) == tensor)
                golden_apply(group, out);
    }
}

#endif
