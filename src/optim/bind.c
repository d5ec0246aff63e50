/* SPDX-License-Identifier: MIT
 *
 * Memory of the state and of the weights: where it lies, and what it holds at the start.
 */
#include "optim/optimizer.h"

#include <string.h>

#include "base/fail.h"
#include "optim/schedule_free.h"
#include "store/codec.h"

lst_status lst__check_index(const lst_optim *optim, size_t tensor, lst_error *err)
{
    if (tensor < optim->n_params)
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT, "there is no tensor %zu; the optimizer has %zu", tensor, optim->n_params);
}

bool lst__has_master(const lst_optim *optim)
{
    return lst_weight_form_master(optim->options.weights) != LST_N_CODECS;
}

lst__weights lst__param_weights(const lst_optim *optim, size_t tensor)
{
    const lst__param *param = &optim->params[tensor];
    return (lst__weights){.form = optim->options.weights,
                          .n_elems = param->n_elems,
                          .weights = param->weights,
                          .master = lst__has_master(optim) ? param->slots[0].memory : NULL};
}

lst_status lst_optim_bind_slot(lst_optim *optim, size_t tensor, size_t slot, void *memory, lst_error *err)
{
    lst_status status = lst__check_index(optim, tensor, err);
    if (status != LST_OK)
        return status;
    lst__param *param = &optim->params[tensor];
    if (slot >= param->n_slots)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s has no slot %zu; it has %zu", param->tensor.name, slot,
                         param->n_slots);
    if (!memory || (uintptr_t)memory % 64 != 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: the memory of slot %s must be aligned to 64 bytes",
                         param->tensor.name, param->slots[slot].name);
    param->slots[slot].memory = memory;
    param->ready = false;
    return LST_OK;
}

lst_status lst_optim_bind(lst_optim *optim, void *block, size_t bytes, lst_error *err)
{
    if (bytes < optim->block_bytes)
        return lst__fail(err, LST_ERR_ARGUMENT, "the block has %zu bytes; lst_optim_block_bytes asks for %zu", bytes,
                         optim->block_bytes);
    lst_status status = LST_OK;
    for (size_t i = 0; i < optim->n_params; i++)
        for (size_t k = 0; k < optim->params[i].n_slots && status == LST_OK; k++)
            status = lst_optim_bind_slot(optim, i, k, (char *)block + optim->params[i].offsets[k], err);
    return status;
}

/* Two parameters in the same bytes would be updated twice a step. */
static lst_status check_overlap(const lst_optim *optim, size_t tensor, const char *begin, lst_error *err)
{
    const lst_codec codec = lst_weight_form_codec(optim->options.weights);
    const char *end = begin + lst_codec_bytes(codec, optim->params[tensor].n_elems);
    for (size_t i = 0; i < optim->n_params; i++) {
        const lst__param *other = &optim->params[i];
        const char *at = other->weights;
        if (i != tensor && at && at < end && begin < at + lst_codec_bytes(codec, other->n_elems))
            return lst__fail(err, LST_ERR_ARGUMENT,
                             "the weights of tensors %s and %s overlap; tied weights are one tensor, stepped once",
                             optim->params[tensor].tensor.name, other->tensor.name);
    }
    return LST_OK;
}

lst_status lst_optim_bind_weights(lst_optim *optim, size_t tensor, void *weights, lst_error *err)
{
    lst_status status = lst__check_index(optim, tensor, err);
    if (status != LST_OK)
        return status;
    lst__param *param = &optim->params[tensor];
    const lst_codec codec = lst_weight_form_codec(optim->options.weights);
    const size_t align = codec == LST_CODEC_F32 ? 4 : 2;
    if (!weights || (uintptr_t)weights % align != 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: its weights (%s) must be aligned to %zu bytes",
                         param->tensor.name, lst_codec_name(codec), align);
    status = check_overlap(optim, tensor, weights, err);
    if (status != LST_OK)
        return status;
    param->weights = weights;
    return LST_OK;
}

lst_status lst_optim_bind_scratch(lst_optim *optim, void *memory, size_t bytes, lst_error *err)
{
    if (bytes < optim->scratch_bytes)
        return lst__fail(err, LST_ERR_ARGUMENT, "the scratch has %zu bytes; lst_optim_scratch_bytes asks for %zu",
                         bytes, optim->scratch_bytes);
    if ((uintptr_t)memory % 64 != 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "the scratch must be aligned to 64 bytes");
    optim->scratch = memory;
    return LST_OK;
}

size_t lst_optim_scratch_bytes(const lst_optim *optim)
{
    return optim->scratch_bytes;
}

lst_status lst__check_bound(const lst__param *param, lst_error *err)
{
    if (!param->weights)
        return lst__fail(err, LST_ERR_STATE, "tensor %s has no weights yet; call lst_optim_bind_weights first",
                         param->tensor.name);
    for (size_t k = 0; k < param->n_slots; k++)
        if (!param->slots[k].memory)
            return lst__fail(err, LST_ERR_STATE, "tensor %s: slot %s has no memory yet; call lst_optim_bind first",
                             param->tensor.name, param->slots[k].name);
    return LST_OK;
}

/* An array handled in runs that any codec accepts, dealt to the pool. */
#define RUN_ELEMS 65536

typedef struct transfer {
    lst__weights weights;
    const lst_slot *slot; /* set to zeros, where given */
    const float *in;      /* becomes the weights, where given; otherwise the master starts from the weights */
    float *out;           /* takes the weights, where given */
    size_t n_elems;
    lst__rounding rounding;
} transfer;

static void transfer_part(const transfer *t, size_t first, size_t n)
{
    float tile[LST__MAX_BLOCK] = {0};
    if (t->slot) {
        lst__codec(t->slot->codec)->encode(t->slot->memory, t->n_elems, first, n, tile, &t->rounding);
        return;
    }
    if (t->out) {
        lst__weights_decode(&t->weights, first, n, t->out + first);
        return;
    }
    if (t->in)
        memcpy(tile, t->in + first, n * sizeof *tile);
    else
        lst__weights_decode_visible(&t->weights, first, n, tile);
    lst__weights_encode(&t->weights, first, n, tile, &t->rounding);
}

static void transfer_run(void *context, size_t index, size_t worker)
{
    (void)worker;
    const transfer *t = context;
    const size_t begin = index * RUN_ELEMS;
    const size_t end = t->n_elems - begin < RUN_ELEMS ? t->n_elems : begin + RUN_ELEMS;
    for (size_t first = begin; first < end; first += LST__MAX_BLOCK)
        transfer_part(t, first, end - first < LST__MAX_BLOCK ? end - first : LST__MAX_BLOCK);
}

static void transfer_all(lst_pool *pool, transfer t)
{
    lst_pool_run(pool, t.n_elems / RUN_ELEMS + (t.n_elems % RUN_ELEMS != 0), transfer_run, &t);
}

static void start_param(lst_optim *optim, size_t tensor)
{
    lst__param *param = &optim->params[tensor];
    if (lst__has_master(optim))
        transfer_all(optim->options.pool,
                     (transfer){.weights = lst__param_weights(optim, tensor), .n_elems = param->n_elems});
    for (size_t k = lst__has_master(optim); k < param->n_slots; k++)
        transfer_all(optim->options.pool, (transfer){.slot = &param->slots[k], .n_elems = param->slots[k].n_elems});
    param->steps = 0;
    param->stepped = false;
    param->ready = true;
}

lst_status lst_optim_reset(lst_optim *optim, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < optim->n_params && status == LST_OK; i++)
        status = lst__check_bound(&optim->params[i], err);
    if (status != LST_OK)
        return status;
    for (size_t i = 0; i < optim->n_params; i++)
        start_param(optim, i);
    optim->begun = 0;
    optim->open = false;
    return LST_OK;
}

static lst_status check_values(const lst_optim *optim, size_t tensor, const void *values, lst_error *err)
{
    lst_status status = lst__check_index(optim, tensor, err);
    if (status == LST_OK)
        status = lst__check_bound(&optim->params[tensor], err);
    if (status == LST_OK && !values)
        status = lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: the array of values is NULL",
                           optim->params[tensor].tensor.name);
    return status;
}

lst_status lst_optim_set_weights_f32(lst_optim *optim, size_t tensor, const float *values, lst_error *err)
{
    lst_status status = check_values(optim, tensor, values, err);
    if (status == LST_OK)
        transfer_all(optim->options.pool, (transfer){.weights = lst__param_weights(optim, tensor),
                                                     .in = values,
                                                     .rounding = {optim->options.seed, 0, tensor, 0},
                                                     .n_elems = optim->params[tensor].n_elems});
    return status;
}

lst_status lst_optim_get_weights_f32(const lst_optim *optim, size_t tensor, float *out, lst_error *err)
{
    lst_status status = check_values(optim, tensor, out, err);
    if (status == LST_OK)
        transfer_all(optim->options.pool, (transfer){.weights = lst__param_weights(optim, tensor),
                                                     .out = out,
                                                     .n_elems = optim->params[tensor].n_elems});
    return status;
}

lst_status lst_optim_get_eval_weights_f32(const lst_optim *optim, size_t tensor, float *out, lst_error *err)
{
    lst_status status = lst_optim_get_weights_f32(optim, tensor, out, err);
    if (status != LST_OK || optim->options.rule != LST_RULE_SCHEDULE_FREE)
        return status;
    const lst__param *param = &optim->params[tensor];
    if (param->steps > 0) /* before the first step z is not set, and both are the weights */
        lst__schedule_free_average(&optim->groups[param->tensor.group], param->slots[lst__has_master(optim) + 1].memory,
                                   out, param->n_elems);
    return LST_OK;
}
