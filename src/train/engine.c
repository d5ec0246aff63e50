/* SPDX-License-Identifier: MIT */
#include "train/engine.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

static lst_status create_optimizer(train_engine *engine, uint64_t seed, lst_error *err)
{
    const lst_plan *plan = engine->plan;
    lst_hyper groups[LST_RECIPE_GROUPS];
    engine->n_groups = lst_recipe_groups(&plan->recipe, groups);
    const bool kept = plan->recipe.grad_mode == LST_GRAD_KEEP;
    lst_optim_options options = {.struct_size = sizeof options,
                                 .rule = plan->recipe.rule,
                                 .weights = plan->recipe.weights,
                                 .grads = kept ? plan->recipe.grads : LST_CODEC_F32,
                                 .state = plan->recipe.state,
                                 .n_groups = engine->n_groups,
                                 .groups = groups,
                                 .seed = seed,
                                 .pool = engine->pool};
    lst_tensor *tensors = lst__alloc(engine->n_tensors, sizeof *tensors);
    lst_arch_tensor *described = lst__alloc(engine->n_tensors, sizeof *described);
    lst_status status = LST_OK;
    if (!tensors || !described)
        status =
            lst__fail_memory(err, "the list of tensors", engine->n_tensors * (sizeof *tensors + sizeof *described));
    for (size_t i = 0; status == LST_OK && i < engine->n_tensors; i++) {
        lst_arch_tensor_at(&plan->arch, i, &described[i]);
        lst_recipe_tensor(&plan->recipe, &plan->arch, &described[i], &tensors[i]);
    }
    if (status == LST_OK)
        status = lst_optim_create(&engine->optim, &options, tensors, engine->n_tensors, err);
    lst__free(tensors);
    lst__free(described);
    return status;
}

/* Each slot where the plan put it, counted in the ledger. */
static lst_status bind_slots(train_engine *engine, size_t tensor, lst_error *err)
{
    for (size_t s = 0; s < lst_optim_slot_count(engine->optim, tensor); s++) {
        const lst_slot *slot = lst_optim_slot(engine->optim, tensor, s);
        const lst_buffer *buffer = lst_plan_find(engine->plan, LST_BUFFER_SLOT, (int)s, tensor);
        const char *name = lst_optim_tensor(engine->optim, tensor)->name;
        if (!buffer || buffer->bytes != slot->bytes || buffer->bucket != slot->bucket)
            return lst__fail(err, LST_ERR_STATE, "%s, %s: the plan holds %zu bytes and the optimizer needs %zu", name,
                             slot->name, buffer ? buffer->bytes : 0, slot->bytes);
        lst_status status = lst_optim_bind_slot(engine->optim, tensor, s, engine->arena.base + buffer->offset, err);
        if (status != LST_OK)
            return status;
        lst_ledger_take(&engine->ledger, slot->bucket, slot->bytes);
    }
    return LST_OK;
}

static lst_status bind_optimizer(train_engine *engine, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < engine->n_tensors; i++) {
        status = lst_optim_bind_weights(engine->optim, i, model_weight(engine->model, i), err);
        if (status == LST_OK)
            status = bind_slots(engine, i, err);
    }
    const lst_buffer *scratch = lst_plan_find(engine->plan, LST_BUFFER_STEP_SCRATCH, -1, 0);
    if (status == LST_OK && scratch)
        status = lst_optim_bind_scratch(engine->optim, engine->arena.base + scratch->offset, scratch->bytes, err);
    return status;
}

static lst_status build(train_engine *engine, uint64_t seed, lst_error *err)
{
    const lst_recipe *recipe = &engine->plan->recipe;
    if (recipe->loss_scale && recipe->grad_mode == LST_GRAD_RELEASE)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "a loss scale needs every gradient before the first update, and --grads release "
                         "hands them out one by one. Use --grads keep, or bf16 weights, which need no loss scale.");
    engine->squares = lst__alloc(engine->n_tensors, sizeof *engine->squares);
    if (!engine->squares)
        return lst__fail_memory(err, "the norms of the gradients", engine->n_tensors * sizeof *engine->squares);
    lst_ledger_init(&engine->ledger);
    lst_loss_scale_default(&engine->scale);
    lst_status status = create_optimizer(engine, seed, err);
    if (status == LST_OK)
        status = lst__arena_reserve(&engine->arena, engine->plan->arena_bytes, engine->pool, err);
    if (status == LST_OK)
        status = model_create(&engine->model, engine->plan, engine->arena.base, &engine->ledger, engine->pool, err);
    if (status == LST_OK)
        status = bind_optimizer(engine, err);
    return status;
}

lst_status train_engine_create(train_engine **out, const lst_plan *plan, lst_pool *pool, uint64_t seed, lst_error *err)
{
    train_engine *engine = lst__alloc(1, sizeof *engine);
    if (!engine)
        return lst__fail_memory(err, "the engine", sizeof *engine);
    engine->plan = plan;
    engine->pool = pool;
    engine->n_tensors = lst_arch_tensor_count(&plan->arch);
    lst_status status = build(engine, seed, err);
    if (status != LST_OK) {
        train_engine_destroy(engine);
        return status;
    }
    *out = engine;
    return LST_OK;
}

void train_engine_destroy(train_engine *engine)
{
    if (!engine)
        return;
    model_destroy(engine->model);
    lst_optim_destroy(engine->optim);
    if (engine->arena.base)
        lst__arena_release(&engine->arena);
    lst__free(engine->squares);
    lst__free(engine);
}

lst_status train_engine_init_random(train_engine *engine, uint64_t seed, lst_error *err)
{
    model_init_random(engine->model, seed);
    return lst_optim_reset(engine->optim, err);
}

static float used_scale(const train_engine *engine)
{
    return engine->plan->recipe.loss_scale ? engine->scale.scale : 1;
}

static float used_unscale(const train_engine *engine)
{
    return engine->plan->recipe.loss_scale ? lst_loss_scale_unscale(&engine->scale) : 1;
}

static const char *tensor_name(const train_engine *engine, size_t tensor)
{
    return lst_optim_tensor(engine->optim, tensor)->name;
}

static size_t tensor_elems(const train_engine *engine, size_t tensor)
{
    const lst_tensor *t = lst_optim_tensor(engine->optim, tensor);
    size_t n = 1;
    for (size_t d = 0; d < t->n_dims; d++)
        n *= t->dims[d];
    return n;
}

/* The square of the global norm, summed in the tensors' order: the same for both gradient modes. */
static double global_norm(const train_engine *engine)
{
    double sum = 0;
    for (size_t i = 0; i < engine->n_tensors; i++)
        sum += engine->squares[i];
    return sqrt(sum);
}

/* ---- gradients kept ---- */

static lst_status apply_kept(train_engine *engine, const train_step *step, lst_error *err)
{
    lst_grad_scale scale = {used_unscale(engine), step->clip};
    lst_status status = lst_optim_begin(engine->optim, err);
    for (size_t i = 0; status == LST_OK && i < engine->n_tensors; i++)
        status = lst_optim_step_tensor(engine->optim, i, model_gradient(engine->model, i), scale, err);
    return status;
}

static lst_status step_kept(train_engine *engine, train_step *out, lst_error *err)
{
    const lst_recipe *recipe = &engine->plan->recipe;
    lst_status status = model_step(engine->model, used_scale(engine), NULL, &out->loss, err);
    if (status != LST_OK)
        return status;
    model_enter(engine->model, lst_phase_step(engine->plan->n_layers));
    out->skipped = isfinite(out->loss) ? NULL : "loss";
    for (size_t i = 0; i < engine->n_tensors; i++) {
        bool finite;
        lst_grad_sum_squares(model_gradient(engine->model, i), recipe->grads, tensor_elems(engine, i),
                             used_unscale(engine), engine->pool, &engine->squares[i], &finite);
        if (!finite && !out->skipped)
            out->skipped = tensor_name(engine, i);
    }
    out->grad_norm = out->skipped ? NAN : global_norm(engine);
    if (out->skipped)
        return LST_OK;
    if (recipe->clip_norm > 0)
        out->clip = lst_clip_coef(out->grad_norm, recipe->clip_norm);
    return apply_kept(engine, out, err);
}

/* ---- gradients released ---- */

typedef struct release {
    train_engine *engine;
    train_step *out;
    bool moved; /* a tensor has been updated in this step */
} release;

/* LST_ERR_NONFINITE from a hook before the first update is the sign to skip; step_released takes it up. */
static lst_status on_loss(void *user, double loss, lst_error *err)
{
    release *r = user;
    r->out->loss = loss;
    if (isfinite(loss))
        return LST_OK;
    r->out->skipped = "loss";
    return lst__fail(err, LST_ERR_NONFINITE, "the loss is not finite");
}

static lst_status on_gradient(void *user, size_t tensor, const void *grad, lst_codec codec, lst_error *err)
{
    release *r = user;
    train_engine *engine = r->engine;
    bool finite;
    lst_grad_sum_squares(grad, codec, tensor_elems(engine, tensor), 1, engine->pool, &engine->squares[tensor], &finite);
    if (!finite && !r->moved)
        r->out->skipped = tensor_name(engine, tensor);
    if (!finite)
        return lst__fail(
            err, LST_ERR_NONFINITE,
            "the gradient of %s is not finite, and other tensors of this step have "
            "already been updated (--grads release). The last checkpoint is intact: go on from it with a lower "
            "rate, or train with --grads keep, which can skip such a step.",
            tensor_name(engine, tensor));
    lst_status status = r->moved ? LST_OK : lst_optim_begin(engine->optim, err);
    r->moved = true;
    if (status == LST_OK)
        status = lst_optim_step_tensor(engine->optim, tensor, grad, (lst_grad_scale){1, 1}, err);
    return status;
}

static lst_status step_released(train_engine *engine, train_step *out, lst_error *err)
{
    release r = {engine, out, false};
    model_hooks hooks = {&r, on_loss, on_gradient};
    lst_error stop;
    lst_status status = model_step(engine->model, 1, &hooks, &out->loss, &stop);
    model_enter(engine->model, lst_phase_step(engine->plan->n_layers));
    if (status == LST_ERR_NONFINITE && out->skipped) {
        out->grad_norm = NAN;
        return LST_OK;
    }
    if (status != LST_OK && err)
        *err = stop;
    if (status == LST_OK)
        out->grad_norm = global_norm(engine);
    return status;
}

static lst_status count_skip(train_engine *engine, const train_step *out, lst_error *err)
{
    engine->n_skipped_in_row = out->skipped ? engine->n_skipped_in_row + 1 : 0;
    engine->n_skipped += out->skipped != NULL;
    if (engine->plan->recipe.loss_scale)
        lst_loss_scale_update(&engine->scale, out->skipped != NULL);
    if (engine->n_skipped_in_row < TRAIN_MAX_SKIPS)
        return LST_OK;
    return lst__fail(err, LST_ERR_NONFINITE,
                     "%d steps in a row were skipped because numbers were not finite (now: %s): nothing is "
                     "being learned. Lower --lr, lengthen --warmup, or clip with --clip 1.",
                     TRAIN_MAX_SKIPS, out->skipped);
}

lst_status train_engine_step(train_engine *engine, double lr, train_step *out, lst_error *err)
{
    train_step step = {.loss = NAN, .grad_norm = NAN, .clip = 1, .loss_scale = used_scale(engine)};
    step.counted = model_counted(engine->model);
    lst_status status = LST_OK;
    for (size_t g = 0; status == LST_OK && g < engine->n_groups; g++)
        status = lst_optim_set_lr(engine->optim, g, lr, err);
    if (status == LST_OK && engine->plan->recipe.grad_mode == LST_GRAD_KEEP)
        status = step_kept(engine, &step, err);
    else if (status == LST_OK)
        status = step_released(engine, &step, err);
    if (status == LST_OK)
        status = count_skip(engine, &step, err);
    if (status == LST_OK)
        *out = step;
    return status;
}
