/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "ckpt/dtypes.h"
#include "ckpt/state.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "leanstep/ckpt.h"
#include "optim/optimizer.h"

char *lst__state_name(const lst_tensor *tensor, const lst_slot *slot)
{
    size_t room = strlen(tensor->name) + strlen(slot->name) + sizeof "state..";
    char *name = lst__alloc(room, 1);
    if (name != NULL)
        snprintf(name, room, "state.%s.%s", tensor->name, slot->name);
    return name;
}

void lst__state_shape(const lst_tensor *tensor, const lst_slot *slot, size_t *n_dims, const size_t **dims)
{
    size_t n_elems = 1;
    for (size_t i = 0; i < tensor->n_dims; i++)
        n_elems *= tensor->dims[i];
    const bool blocks = lst_codec_block(slot->codec) > 1; /* codes and scales: a row of bytes */
    const bool same = n_elems == slot->n_elems && !blocks;
    *n_dims = same ? tensor->n_dims : 1;
    *dims = same ? tensor->dims : blocks ? &slot->bytes : &slot->n_elems;
}

/* ---- the description ---- */

static json_t *group_json(const lst_hyper *h)
{
    json_t *group = json_object();
    bool ok = group != NULL;
#define LST_X(field) ok = ok && json_object_set_new(group, #field, json_real(h->field)) == 0;
    LST_HYPER_NUMBER_LIST(LST_X)
#undef LST_X
#define LST_X(field) ok = ok && json_object_set_new(group, #field, json_boolean(h->field)) == 0;
    LST_HYPER_SWITCH_LIST(LST_X)
#undef LST_X
    if (ok)
        return group;
    json_decref(group);
    return NULL;
}

static json_t *groups_json(const lst_optim *optim)
{
    json_t *groups = json_array();
    for (size_t i = 0; groups != NULL && i < optim->options.n_groups; i++)
        if (json_array_append_new(groups, group_json(&optim->groups[i])) != 0) {
            json_decref(groups);
            groups = NULL;
        }
    return groups;
}

/* Step counts are strings: JSON numbers above 2^53 are not safe with every reader. */
static json_t *tensor_json(const lst__param *param)
{
    char steps[32];
    snprintf(steps, sizeof steps, "%" PRId64, param->steps);
    json_t *shape = json_array();
    for (size_t i = 0; shape != NULL && i < param->tensor.n_dims; i++)
        if (json_array_append_new(shape, json_integer((json_int_t)param->tensor.dims[i])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    return json_pack("{s:s, s:I, s:o}", "steps", steps, "group", (json_int_t)param->tensor.group, "shape", shape);
}

static json_t *tensors_json(const lst_optim *optim)
{
    json_t *tensors = json_object();
    for (size_t i = 0; tensors != NULL && i < optim->n_params; i++)
        if (json_object_set_new(tensors, optim->params[i].tensor.name, tensor_json(&optim->params[i])) != 0) {
            json_decref(tensors);
            tensors = NULL;
        }
    return tensors;
}

/* The JSON's text; takes the value over. */
static lst_status text_of(json_t *value, const char *path, char **out, lst_error *err)
{
    lst_status status;
    if (value == NULL)
        status = lst__fail(err, LST_ERR_MEMORY,
                           "cannot write %s: no memory for its description, or a name is not UTF-8", path);
    else
        status = lst__json_text(value, out, err);
    json_decref(value);
    return status;
}

/* ---- the file ---- */

/* What is written: one entry a slot. */
typedef struct saving {
    const char *path;
    const lst_optim *optim;
    size_t n_slots;
    lst_st_entry *entries;
    const lst_slot **slots;
    char **names;
    char *groups, *tensors;
    char seed[32], begun[32];
} saving;

static void saving_free(saving *s)
{
    for (size_t i = 0; s->names != NULL && i < s->n_slots; i++)
        lst__free(s->names[i]);
    lst__free(s->names);
    lst__free(s->entries);
    lst__free(s->slots);
    lst__free(s->groups);
    lst__free(s->tensors);
}

static lst_status slot_source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                              lst_error *err)
{
    (void)err;
    const lst_slot *slot = ((const saving *)context)->slots[entry];
    *data = (const char *)slot->memory + offset;
    *n_bytes = slot->bytes - offset;
    return LST_OK;
}

static lst_status add_slot(saving *s, size_t at, const lst__param *param, const lst_slot *slot, lst_error *err)
{
    if (slot->memory == NULL)
        return lst__fail(err, LST_ERR_STATE, "cannot save tensor %s: slot %s has no memory; call lst_optim_bind first",
                         param->tensor.name, slot->name);
    s->names[at] = lst__state_name(&param->tensor, slot);
    if (s->names[at] == NULL)
        return lst__fail_memory(err, s->path, strlen(param->tensor.name) + 32);
    s->slots[at] = slot;
    s->entries[at].name = s->names[at];
    s->entries[at].dtype = lst__ckpt_dtype(slot->codec);
    lst__state_shape(&param->tensor, slot, &s->entries[at].n_dims, &s->entries[at].dims);
    return LST_OK;
}

static lst_status add_slots(saving *s, lst_error *err)
{
    for (size_t i = 0; i < s->optim->n_params; i++)
        s->n_slots += s->optim->params[i].n_slots;
    s->entries = lst__alloc(s->n_slots, sizeof *s->entries);
    s->slots = lst__alloc(s->n_slots, sizeof *s->slots);
    s->names = lst__alloc(s->n_slots, sizeof *s->names);
    if (s->entries == NULL || s->slots == NULL || s->names == NULL)
        return lst__fail_memory(err, s->path, s->n_slots * (sizeof *s->entries + sizeof *s->slots + sizeof *s->names));
    size_t at = 0;
    for (size_t i = 0; i < s->optim->n_params; i++)
        for (size_t k = 0; k < s->optim->params[i].n_slots; k++) {
            lst_status status = add_slot(s, at++, &s->optim->params[i], &s->optim->params[i].slots[k], err);
            if (status != LST_OK)
                return status;
        }
    return LST_OK;
}

static lst_status write_state(saving *s, const char *trainer, lst_error *err)
{
    const lst_optim_options *options = &s->optim->options;
    snprintf(s->seed, sizeof s->seed, "%" PRIu64, options->seed);
    snprintf(s->begun, sizeof s->begun, "%" PRId64, s->optim->begun);
    const lst_st_pair metadata[] = {
        {LST__KEY_FORMAT, LST__CKPT_FORMAT},
        {LST__KEY_RULE, lst_rule_name(options->rule)},
        {LST__KEY_WEIGHTS, lst_weight_form_name(options->weights)},
        {LST__KEY_STATE, lst_codec_name(options->state)},
        {LST__KEY_SEED, s->seed},
        {LST__KEY_BEGUN, s->begun},
        {LST__KEY_GROUPS, s->groups},
        {LST__KEY_TENSORS, s->tensors},
        {LST__KEY_TRAINER, trainer == NULL ? "" : trainer},
    };
    lst_st_content content = {.entries = s->entries,
                              .n_entries = s->n_slots,
                              .metadata = metadata,
                              .n_metadata = sizeof metadata / sizeof metadata[0],
                              .source = slot_source,
                              .context = s};
    return lst__st_write(s->path, &content, err);
}

lst_status lst_ckpt_save_optim(const char *path, const lst_optim *optim, const char *trainer, lst_error *err)
{
    saving s = {.path = path, .optim = optim};
    lst_status status = add_slots(&s, err);
    if (status == LST_OK)
        status = text_of(groups_json(optim), path, &s.groups, err);
    if (status == LST_OK)
        status = text_of(tensors_json(optim), path, &s.tensors, err);
    if (status == LST_OK)
        status = write_state(&s, trainer, err);
    saving_free(&s);
    return status;
}
