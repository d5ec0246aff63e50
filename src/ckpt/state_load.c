/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "ckpt/dtypes.h"
#include "ckpt/state.h"
#include "io/json.h"
#include "io/printable.h"
#include "io/safetensors.h"
#include "leanstep/ckpt.h"
#include "optim/optimizer.h"

/* Two halves: check_* look at everything and note what will be done; apply then does it and cannot fail. */

/* Bytes copied before the pages they came from are given back. */
#define COPY_BYTES ((size_t)8 << 20)

typedef struct loading {
    const char *path;
    lst_st *st;
    lst_optim *optim;
    json_t *groups, *tensors;
    double *lrs;                 /* by group */
    int64_t *steps;              /* by tensor */
    const lst_st_tensor **slots; /* in the order of params and their slots */
    int64_t begun;
    lst_error *err;
} loading;

static lst_status required(const loading *l, const char *key, const char **out)
{
    *out = lst__st_metadata(l->st, key);
    if (*out == NULL)
        return lst__fail(l->err, LST_ERR_FORMAT, "%s: its metadata lack \"%s\"", l->path, key);
    return LST_OK;
}

static lst_status check_format(const lst_st *st, const char *path, lst_error *err)
{
    const char *version = lst__st_metadata(st, LST__KEY_FORMAT);
    char shown[40];
    const char *layout = lst__st_metadata(st, LST__KEY_LAYOUT);
    if (version == NULL && layout != NULL)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s is laid out for %s: `leanstep convert-state` writes it for Leanstep (--to leanstep)", path,
                         lst__printable(layout, shown, sizeof shown));
    if (version == NULL)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s is no optimizer file of Leanstep: its metadata lack \"" LST__KEY_FORMAT "\"", path);
    if (strcmp(version, LST__CKPT_FORMAT) != 0)
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s: format version \"%s\"; this program reads version " LST__CKPT_FORMAT
                         " (use the program that wrote it)",
                         path, lst__printable(version, shown, sizeof shown));
    return LST_OK;
}

/* The file's value under key must be the optimizer's. */
static lst_status check_same(const loading *l, const char *key, const char *what, const char *ours)
{
    const char *theirs;
    char shown[80];
    lst_status status = required(l, key, &theirs);
    if (status == LST_OK && strcmp(theirs, ours) != 0)
        status =
            lst__fail(l->err, LST_ERR_STATE, "%s: checkpoint of another recipe: its %s is %s, the optimizer's is %s",
                      l->path, what, lst__printable(theirs, shown, sizeof shown), ours);
    return status;
}

static lst_status check_recipe(const loading *l)
{
    const lst_optim_options *options = &l->optim->options;
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, options->seed);
    lst_status status = check_same(l, LST__KEY_RULE, "rule", lst_rule_name(options->rule));
    if (status == LST_OK)
        status = check_same(l, LST__KEY_WEIGHTS, "weight form", lst_weight_form_name(options->weights));
    if (status == LST_OK)
        status = check_same(l, LST__KEY_STATE, "state codec", lst_codec_name(options->state));
    if (status == LST_OK)
        status = check_same(l, LST__KEY_SEED, "seed", seed);
    return status;
}

/* A decimal count from 0 to INT64_MAX - 1, and nothing else. */
static bool read_count(const char *text, int64_t *out)
{
    if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789")] != '\0')
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    *out = (int64_t)value;
    return errno == 0 && value != INT64_MAX;
}

static lst_status check_begun(loading *l)
{
    const char *text;
    lst_status status = required(l, LST__KEY_BEGUN, &text);
    char shown[40];
    if (status == LST_OK && !read_count(text, &l->begun))
        status = lst__fail(l->err, LST_ERR_FORMAT, "%s: metadata \"" LST__KEY_BEGUN "\" is \"%s\"; a count is expected",
                           l->path, lst__printable(text, shown, sizeof shown));
    return status;
}

/* ---- groups ---- */

static lst_status number_differs(const loading *l, size_t group, const char *field, double theirs, double ours)
{
    return lst__fail(
        l->err, LST_ERR_STATE,
        "%s: checkpoint of another recipe: group %zu has %s %.17g, the optimizer's is %.17g (resume with the same)",
        l->path, group, field, theirs, ours);
}

/* A field that the file lacks is younger than the file: it had its default then. */
static lst_status check_number(const loading *l, size_t group, const json_t *object, const char *field,
                               double otherwise, double ours, double *theirs)
{
    bool is_lr = strcmp(field, "lr") == 0;
    lst_status status = LST_OK;
    *theirs = otherwise;
    if (is_lr || json_object_get(object, field) != NULL)
        status = lst__json_get_real(object, l->path, field, theirs, l->err);
    /* lr is what a schedule changes; it is taken from the file. */
    if (status == LST_OK && !is_lr && *theirs != ours)
        status = number_differs(l, group, field, *theirs, ours);
    return status;
}

static lst_status check_switch(const loading *l, size_t group, const json_t *object, const char *field, bool otherwise,
                               bool ours)
{
    bool theirs = otherwise;
    lst_status status = LST_OK;
    if (json_object_get(object, field) != NULL)
        status = lst__json_get_bool(object, l->path, field, &theirs, l->err);
    if (status == LST_OK && theirs != ours)
        status = number_differs(l, group, field, theirs, ours);
    return status;
}

static lst_status check_group(loading *l, size_t group, const json_t *object)
{
    const lst_hyper *h = &l->optim->groups[group];
    lst_status status = LST_OK;
    double value = 0, lr = 0;
    lst_hyper otherwise;
    lst_hyper_default(l->optim->options.rule, &otherwise);
    if (!json_is_object(object))
        return lst__fail(l->err, LST_ERR_FORMAT, "%s: group %zu is %s; an object is expected", l->path, group,
                         lst__json_kind(object));
#define LST_X(field)                                                                                                   \
    if (status == LST_OK)                                                                                              \
        status = check_number(l, group, object, #field, otherwise.field, h->field, &value);                            \
    if (strcmp(#field, "lr") == 0)                                                                                     \
        lr = value;
    LST_HYPER_NUMBER_LIST(LST_X)
#undef LST_X
#define LST_X(field)                                                                                                   \
    if (status == LST_OK)                                                                                              \
        status = check_switch(l, group, object, #field, otherwise.field, h->field);
    LST_HYPER_SWITCH_LIST(LST_X)
#undef LST_X
    if (status == LST_OK && !(isfinite(lr) && lr >= 0))
        status = lst__fail(l->err, LST_ERR_FORMAT, "%s: group %zu: lr %.17g is no learning rate", l->path, group, lr);
    l->lrs[group] = lr;
    return status;
}

static lst_status parse_metadata(loading *l, const char *key, json_t **out)
{
    const char *text;
    lst_status status = required(l, key, &text);
    if (status == LST_OK)
        status = lst__json_parse(out, l->path, text, strlen(text), l->err);
    return status;
}

static lst_status check_groups(loading *l)
{
    size_t n = l->optim->options.n_groups;
    lst_status status = parse_metadata(l, LST__KEY_GROUPS, &l->groups);
    if (status == LST_OK && (!json_is_array(l->groups) || json_array_size(l->groups) != n))
        status = lst__fail(l->err, LST_ERR_STATE,
                           "%s: checkpoint of another recipe: %zu groups of hyper-parameters; %zu are expected",
                           l->path, json_array_size(l->groups), n);
    for (size_t i = 0; status == LST_OK && i < n; i++)
        status = check_group(l, i, json_array_get(l->groups, i));
    return status;
}

/* ---- tensors ---- */

static lst_status another_model(const loading *l, const lst_tensor *t, const char *how)
{
    char shown[160];
    return lst__fail(
        l->err, LST_ERR_STATE, "%s: checkpoint of another model: tensor \"%s\" %s (it has %zu tensors, this model %zu)",
        l->path, lst__printable(t->name, shown, sizeof shown), how, json_object_size(l->tensors), l->optim->n_params);
}

static bool same_shape(const json_t *shape, const lst_tensor *t)
{
    if (!json_is_array(shape) || json_array_size(shape) != t->n_dims)
        return false;
    for (size_t i = 0; i < t->n_dims; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0 || (size_t)json_integer_value(dim) != t->dims[i])
            return false;
    }
    return true;
}

static lst_status check_tensor(loading *l, size_t i)
{
    const lst_tensor *t = &l->optim->params[i].tensor;
    const json_t *entry = json_object_get(l->tensors, t->name);
    if (entry == NULL)
        return another_model(l, t, "is not in it");
    if (!same_shape(json_object_get(entry, "shape"), t))
        return another_model(l, t, "has another shape there");
    size_t group = 0;
    const char *steps = NULL;
    lst_status status = lst__json_get_size(entry, l->path, "group", &group, l->err);
    if (status == LST_OK)
        status = lst__json_get_string(entry, l->path, "steps", &steps, l->err);
    if (status != LST_OK)
        return status;
    if (group != t->group)
        return another_model(l, t, "belongs to another group there");
    char shown[160];
    if (!read_count(steps, &l->steps[i]))
        return lst__fail(l->err, LST_ERR_FORMAT, "%s: tensor \"%s\": its steps are no count", l->path,
                         lst__printable(t->name, shown, sizeof shown));
    return LST_OK;
}

static bool has_tensor(const lst_optim *optim, const char *name)
{
    for (size_t i = 0; i < optim->n_params; i++)
        if (strcmp(optim->params[i].tensor.name, name) == 0)
            return true;
    return false;
}

static lst_status check_tensors(loading *l)
{
    lst_status status = parse_metadata(l, LST__KEY_TENSORS, &l->tensors);
    if (status == LST_OK && !json_is_object(l->tensors))
        status = lst__fail(l->err, LST_ERR_FORMAT, "%s: metadata \"" LST__KEY_TENSORS "\" is %s; an object is expected",
                           l->path, lst__json_kind(l->tensors));
    for (size_t i = 0; status == LST_OK && i < l->optim->n_params; i++)
        status = check_tensor(l, i);
    if (status != LST_OK || json_object_size(l->tensors) == l->optim->n_params)
        return status;
    const char *name = "";
    json_t *entry;
    json_object_foreach(l->tensors, name, entry)
    {
        if (!has_tensor(l->optim, name))
            break;
    }
    return another_model(l, &(lst_tensor){.name = name == NULL ? "" : name}, "is in it and not in this model");
}

/* ---- slots ---- */

static lst_status check_slot(loading *l, const lst__param *param, const lst_slot *slot, const lst_st_tensor **out)
{
    char shown[160];
    char *name = lst__state_name(&param->tensor, slot);
    if (name == NULL)
        return lst__fail_memory(l->err, l->path, strlen(param->tensor.name));
    const lst_st_tensor *t = lst__st_find(l->st, name);
    lst__printable(name, shown, sizeof shown);
    lst__free(name);
    size_t n_dims;
    const size_t *dims;
    lst__state_shape(&param->tensor, slot, &n_dims, &dims);
    if (t == NULL)
        return lst__fail(l->err, LST_ERR_FORMAT, "%s: tensor \"%s\" is missing", l->path, shown);
    if (t->dtype != lst__ckpt_dtype(slot->codec) || t->n_bytes != slot->bytes || t->n_dims != n_dims ||
        (n_dims > 0 && memcmp(t->dims, dims, n_dims * sizeof *dims) != 0))
        return lst__fail(l->err, LST_ERR_STATE,
                         "%s: tensor \"%s\" is %zu bytes of %s or has another shape; %zu bytes of %s are expected",
                         l->path, shown, t->n_bytes, lst__st_dtype_name(t->dtype), slot->bytes,
                         lst_codec_name(slot->codec));
    if (slot->memory == NULL)
        return lst__fail(l->err, LST_ERR_STATE,
                         "cannot load tensor \"%s\": its slot has no memory; call lst_optim_bind first", shown);
    *out = t;
    return LST_OK;
}

static lst_status check_slots(loading *l)
{
    size_t at = 0;
    for (size_t i = 0; i < l->optim->n_params; i++)
        for (size_t k = 0; k < l->optim->params[i].n_slots; k++) {
            lst_status status = check_slot(l, &l->optim->params[i], &l->optim->params[i].slots[k], &l->slots[at++]);
            if (status != LST_OK)
                return status;
        }
    if (l->st->n_tensors != at)
        return lst__fail(l->err, LST_ERR_FORMAT, "%s: %zu tensors of state; %zu are expected", l->path,
                         l->st->n_tensors, at);
    return LST_OK;
}

/* ---- applying ---- */

static void copy_slot(const lst_st_tensor *from, void *to)
{
    for (size_t at = 0; at < from->n_bytes; at += COPY_BYTES) {
        size_t n = from->n_bytes - at < COPY_BYTES ? from->n_bytes - at : COPY_BYTES;
        memcpy((char *)to + at, from->data + at, n);
        lst__map_forget(from->data + at, n);
    }
}

static lst_status apply(loading *l)
{
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < l->optim->options.n_groups; i++)
        if (l->lrs[i] != l->optim->groups[i].lr) /* a rule that makes its own rate refuses to be given one */
            status = lst_optim_set_lr(l->optim, i, l->lrs[i], l->err);
    size_t at = 0;
    for (size_t i = 0; status == LST_OK && i < l->optim->n_params; i++) {
        for (size_t k = 0; k < l->optim->params[i].n_slots; k++)
            copy_slot(l->slots[at++], l->optim->params[i].slots[k].memory);
        status = lst_optim_set_steps(l->optim, i, l->steps[i], l->err);
    }
    if (status == LST_OK)
        lst_optim_set_begun(l->optim, l->begun);
    return status;
}

static lst_status make_room(loading *l)
{
    size_t n_slots = 0;
    for (size_t i = 0; i < l->optim->n_params; i++)
        n_slots += l->optim->params[i].n_slots;
    l->lrs = lst__alloc(l->optim->options.n_groups, sizeof *l->lrs);
    l->steps = lst__alloc(l->optim->n_params, sizeof *l->steps);
    l->slots = lst__alloc(n_slots, sizeof *l->slots);
    if (l->lrs == NULL || l->steps == NULL || l->slots == NULL)
        return lst__fail_memory(l->err, l->path, n_slots * sizeof *l->slots + l->optim->n_params * sizeof *l->steps);
    return LST_OK;
}

lst_status lst_ckpt_load_optim(const char *path, lst_optim *optim, lst_error *err)
{
    static lst_status (*const steps[])(loading *) = {make_room,     check_begun, check_groups,
                                                     check_tensors, check_slots, apply};
    loading l = {.path = path, .optim = optim, .err = err};
    lst_status status = lst__st_open(&l.st, path, err);
    if (status != LST_OK)
        return status;
    status = check_format(l.st, path, err);
    if (status == LST_OK)
        status = check_recipe(&l);
    for (size_t i = 0; status == LST_OK && i < sizeof steps / sizeof steps[0]; i++)
        status = steps[i](&l);
    json_decref(l.groups);
    json_decref(l.tensors);
    lst__free(l.lrs);
    lst__free(l.steps);
    lst__free(l.slots);
    lst__st_close(l.st);
    return status;
}

lst_status lst_ckpt_read_trainer(const char *path, char **trainer, lst_error *err)
{
    lst_st *st;
    lst_status status = lst__st_open(&st, path, err);
    if (status != LST_OK)
        return status;
    status = check_format(st, path, err);
    if (status == LST_OK) {
        const char *text = lst__st_metadata(st, LST__KEY_TRAINER);
        char *copy = lst__strdup(text == NULL ? "" : text);
        if (copy == NULL)
            status = lst__fail_memory(err, path, text == NULL ? 1 : strlen(text) + 1);
        else
            *trainer = copy;
    }
    lst__st_close(st);
    return status;
}
