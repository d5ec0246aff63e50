/* SPDX-License-Identifier: MIT
 *
 * The buffers that follow from parameters and recipe alone: weights, optimizer state, gradients.
 */
#include "plan/buffers.h"

#include <stdio.h>

static size_t tensor_count(const lst_plan *plan)
{
    return plan->has_arch ? lst_arch_tensor_count(&plan->arch) : 1;
}

/* The i-th tensor; of a bare parameter count: one vector of them all. */
static void tensor_at(const lst_plan *plan, size_t index, lst_arch_tensor *out)
{
    if (plan->has_arch) {
        lst_arch_tensor_at(&plan->arch, index, out);
        return;
    }
    *out = (lst_arch_tensor){
        .name = "parameters", .n_dims = 1, .dims = {(size_t)plan->n_params}, .n_elems = (size_t)plan->n_params};
}

/* A buffer in the shape of a tensor, alive all along. */
static lst_buffer persistent(const lst_plan *plan, const lst_arch_tensor *tensor, lst_buffer_kind kind, size_t index)
{
    lst_buffer b = {.kind = kind,
                    .layer = -1,
                    .index = index,
                    .n_dims = tensor->n_dims,
                    .dims = {tensor->dims[0], tensor->dims[1]}};
    b.first_phase = lst_phase_load();
    b.last_phase = lst_phase_save(plan->n_layers);
    return b;
}

lst_status lst__plan_weights(lst_plan *plan, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < tensor_count(plan) && status == LST_OK; i++) {
        lst_arch_tensor tensor;
        tensor_at(plan, i, &tensor);
        lst_buffer b = persistent(plan, &tensor, LST_BUFFER_WEIGHT, i);
        b.bucket = LST_BUCKET_WEIGHTS;
        b.codec = lst_weight_form_codec(plan->recipe.weights);
        snprintf(b.name, sizeof b.name, "%s", tensor.name);
        status = lst__plan_add(plan, &b, err);
    }
    return status;
}

static lst_status add_slots(lst_plan *plan, const lst_optim_options *options, size_t index, lst_error *err)
{
    lst_arch_tensor tensor;
    tensor_at(plan, index, &tensor);
    const lst_tensor described = {
        .name = tensor.name, .n_dims = tensor.n_dims, .dims = {tensor.dims[0], tensor.dims[1]}};
    lst_slot slots[LST_MAX_SLOTS];
    size_t n_slots;
    lst_status status = lst_optim_slots(options, &described, slots, &n_slots, err);
    for (size_t s = 0; status == LST_OK && s < n_slots; s++) {
        lst_buffer b = persistent(plan, &tensor, LST_BUFFER_SLOT, index);
        b.bucket = slots[s].bucket;
        b.layer = (int)s;
        b.codec = slots[s].codec;
        b.n_dims = 1;
        b.dims[0] = slots[s].n_elems;
        snprintf(b.name, sizeof b.name, "%.80s.%.24s", tensor.name, slots[s].name);
        status = lst__plan_add(plan, &b, err);
    }
    return status;
}

lst_status lst__plan_slots(lst_plan *plan, lst_error *err)
{
    const lst_recipe *r = &plan->recipe;
    const lst_optim_options options = {.struct_size = sizeof options,
                                       .rule = r->rule,
                                       .weights = r->weights,
                                       .grads = r->grads,
                                       .state = r->state,
                                       .n_groups = 1,
                                       .groups = &r->hyper};
    lst_status status = LST_OK;
    for (size_t i = 0; i < tensor_count(plan) && status == LST_OK; i++)
        status = add_slots(plan, &options, i, err);
    return status;
}

static lst_status add_kept_gradients(lst_plan *plan, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < tensor_count(plan) && status == LST_OK; i++) {
        lst_arch_tensor tensor;
        tensor_at(plan, i, &tensor);
        lst_buffer b = persistent(plan, &tensor, LST_BUFFER_GRADIENT, i);
        b.bucket = LST_BUCKET_GRADIENTS;
        b.codec = plan->recipe.grads;
        snprintf(b.name, sizeof b.name, "%.90s.gradient", tensor.name);
        status = lst__plan_add(plan, &b, err);
    }
    return status;
}

/* Where and when the float32 sums of a tensor's gradient live. */
static void place_sums(const lst_plan *plan, const lst_arch_tensor *tensor, lst_buffer *b)
{
    size_t layers = plan->n_layers;
    if (tensor->role == LST_ROLE_EMBED) {
        b->kind = LST_BUFFER_EMBED_GRADIENT;
        b->first_phase = plan->arch.tied ? lst_phase_loss(layers) : lst_phase_embed_backward(layers);
        b->last_phase = lst_phase_embed_backward(layers);
    } else if (tensor->role == LST_ROLE_POSITIONS) {
        b->index = LST_ROLE_POSITIONS;
        b->first_phase = b->last_phase = lst_phase_embed_backward(layers);
    } else if (tensor->layer == (int)layers) {
        b->kind = tensor->role == LST_ROLE_HEAD_W ? LST_BUFFER_HEAD_GRADIENT : LST_BUFFER_LAYER_GRADIENT;
        b->index = tensor->role == LST_ROLE_HEAD_W ? 0 : (size_t)tensor->role;
        b->first_phase = b->last_phase = lst_phase_loss(layers);
    } else {
        b->index = (size_t)tensor->role;
        b->first_phase = lst_phase_backward(layers, layers - 1);
        b->last_phase = lst_phase_backward(layers, 0);
    }
}

static lst_status add_sums(lst_plan *plan, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < tensor_count(plan) && status == LST_OK; i++) {
        lst_arch_tensor tensor;
        tensor_at(plan, i, &tensor);
        if (tensor.layer > 0 && tensor.layer < (int)plan->n_layers)
            continue; /* layer 0 stands for all: they have the same shapes and take turns */
        lst_buffer b = persistent(plan, &tensor, LST_BUFFER_LAYER_GRADIENT, 0);
        b.bucket = LST_BUCKET_GRADIENTS;
        b.codec = LST_CODEC_F32;
        place_sums(plan, &tensor, &b);
        snprintf(b.name, sizeof b.name, "%.90s.sums", tensor.name);
        status = lst__plan_add(plan, &b, err);
    }
    return status;
}

lst_status lst__plan_gradients(lst_plan *plan, lst_error *err)
{
    bool kept = plan->recipe.grad_mode == LST_GRAD_KEEP;
    lst_status status = kept ? add_kept_gradients(plan, err) : LST_OK;
    if (status == LST_OK && plan->has_arch && (!kept || plan->recipe.grads != LST_CODEC_F32))
        status = add_sums(plan, err);
    return status;
}
