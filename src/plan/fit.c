/* SPDX-License-Identifier: MIT
 *
 * What to change when a run does not fit: levers, each with its price. Every answer is a whole plan made anew, because
 * the phase of the peak moves: what saves much alone may save nothing after another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "plan/buffers.h"

/* Pulls a lever; false if it is pulled already or means nothing here. */
typedef bool pull_fn(lst_recipe *recipe);

typedef struct lever_row {
    pull_fn *pull;
    const char *what, *price;
    bool in_fit; /* whether lst_plan_fit may pull it: it keeps the rule and the meaning of the run */
    bool again;  /* may be pulled many times */
} lever_row;

static bool pull_pointwise(lst_recipe *r)
{
    bool pulled = r->activations == LST_ACT_KEEP;
    if (pulled)
        r->activations = LST_ACT_POINTWISE;
    return pulled;
}

static bool pull_inputs(lst_recipe *r)
{
    bool pulled = r->activations != LST_ACT_INPUTS;
    r->activations = LST_ACT_INPUTS;
    return pulled;
}

static bool pull_split(lst_recipe *r)
{
    bool pulled = r->weights == LST_WEIGHT_BF16_MASTER;
    if (pulled)
        r->weights = LST_WEIGHT_SPLIT32;
    return pulled;
}

static bool pull_chunk(lst_recipe *r)
{
    bool pulled = r->loss_chunk > 32;
    r->loss_chunk = pulled ? 32 : r->loss_chunk;
    return pulled;
}

static bool pull_release(lst_recipe *r)
{
    bool pulled = r->grad_mode == LST_GRAD_KEEP;
    r->grad_mode = LST_GRAD_RELEASE;
    r->grads = LST_CODEC_F32;
    r->clip_norm = 0;
    r->loss_scale = false;
    return pulled;
}

static bool pull_bf16_gradients(lst_recipe *r)
{
    bool pulled = r->grad_mode == LST_GRAD_KEEP && r->grads == LST_CODEC_F32;
    if (pulled)
        r->grads = LST_CODEC_BF16;
    return pulled;
}

/* Moments in q8 or q4, where the rule has moments that go with it. */
static bool pull_state(lst_recipe *r, lst_codec state)
{
    lst_recipe pulled = *r;
    pulled.state = state;
    if (r->state == state || r->state == LST_CODEC_Q4 || lst_recipe_check(&pulled, NULL, NULL) != LST_OK)
        return false;
    *r = pulled;
    return true;
}

static bool pull_q8(lst_recipe *r)
{
    return pull_state(r, LST_CODEC_Q8);
}

static bool pull_q4(lst_recipe *r)
{
    return pull_state(r, LST_CODEC_Q4);
}

static bool pull_split24(lst_recipe *r)
{
    bool pulled = r->weights == LST_WEIGHT_BF16_MASTER || r->weights == LST_WEIGHT_SPLIT32;
    if (pulled)
        r->weights = LST_WEIGHT_SPLIT24;
    return pulled;
}

static bool pull_accumulation(lst_recipe *r)
{
    bool pulled = r->accumulation > 1;
    r->accumulation = pulled ? r->accumulation / 2 : 1;
    return pulled;
}

static bool pull_batch(lst_recipe *r)
{
    bool pulled = r->batch > 1;
    r->batch = pulled ? r->batch / 2 : 1;
    return pulled;
}

static bool pull_sequence(lst_recipe *r)
{
    bool pulled = r->seq >= 128;
    r->seq = pulled ? r->seq / 2 : r->seq;
    return pulled;
}

static bool change_rule(lst_recipe *r, lst_rule rule)
{
    lst_hyper fresh;
    if (r->rule == rule)
        return false;
    lst_hyper_default(rule, &fresh);
    fresh.lr = r->hyper.lr;
    fresh.weight_decay = r->hyper.weight_decay;
    fresh.maximize = r->hyper.maximize;
    r->rule = rule;
    r->hyper = fresh;
    if (rule == LST_RULE_SGD) { /* has none */
        r->state = LST_CODEC_F32;
        r->f32_embeddings = false;
    }
    return true;
}

static bool pull_momentum(lst_recipe *r)
{
    return r->rule != LST_RULE_SGD && r->rule != LST_RULE_NESTEROV && change_rule(r, LST_RULE_MOMENTUM);
}

static bool pull_sgd(lst_recipe *r)
{
    return change_rule(r, LST_RULE_SGD);
}

static bool pull_nearest(lst_recipe *r)
{
    bool pulled = r->weights != LST_WEIGHT_BF16_NEAREST;
    r->weights = LST_WEIGHT_BF16_NEAREST;
    if (r->grad_mode == LST_GRAD_KEEP)
        r->grads = LST_CODEC_BF16;
    r->loss_scale = false;
    return pulled;
}

/* In order of least harm to the numbers, then to the speed. */
static const lever_row rows[] = {
    {pull_split, "split the float32 master into weights and the 16 bits they lack",
     "none: the same numbers bit for bit", true, false},
    {pull_pointwise, "compute norms and activation products again", "the same numbers; 1 to 2 % more time", true,
     false},
    {pull_chunk, "compute the loss in chunks of 32 tokens", "the head's matrix products run about half as fast", true,
     false},
    {pull_inputs, "keep only each layer's input", "the same numbers; forward runs twice, about a third more time", true,
     false},
    {pull_release, "release gradients layer by layer", "no clipping of the global gradient norm, no loss scaling", true,
     false},
    {pull_bf16_gradients, "keep gradients in bf16", "each gradient is rounded once to 8 significant bits", true, false},
    {pull_q8, "keep moments in 8 bits", "moments are rounded stochastically; `leanstep compare` shows what that costs",
     true, false},
    {pull_split24, "keep weights and master in 24 bits together",
     "the master has 16 significant bits and is rounded stochastically", true, false},
    {pull_q4, "keep moments in 4 bits", "coarser moments: `leanstep compare` shows what that costs", false, false},
    {pull_accumulation, "half the micro-batches a step", "half the tokens a step: noisier gradients", true, true},
    {pull_batch, "half the sequences a micro-batch", "half the tokens a step: noisier gradients", true, true},
    {pull_sequence, "half the sequence", "the model sees half as far back, and half the tokens a step", true, true},
    {pull_momentum, "momentum instead of Adam's two moments",
     "another rule: needs its own learning rate, often learns less", false, false},
    {pull_sgd, "plain SGD", "another rule: needs its own learning rate, learns much less on transformers", false,
     false},
    {pull_nearest, "bf16 weights without a master",
     "deletes updates smaller than 1/512 of a weight: often most of them", false, false},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static lst_status arena_of(const lst_plan *plan, const lst_recipe *recipe, uint64_t *arena_bytes, lst_error *err)
{
    lst_plan *other = NULL;
    lst_status status = plan->has_arch ? lst_plan_create(&other, &plan->arch, recipe, err)
                                       : lst_plan_create_params(&other, plan->n_params, recipe, err);
    if (status == LST_OK)
        *arena_bytes = other->arena_bytes;
    lst_plan_destroy(other);
    return status;
}

/* The options that make `after` of `before`. */
static void describe(const lst_recipe *before, const lst_recipe *after, char *out, size_t n)
{
    static const char *const policies[] = {"keep", "pointwise", "inputs"};
    if (after->activations != before->activations)
        snprintf(out, n, "--activations %s", policies[after->activations]);
    else if (after->grad_mode != before->grad_mode)
        snprintf(out, n, before->clip_norm > 0 ? "--grads release --clip 0" : "--grads release");
    else if (after->rule != before->rule)
        snprintf(out, n, "--optimizer %s", lst_rule_name(after->rule));
    else if (after->state != before->state)
        snprintf(out, n, "--state %s", lst_codec_name(after->state));
    else if (after->weights != before->weights)
        snprintf(out, n, "--weights %s", lst_weight_form_name(after->weights));
    else if (after->grads != before->grads)
        snprintf(out, n, "--grad-dtype %s", lst_codec_name(after->grads));
    else if (after->loss_chunk != before->loss_chunk)
        snprintf(out, n, "--loss-chunk %zu", after->loss_chunk);
    else if (after->accumulation != before->accumulation)
        snprintf(out, n, "--accumulation %zu", after->accumulation);
    else if (after->batch != before->batch)
        snprintf(out, n, "--batch %zu", after->batch);
    else
        snprintf(out, n, "--seq %zu", after->seq);
}

static int compare_savings(const void *left, const void *right)
{
    const lst_lever *a = left, *b = right;
    return a->saves > b->saves ? -1 : a->saves < b->saves;
}

lst_status lst_plan_levers(const lst_plan *plan, lst_lever *out, size_t *n, lst_error *err)
{
    size_t room = *n, used = 0;
    for (size_t i = 0; i < N_ROWS && used < room; i++) {
        lst_lever lever = {.recipe = plan->recipe};
        if (!rows[i].pull(&lever.recipe))
            continue;
        lst_status status = arena_of(plan, &lever.recipe, &lever.arena_bytes, err);
        if (status != LST_OK)
            return status;
        if (lever.arena_bytes >= plan->arena_bytes)
            continue;
        lever.saves = plan->arena_bytes - lever.arena_bytes;
        snprintf(lever.what, sizeof lever.what, "%s", rows[i].what);
        snprintf(lever.price, sizeof lever.price, "%s", rows[i].price);
        describe(&plan->recipe, &lever.recipe, lever.option, sizeof lever.option);
        out[used++] = lever;
    }
    if (used)
        qsort(out, used, sizeof *out, compare_savings);
    *n = used;
    return LST_OK;
}

/* A choice of levers: how often each is pulled. */
typedef struct pulls {
    size_t times[N_ROWS];
} pulls;

static lst_recipe pulled_recipe(const lst_plan *plan, const pulls *choice)
{
    lst_recipe recipe = plan->recipe;
    for (size_t i = 0; i < N_ROWS; i++)
        for (size_t k = 0; k < choice->times[i]; k++)
            rows[i].pull(&recipe);
    return recipe;
}

/* Takes back levers that turned out not to be needed, most harmful first. */
static lst_status take_back(const lst_plan *plan, uint64_t limit_bytes, pulls *choice, lst_error *err)
{
    for (size_t i = N_ROWS; i-- > 0;) {
        size_t times = choice->times[i];
        while (times > 0) {
            uint64_t arena_bytes;
            choice->times[i] = times - 1;
            lst_recipe recipe = pulled_recipe(plan, choice);
            lst_status status = arena_of(plan, &recipe, &arena_bytes, err);
            if (status != LST_OK)
                return status;
            if (arena_bytes > limit_bytes)
                break;
            times--;
        }
        choice->times[i] = times;
    }
    return LST_OK;
}

lst_status lst_plan_fit(const lst_plan *plan, uint64_t limit_bytes, lst_recipe *out, lst_error *err)
{
    pulls choice = {{0}};
    uint64_t arena_bytes = plan->arena_bytes, least = plan->arena_bytes;
    lst_recipe smallest = plan->recipe;
    for (size_t i = 0; i < N_ROWS && arena_bytes > limit_bytes; i++) {
        for (bool more = rows[i].in_fit; more && arena_bytes > limit_bytes; more = rows[i].again) {
            lst_recipe recipe = pulled_recipe(plan, &choice);
            if (!rows[i].pull(&recipe))
                break;
            lst_status status = arena_of(plan, &recipe, &arena_bytes, err);
            if (status != LST_OK)
                return status;
            choice.times[i]++;
            if (arena_bytes < least) {
                least = arena_bytes;
                smallest = recipe;
            }
        }
    }
    if (arena_bytes > limit_bytes) {
        *out = smallest;
        return lst__fail(err, LST_ERR_MEMORY,
                         "nothing that keeps the model and the rule fits in %llu bytes; the smallest run takes %llu. "
                         "Give more memory, choose "
                         "another rule, or a smaller model",
                         (unsigned long long)limit_bytes, (unsigned long long)least);
    }
    lst_status status = take_back(plan, limit_bytes, &choice, err);
    if (status == LST_OK)
        *out = pulled_recipe(plan, &choice);
    return status;
}
