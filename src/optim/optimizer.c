/* SPDX-License-Identifier: MIT
 *
 * The handle: creation, questions, groups. No memory that grows with a tensor is taken here.
 */
#include "optim/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* Slots of at least this size stream; they are set apart modulo 4,096. Smaller ones stay in cache anyway. */
#define STREAM_BYTES 65536
/* How far apart: 4,096 / 8 and one cache line, so that up to seven arrays and the caller's own get their own place. */
#define STAGGER 576

/* Lays the slots of one parameter out behind `at`; returns where the next one may start. */
static size_t lay_out(lst__param *param, size_t at)
{
    for (size_t i = 0; i < param->n_slots; i++) {
        at = (at + 63) & ~(size_t)63;
        if (param->slots[i].bytes >= STREAM_BYTES) {
            const size_t place = (i + 2) * STAGGER % 4096;
            at += (place + 4096 - at % 4096) % 4096;
        }
        param->offsets[i] = at;
        at += param->slots[i].bytes;
    }
    return at;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static lst_status check_names(const lst_tensor *tensors, size_t n, lst_error *err)
{
    const char **names = lst__alloc(n, sizeof *names);
    if (!names)
        return lst__fail_memory(err, "the list of tensor names", n * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = tensors[i].name ? tensors[i].name : "";
    qsort(names, n, sizeof *names, compare_names);
    lst_status status = LST_OK;
    for (size_t i = 1; i < n && status == LST_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status =
                lst__fail(err, LST_ERR_ARGUMENT,
                          "two tensors are named \"%s\"; names must differ (tied weights are one tensor)", names[i]);
    lst__free(names);
    return status;
}

static lst_status add_param(lst_optim *optim, const lst_tensor *tensor, lst_error *err)
{
    lst__param *param = &optim->params[optim->n_params];
    lst_status status = lst__slots_of(&optim->options, tensor, param->slots, &param->n_slots, err);
    if (status != LST_OK)
        return status;
    param->tensor = *tensor;
    param->n_elems = lst__tensor_n(tensor);
    param->tensor.name = lst__strdup(tensor->name);
    if (!param->tensor.name)
        return lst__fail_memory(err, "a tensor's name", strlen(tensor->name) + 1);
    optim->n_params++;
    const size_t end = lay_out(param, optim->block_bytes);
    if (end < optim->block_bytes)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: the state of all tensors together is too large",
                         tensor->name);
    optim->block_bytes = end;
    const lst__rule *rule = optim->rule;
    const size_t scratch = rule->scratch_bytes ? rule->scratch_bytes(&optim->groups[tensor->group], tensor) : 0;
    if (scratch > optim->scratch_bytes)
        optim->scratch_bytes = scratch;
    return LST_OK;
}

static lst_status fill(lst_optim *optim, const lst_optim_options *options, const lst_tensor *tensors, size_t n_tensors,
                       lst_error *err)
{
    optim->options = *options;
    optim->rule = lst__rule_get(options->rule);
    optim->kernels = lst__kernels_get();
    optim->groups = lst__alloc(options->n_groups, sizeof *optim->groups);
    if (!optim->groups)
        return lst__fail_memory(err, "the parameter groups", options->n_groups * sizeof *optim->groups);
    memcpy(optim->groups, options->groups, options->n_groups * sizeof *optim->groups);
    optim->options.groups = optim->groups;
    optim->params = lst__alloc(n_tensors, sizeof *optim->params);
    optim->batch = lst__alloc(n_tensors, sizeof *optim->batch);
    if (!optim->params || !optim->batch)
        return lst__fail_memory(err, "the table of tensors",
                                n_tensors * (sizeof *optim->params + sizeof *optim->batch));
    lst_status status = check_names(tensors, n_tensors, err);
    for (size_t i = 0; i < n_tensors && status == LST_OK; i++)
        status = add_param(optim, &tensors[i], err);
    return status;
}

lst_status lst_optim_create(lst_optim **out, const lst_optim_options *options, const lst_tensor *tensors,
                            size_t n_tensors, lst_error *err)
{
    lst_status status = lst__options_check(options, err);
    if (status != LST_OK)
        return status;
    if (n_tensors == 0 || !tensors)
        return lst__fail(err, LST_ERR_ARGUMENT, "an optimizer needs at least one tensor");
    lst_optim *optim = lst__alloc(1, sizeof *optim);
    if (!optim)
        return lst__fail_memory(err, "an optimizer", sizeof *optim);
    status = fill(optim, options, tensors, n_tensors, err);
    if (status != LST_OK) {
        lst_optim_destroy(optim);
        return status;
    }
    *out = optim;
    return LST_OK;
}

void lst_optim_destroy(lst_optim *optim)
{
    if (!optim)
        return;
    for (size_t i = 0; i < optim->n_params; i++)
        lst__free((void *)optim->params[i].tensor.name);
    lst__free(optim->params);
    lst__free(optim->batch);
    lst__free(optim->groups);
    lst__free(optim);
}

size_t lst_optim_state_bytes(const lst_optim *optim)
{
    size_t bytes = 0;
    for (size_t i = 0; i < optim->n_params; i++)
        for (size_t k = 0; k < optim->params[i].n_slots; k++)
            bytes += optim->params[i].slots[k].bytes;
    return bytes;
}

size_t lst_optim_bucket_bytes(const lst_optim *optim, lst_bucket bucket)
{
    size_t bytes = 0;
    for (size_t i = 0; i < optim->n_params; i++)
        for (size_t k = 0; k < optim->params[i].n_slots; k++)
            if (optim->params[i].slots[k].bucket == bucket)
                bytes += optim->params[i].slots[k].bytes;
    return bytes;
}

size_t lst_optim_block_bytes(const lst_optim *optim)
{
    return optim->block_bytes;
}

size_t lst_optim_tensor_count(const lst_optim *optim)
{
    return optim->n_params;
}

const lst_tensor *lst_optim_tensor(const lst_optim *optim, size_t tensor)
{
    return tensor < optim->n_params ? &optim->params[tensor].tensor : NULL;
}

size_t lst_optim_slot_count(const lst_optim *optim, size_t tensor)
{
    return tensor < optim->n_params ? optim->params[tensor].n_slots : 0;
}

const lst_slot *lst_optim_slot(const lst_optim *optim, size_t tensor, size_t slot)
{
    return slot < lst_optim_slot_count(optim, tensor) ? &optim->params[tensor].slots[slot] : NULL;
}

lst_status lst_optim_set_lr(lst_optim *optim, size_t group, double lr, lst_error *err)
{
    if (group >= optim->options.n_groups)
        return lst__fail(err, LST_ERR_ARGUMENT, "there is no group %zu; the optimizer has %zu", group,
                         optim->options.n_groups);
    lst_hyper changed = optim->groups[group];
    changed.lr = lr;
    lst_status status = lst__hyper_check(optim->options.rule, &changed, group, err);
    if (status == LST_OK)
        optim->groups[group] = changed;
    return status;
}

const lst_hyper *lst_optim_group(const lst_optim *optim, size_t group)
{
    return group < optim->options.n_groups ? &optim->groups[group] : NULL;
}

int64_t lst_optim_steps(const lst_optim *optim, size_t tensor)
{
    return tensor < optim->n_params ? optim->params[tensor].steps : 0;
}

lst_status lst_optim_set_steps(lst_optim *optim, size_t tensor, int64_t steps, lst_error *err)
{
    lst_status status = lst__check_index(optim, tensor, err);
    if (status != LST_OK)
        return status;
    if (steps < 0 || steps == INT64_MAX)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: %lld is no number of steps",
                         optim->params[tensor].tensor.name, (long long)steps);
    optim->params[tensor].steps = steps;
    optim->params[tensor].ready = true;
    return LST_OK;
}

int64_t lst_optim_begun(const lst_optim *optim)
{
    return optim->begun;
}

void lst_optim_set_begun(lst_optim *optim, int64_t begun)
{
    optim->begun = begun;
    optim->open = false;
}
