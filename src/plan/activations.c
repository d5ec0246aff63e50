/* SPDX-License-Identifier: MIT */
#include "plan/activations.h"

#include <stdio.h>

#include "base/fail.h"
#include "plan/buffers.h"

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t whole_lines(size_t elems)
{
    return (elems + 15) / 16 * 16;
}

/* ---- sizes ---- */

size_t lst__act_elems(const lst_arch *arch, const lst_recipe *recipe, lst__act act)
{
    const size_t M = recipe->batch * recipe->seq, C = arch->hidden, F = arch->ffn, heads = arch->heads;
    const size_t A = arch->heads * arch->head_dim, G = arch->kv_heads * arch->head_dim;
    const size_t raw = arch->qk_norm, gated = !arch->gelu_mlp;
    switch (act) {
#define LST_X(id, name, elems, dropped)                                                                                \
    case LST__ACT_##id:                                                                                                \
        return elems;
        LST__ACT_LIST(LST_X)
#undef LST_X
    case LST__N_ACTS:
        break;
    }
    return 0;
}

int lst__act_kept(lst_act_policy policy, lst__act act)
{
    enum { POINTWISE = LST_ACT_POINTWISE, INPUTS = LST_ACT_INPUTS, NEVER = LST_N_ACT_POLICIES };
    static const int dropped_from[LST__N_ACTS] = {
#define LST_X(id, name, elems, dropped) dropped,
        LST__ACT_LIST(LST_X)
#undef LST_X
    };
    return (int)policy < dropped_from[act];
}

size_t lst__loss_chunk(const lst_recipe *recipe)
{
    size_t rows = recipe->batch * recipe->seq;
    return recipe->loss_chunk < rows ? recipe->loss_chunk : rows;
}

size_t lst__vector_elems(const lst_arch *arch)
{
    return whole_lines(most(arch->hidden, arch->head_dim));
}

size_t lst__worker_elems(const lst_arch *arch, const lst_recipe *recipe)
{
    bool widens = lst_weight_form_codec(recipe->weights) != LST_CODEC_F32;
    size_t scores = 2 * LST__QUERY_ROWS * recipe->seq, head = 3 * arch->head_dim;
    size_t panel = widens ? LST__PANEL_ELEMS : 0;
    return whole_lines(most(most(scores, panel), most(head, arch->hidden)));
}

size_t lst__generation_elems(const lst_arch *arch, size_t positions, size_t begin[LST__N_GENERATION_PARTS])
{
    const size_t R = LST__GENERATION_ROWS, C = arch->hidden, F = arch->ffn, V = arch->vocab, P = positions,
                 L = arch->layers;
    const size_t A = arch->heads * arch->head_dim, G = arch->kv_heads * arch->head_dim;
    const size_t raw = arch->qk_norm, gated = !arch->gelu_mlp;
    const size_t elems[LST__N_GENERATION_PARTS] = {
#define LST_X(id, n) n,
        LST__GENERATION_LIST(LST_X)
#undef LST_X
    };
    size_t total = 0;
    for (size_t i = 0; i < LST__N_GENERATION_PARTS; i++) {
        if (begin)
            begin[i] = total;
        total += whole_lines(elems[i]);
    }
    return total;
}

/* The buffer that all layers share for an activation that is not kept. */
static size_t shared_elems(const lst_arch *arch, const lst_recipe *recipe, size_t act)
{
    return lst__act_kept(recipe->activations, (lst__act)act) ? 0 : lst__act_elems(arch, recipe, (lst__act)act);
}

size_t lst__scratch_elems(const lst_arch *arch, const lst_recipe *recipe, lst__scratch which)
{
    const size_t rows = recipe->batch * recipe->seq, chunk = lst__loss_chunk(recipe);
    const size_t q = arch->heads * arch->head_dim, kv = arch->kv_heads * arch->head_dim;
    switch (which) {
    case LST__SCRATCH_ROTATION:
        return arch->learned_positions ? 0 : recipe->seq * arch->head_dim;
    case LST__SCRATCH_WORKER:
        return recipe->threads * lst__worker_elems(arch, recipe);
    case LST__SCRATCH_VECTORS:
        return lst_weight_form_codec(recipe->weights) == LST_CODEC_F32 ? 0 : 2 * lst__vector_elems(arch);
    case LST__SCRATCH_GRAD_X:
        return recipe->accumulation * rows * arch->hidden;
    case LST__SCRATCH_GRAD_NORM:
        return rows * arch->hidden;
    case LST__SCRATCH_GRAD_WIDE:
        return rows * most(arch->ffn, q + q + 2 * kv);
    case LST__SCRATCH_LOGITS:
        return chunk * arch->vocab;
    case LST__SCRATCH_HEAD_IN:
    case LST__SCRATCH_HEAD_GRAD:
        return chunk * arch->hidden;
    case LST__SCRATCH_HEAD_PARTS:
        return arch->vocab < LST__HEAD_PARTS_FROM ? 0 : LST__HEAD_PARTS * chunk * arch->hidden;
    case LST__SCRATCH_HEAD_STAT:
        return chunk * 2;
    case LST__SCRATCH_HEAD_ROWS:
        return chunk * 3;
    case LST__SCRATCH_GENERATION:
        return lst__generation_elems(arch, recipe->seq, NULL);
    default:
        break;
    }
    return shared_elems(arch, recipe, ((size_t)which - LST__SCRATCH_FORWARD) % LST__N_ACTS);
}

/* ---- buffers ---- */

static const char *const act_name[LST__N_ACTS] = {
#define LST_X(id, name, elems, dropped) name,
    LST__ACT_LIST(LST_X)
#undef LST_X
};

/* One buffer of n_elems numbers of 4 bytes; none if n_elems is 0. */
static lst_status add(lst_plan *plan, lst_buffer buffer, size_t n_elems, lst_error *err)
{
    if (n_elems == 0)
        return LST_OK;
    buffer.codec = LST_CODEC_F32;
    buffer.n_dims = 1;
    buffer.dims[0] = n_elems;
    return lst__plan_add(plan, &buffer, err);
}

int lst__scratch_used(lst__purpose purpose, lst__scratch which)
{
    switch (which) {
    case LST__SCRATCH_ROTATION:
    case LST__SCRATCH_WORKER:
    case LST__SCRATCH_VECTORS:
        return 1;
    case LST__SCRATCH_GENERATION:
        return purpose != LST__EVALUATES;
    case LST__SCRATCH_LOGITS:
    case LST__SCRATCH_HEAD_IN:
    case LST__SCRATCH_HEAD_STAT:
    case LST__SCRATCH_HEAD_ROWS:
        return purpose != LST__GENERATES;
    default:
        break;
    }
    const int forward = which >= LST__SCRATCH_FORWARD && which < LST__SCRATCH_BACKWARD;
    return purpose == LST__TRAINS || (purpose == LST__EVALUATES && forward);
}

/* The first phase in which an activation of a layer lives, and the last. */
static void life_of(lst_buffer *b, lst__purpose purpose, size_t layers, size_t layer, lst__act act)
{
    b->first_phase = lst_phase_forward(layer);
    if (act == LST__ACT_INPUT)
        b->first_phase = layer == 0 ? lst_phase_embed() : lst_phase_forward(layer - 1);
    b->last_phase = layer == layers ? lst_phase_loss(layers) : lst_phase_backward(layers, layer);
    if (purpose == LST__EVALUATES && layer < layers)
        b->last_phase = lst_phase_forward(layer);
}

static lst_status add_acts(lst_plan *plan, lst__purpose purpose, size_t layer, lst_error *err)
{
    size_t layers = plan->arch.layers;
    for (size_t a = 0; a < LST__N_ACTS; a++) {
        if (layer == layers ? a != LST__ACT_INPUT : !lst__act_kept(plan->recipe.activations, (lst__act)a))
            continue;
        lst_buffer b = {.bucket = LST_BUCKET_ACTIVATIONS, .kind = LST_BUFFER_ACT, .layer = (int)layer, .index = a};
        size_t elems = lst__act_elems(&plan->arch, &plan->recipe, (lst__act)a);
        life_of(&b, purpose, layers, layer, (lst__act)a);
        snprintf(b.name, sizeof b.name, "layer %zu: %s", layer, act_name[a]);
        lst_status status = add(plan, b, plan->recipe.accumulation * elems, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

/* What the policy does not keep: one buffer for the forward of all layers, another for their backward. */
static lst_status add_shared_acts(lst_plan *plan, lst__purpose purpose, lst_error *err)
{
    size_t layers = plan->arch.layers;
    for (size_t i = 0; i < 2 * LST__N_ACTS; i++) {
        size_t which = LST__SCRATCH_FORWARD + i;
        if (!lst__scratch_used(purpose, (lst__scratch)which))
            continue;
        lst_buffer b = {.bucket = LST_BUCKET_ACTIVATIONS, .kind = LST_BUFFER_SCRATCH, .layer = -1, .index = which};
        b.first_phase = i < LST__N_ACTS ? lst_phase_forward(0) : lst_phase_backward(layers, layers - 1);
        b.last_phase = i < LST__N_ACTS ? lst_phase_forward(layers - 1) : lst_phase_backward(layers, 0);
        snprintf(b.name, sizeof b.name, "%s of the layer at work: %s", i < LST__N_ACTS ? "forward" : "backward",
                 act_name[i % LST__N_ACTS]);
        lst_status status = add(plan, b, lst__scratch_elems(&plan->arch, &plan->recipe, (lst__scratch)which), err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

static lst_status add_scratch(lst_plan *plan, lst__purpose purpose, lst_error *err)
{
    const size_t layers = plan->arch.layers;
    const int LOAD = lst_phase_load(), LOSS = lst_phase_loss(layers), SAVE = lst_phase_save(layers);
    const int BACKWARD_FIRST = lst_phase_backward(layers, layers - 1), BACKWARD_LAST = lst_phase_backward(layers, 0);
    const int EMBED_BACKWARD = lst_phase_embed_backward(layers);
    const struct {
        const char *name;
        lst_bucket bucket;
        int first, last;
    } list[] = {
#define LST_X(id, name, bucket, first, last) {name, LST_BUCKET_##bucket, first, last},
        LST__SCRATCH_LIST(LST_X)
#undef LST_X
    };
    for (size_t i = 0; i < LST__SCRATCH_FORWARD; i++) {
        if (!lst__scratch_used(purpose, (lst__scratch)i))
            continue;
        lst_buffer b = {
            .bucket = list[i].bucket, .kind = LST_BUFFER_SCRATCH, .layer = -1, .index = i, .last_phase = list[i].last};
        b.first_phase = purpose == LST__GENERATES ? LOAD : list[i].first;
        snprintf(b.name, sizeof b.name, "%s", list[i].name);
        lst_status status = add(plan, b, lst__scratch_elems(&plan->arch, &plan->recipe, (lst__scratch)i), err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

static lst_status add_data(lst_plan *plan, lst_error *err)
{
    static const char *const names[] = {"token ids", "targets"};
    for (size_t i = LST__DATA_IDS; i <= LST__DATA_TARGETS; i++) {
        lst_buffer b = {.bucket = LST_BUCKET_DATA,
                        .kind = LST_BUFFER_DATA,
                        .layer = -1,
                        .index = i,
                        .first_phase = lst_phase_load(),
                        .last_phase = lst_phase_save(plan->arch.layers)};
        snprintf(b.name, sizeof b.name, "%s", names[i]);
        lst_status status = add(plan, b, plan->recipe.accumulation * plan->recipe.batch * plan->recipe.seq, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

/* Sizes below are products of options and dimensions; this bound keeps every one of them, in bytes, far from 2^64. */
static lst_status check_sizes(const lst_arch *a, const lst_recipe *r, lst_error *err)
{
    double rows = (double)r->accumulation * (double)r->batch * (double)r->seq, widest = (double)a->hidden;
    double q = (double)a->heads * (double)a->head_dim, kv = (double)a->kv_heads * (double)a->head_dim;
    widest = widest > (double)a->ffn ? widest : (double)a->ffn;
    widest = widest > 2.0 * q + 2.0 * kv ? widest : 2.0 * q + 2.0 * kv;
    double logits = (double)lst__loss_chunk(r) * ((double)a->vocab + 9.0 * (double)a->hidden);
    if (rows * widest * (double)(a->layers + 1) + logits < 0x1p48)
        return LST_OK;
    return lst__fail(
        err, LST_ERR_ARGUMENT,
        "--batch %zu x --seq %zu x --accumulation %zu: the activations of %zu layers would be more than 2^48 "
        "numbers; give less",
        r->batch, r->seq, r->accumulation, a->layers);
}

static lst_status add_batch(lst_plan *plan, lst__purpose purpose, lst_error *err)
{
    lst_status status = check_sizes(&plan->arch, &plan->recipe, err);
    for (size_t layer = 0; status == LST_OK && layer <= plan->arch.layers; layer++)
        status = add_acts(plan, purpose, layer, err);
    if (status == LST_OK)
        status = add_shared_acts(plan, purpose, err);
    if (status == LST_OK)
        status = add_scratch(plan, purpose, err);
    return status == LST_OK ? add_data(plan, err) : status;
}

lst_status lst__plan_activations(lst_plan *plan, lst_error *err)
{
    return add_batch(plan, LST__TRAINS, err);
}

/* A plan without gradients and state. */
static lst_status plan_forward(lst_plan **out, const lst_arch *arch, const lst_recipe *recipe, lst__purpose purpose,
                               lst_error *err)
{
    lst_plan *plan;
    lst_status status = lst__plan_begin(&plan, arch, recipe, err);
    if (status != LST_OK)
        return status;
    status = lst__plan_weights(plan, err);
    if (status == LST_OK)
        status = purpose == LST__GENERATES ? add_scratch(plan, purpose, err) : add_batch(plan, purpose, err);
    if (status == LST_OK)
        status = lst__plan_finish(plan, err);
    if (status != LST_OK) {
        lst_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return LST_OK;
}

lst_status lst__plan_generation(lst_plan **out, const lst_arch *arch, lst_weight_form form, size_t positions,
                                size_t threads, lst_error *err)
{
    lst_recipe recipe;
    if (positions < 2 || positions > arch->max_positions)
        return lst__fail(err, LST_ERR_ARGUMENT, "a cache of %zu positions: this model can use 2 to %zu", positions,
                         arch->max_positions);
    lst_recipe_default(&recipe);
    recipe.weights = form;
    recipe.batch = 0; /* no step: what tells the model that it can only generate */
    recipe.seq = positions;
    recipe.threads = threads;
    return plan_forward(out, arch, &recipe, LST__GENERATES, err);
}

lst_status lst__plan_evaluation(lst_plan **out, const lst_arch *arch, const lst_recipe *recipe, lst_error *err)
{
    lst_recipe forward = *recipe;
    if (recipe->batch < 1 || recipe->seq < 1 || recipe->seq > arch->max_positions)
        return lst__fail(err, LST_ERR_ARGUMENT, "sequences of %zu tokens: this model can use 1 to %zu", recipe->seq,
                         arch->max_positions);
    forward.activations = LST_ACT_INPUTS;
    forward.accumulation = 1;
    return plan_forward(out, arch, &forward, LST__EVALUATES, err);
}
