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

/* Rules whose state depends on the shape assume a matrix of about this width for a bare count. */
#define ASSUMED_COLUMNS 4096

/* A bare count: one vector of all parameters, or for such rules a matrix whose width divides it. */
static void bare_tensor(const lst_plan *plan, lst_arch_tensor *out)
{
    const size_t n = (size_t)plan->n_params;
    const lst_rule rule = plan->recipe.rule;
    *out = (lst_arch_tensor){.name = "parameters", .n_dims = 1, .dims = {n}, .n_elems = n};
    if (rule != LST_RULE_ADAFACTOR && rule != LST_RULE_ADAFACTOR_TORCH && rule != LST_RULE_MUON &&
        rule != LST_RULE_ADAM_MINI)
        return;
    size_t columns = ASSUMED_COLUMNS;
    while (n % columns != 0)
        columns--;
    out->n_dims = 2;
    out->dims[0] = n / columns;
    out->dims[1] = columns;
}

/* The i-th tensor. */
static void tensor_at(const lst_plan *plan, size_t index, lst_arch_tensor *out)
{
    if (plan->has_arch) {
        lst_arch_tensor_at(&plan->arch, index, out);
        return;
    }
    bare_tensor(plan, out);
}

/* As the optimizer is told of it. */
static void describe(const lst_plan *plan, const lst_arch_tensor *tensor, lst_tensor *out)
{
    if (plan->has_arch)
        lst_recipe_tensor(&plan->recipe, &plan->arch, tensor, out);
    else
        *out = (lst_tensor){.name = tensor->name, .n_dims = tensor->n_dims, .dims = {tensor->dims[0], tensor->dims[1]}};
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
    lst_tensor described;
    describe(plan, &tensor, &described);
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

/* Working memory of a step: one buffer, of the tensor that needs most. Steps happen in their own phase, or with
 * released gradients as the layers' turns end. A bare count has no tensors that it could be known of. */
static lst_status add_step_scratch(lst_plan *plan, const lst_optim_options *options, lst_error *err)
{
    size_t most = 0;
    lst_status status = LST_OK;
    for (size_t i = 0; i < tensor_count(plan) && plan->has_arch && status == LST_OK; i++) {
        lst_arch_tensor tensor;
        lst_tensor described;
        size_t bytes = 0;
        tensor_at(plan, i, &tensor);
        describe(plan, &tensor, &described);
        status = lst_optim_scratch(options, &described, &bytes, err);
        most = bytes > most ? bytes : most;
    }
    if (status != LST_OK || most == 0)
        return status;
    const bool kept = plan->recipe.grad_mode == LST_GRAD_KEEP;
    const lst_buffer b = {.bucket = LST_BUCKET_WORKSPACE,
                          .kind = LST_BUFFER_STEP_SCRATCH,
                          .layer = -1,
                          .name = "optimizer.scratch",
                          .codec = LST_CODEC_F32,
                          .n_dims = 1,
                          .dims = {(most + 3) / 4},
                          .first_phase = kept ? lst_phase_step(plan->n_layers) : lst_phase_loss(plan->n_layers),
                          .last_phase =
                              kept ? lst_phase_step(plan->n_layers) : lst_phase_embed_backward(plan->n_layers)};
    return lst__plan_add(plan, &b, err);
}

lst_status lst__plan_slots(lst_plan *plan, lst_error *err)
{
    const lst_recipe *r = &plan->recipe;
    lst_hyper groups[LST_RECIPE_GROUPS];
    const lst_optim_options options = {.struct_size = sizeof options,
                                       .rule = r->rule,
                                       .weights = r->weights,
                                       .grads = r->grads,
                                       .state = r->state,
                                       .n_groups = lst_recipe_groups(r, groups),
                                       .groups = groups};
    lst_status status = LST_OK;
    for (size_t i = 0; i < tensor_count(plan) && status == LST_OK; i++)
        status = add_slots(plan, &options, i, err);
    return status == LST_OK ? add_step_scratch(plan, &options, err) : status;
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
