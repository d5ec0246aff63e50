/* SPDX-License-Identifier: MIT
 *
 * A step: one tensor at a time as its gradient becomes complete, or all at once.
 */
#include "optim/optimizer.h"

#include "base/fail.h"

lst_status lst_optim_begin(lst_optim *optim, lst_error *err)
{
    if (optim->begun == INT64_MAX)
        return lst__fail(err, LST_ERR_STATE, "the count of steps is exhausted");
    for (size_t i = 0; i < optim->n_params; i++)
        optim->params[i].stepped = false;
    optim->begun++;
    optim->open = true;
    return LST_OK;
}

static lst_status check_ready(const lst_optim *optim, size_t tensor, lst_error *err)
{
    const lst__param *param = &optim->params[tensor];
    lst_status status = lst__check_bound(param, err);
    if (status != LST_OK)
        return status;
    if (!param->ready)
        return lst__fail(
            err, LST_ERR_STATE,
            "tensor %s: its state holds nothing yet; call lst_optim_reset, or load it and lst_optim_set_steps",
            param->tensor.name);
    if (optim->scratch_bytes > 0 && !optim->scratch)
        return lst__fail(err, LST_ERR_STATE,
                         "the rule %s needs %zu bytes of scratch; call lst_optim_bind_scratch first",
                         lst_rule_name(optim->options.rule), optim->scratch_bytes);
    return LST_OK;
}

static lst_status check_grad(const lst_optim *optim, size_t tensor, const void *grad, lst_error *err)
{
    const lst__param *param = &optim->params[tensor];
    const size_t align = optim->options.grads == LST_CODEC_F32 ? 4 : 2;
    if (!grad)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: the gradient is NULL; leave out tensors without one",
                         param->tensor.name);
    if ((uintptr_t)grad % align != 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: its gradient (%s) must be aligned to %zu bytes",
                         param->tensor.name, lst_codec_name(optim->options.grads), align);
    return check_ready(optim, tensor, err);
}

static lst__step step_of(const lst_optim *optim, size_t tensor, const void *grad, lst_grad_scale scale)
{
    const lst__param *param = &optim->params[tensor];
    const size_t master = lst__has_master(optim);
    return (lst__step){
        .tensor = &param->tensor,
        .hyper = &optim->groups[param->tensor.group],
        .t = param->steps + 1,
        .n_elems = param->n_elems,
        .weights = lst__param_weights(optim, tensor),
        .grad = grad,
        .grad_codec = optim->options.grads,
        .scale = scale,
        .slots = param->slots + master,
        .n_slots = param->n_slots - master,
        .rounding = {optim->options.seed, (uint64_t)optim->begun, tensor, 0},
        .kernels = optim->kernels,
        .pool = optim->options.pool,
        .scratch = optim->scratch,
    };
}

static void run_rule(const lst_optim *optim, lst__step *step)
{
    if (!optim->rule->prepare) {
        optim->rule->whole(step);
        return;
    }
    lst__rule_call call = {0};
    optim->rule->prepare(step->hyper, step->t, &call);
    const lst__pass pass = lst__pass_of_call(&call, step->n_slots);
    lst__pass_run(step, &pass, NULL);
}

lst_status lst_optim_step_tensor(lst_optim *optim, size_t tensor, const void *grad, lst_grad_scale scale,
                                 lst_error *err)
{
    lst_status status = lst__check_index(optim, tensor, err);
    if (status == LST_OK)
        status = check_grad(optim, tensor, grad, err);
    if (status != LST_OK)
        return status;
    lst__param *param = &optim->params[tensor];
    if (!optim->open)
        return lst__fail(err, LST_ERR_STATE, "tensor %s: no step is open; call lst_optim_begin first",
                         param->tensor.name);
    if (param->stepped)
        return lst__fail(err, LST_ERR_STATE,
                         "tensor %s was already stepped since lst_optim_begin; sum its gradients before",
                         param->tensor.name);
    lst__step step = step_of(optim, tensor, grad, scale);
    run_rule(optim, &step);
    param->stepped = true;
    param->steps++;
    return LST_OK;
}

/* ---- all tensors at once: the tasks of element-wise rules are dealt from one list, so that many small tensors do not
 * each wait for the slowest thread ---- */

typedef struct batch {
    const lst__batch_entry *entries;
    size_t n;
} batch;

static void batch_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    const batch *b = context;
    size_t low = 0, high = b->n; /* entries[low].first_task <= index < entries[high].first_task */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (b->entries[middle].first_task <= index)
            low = middle;
        else
            high = middle;
    }
    const lst__batch_entry *e = &b->entries[low];
    lst__pass_task(&e->step, &e->pass, index - e->first_task, NULL);
}

static void step_batch(lst_optim *optim, const void *const *grads, lst_grad_scale scale)
{
    batch b = {optim->batch, 0};
    size_t n_tasks = 0;
    for (size_t i = 0; i < optim->n_params; i++) {
        if (!grads[i])
            continue;
        lst__batch_entry *e = &optim->batch[b.n++];
        e->step = step_of(optim, i, grads[i], scale);
        e->call = (lst__rule_call){0};
        optim->rule->prepare(e->step.hyper, e->step.t, &e->call);
        e->pass = lst__pass_of_call(&e->call, e->step.n_slots);
        e->first_task = n_tasks;
        n_tasks += lst__n_tasks(e->step.n_elems);
    }
    lst_pool_run(optim->options.pool, n_tasks, batch_task, &b);
}

static void step_one_by_one(lst_optim *optim, const void *const *grads, lst_grad_scale scale)
{
    for (size_t i = 0; i < optim->n_params; i++) {
        if (!grads[i])
            continue;
        lst__step step = step_of(optim, i, grads[i], scale);
        run_rule(optim, &step);
    }
}

lst_status lst_optim_step(lst_optim *optim, const void *const *grads, lst_grad_scale scale, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < optim->n_params && status == LST_OK; i++)
        if (grads[i])
            status = check_grad(optim, i, grads[i], err);
    if (status == LST_OK)
        status = lst_optim_begin(optim, err);
    if (status != LST_OK)
        return status;
    if (optim->rule->prepare)
        step_batch(optim, grads, scale);
    else
        step_one_by_one(optim, grads, scale);
    for (size_t i = 0; i < optim->n_params; i++) {
        if (!grads[i])
            continue;
        optim->params[i].stepped = true;
        optim->params[i].steps++;
    }
    return LST_OK;
}
