/* SPDX-License-Identifier: MIT
 *
 * A recipe from a memory limit alone. Candidates are tried in one order, each as a whole plan, and the first that fits
 * is taken: what a run computes matters more than how fast, so that all ways of computing the same numbers come before
 * the next numbers.
 */
#include <string.h>

#include "base/fail.h"
#include "leanstep/plan.h"

/* What a recipe computes with. In order of harm: losing the global norm's clip, rounding gradients once, rounding
 * moments, rounding the master, and last no master at all. */
typedef struct level {
    lst_weight_form weights;
    lst_codec state;
    lst_grad_mode grads;
    lst_codec grad_codec;
} level;

static const level levels[] = {
    {LST_WEIGHT_F32, LST_CODEC_F32, LST_GRAD_KEEP, LST_CODEC_F32},
    {LST_WEIGHT_F32, LST_CODEC_F32, LST_GRAD_RELEASE, LST_CODEC_F32},
    {LST_WEIGHT_F32, LST_CODEC_F32, LST_GRAD_KEEP, LST_CODEC_BF16},
    {LST_WEIGHT_F32, LST_CODEC_Q8, LST_GRAD_KEEP, LST_CODEC_F32},
    {LST_WEIGHT_F32, LST_CODEC_Q8, LST_GRAD_RELEASE, LST_CODEC_F32},
    {LST_WEIGHT_F32, LST_CODEC_Q8, LST_GRAD_KEEP, LST_CODEC_BF16},
    {LST_WEIGHT_SPLIT24, LST_CODEC_Q8, LST_GRAD_KEEP, LST_CODEC_BF16},
    {LST_WEIGHT_SPLIT24, LST_CODEC_Q8, LST_GRAD_RELEASE, LST_CODEC_F32},
    {LST_WEIGHT_SPLIT24, LST_CODEC_Q4, LST_GRAD_RELEASE, LST_CODEC_F32},
    {LST_WEIGHT_BF16_SR, LST_CODEC_Q4, LST_GRAD_RELEASE, LST_CODEC_F32},
};

enum { N_LEVELS = sizeof levels / sizeof levels[0], N_SPEEDS = 4 };

static void set_grads(lst_recipe *r, const level *l, const lst_fixed *fixed)
{
    if (!fixed->grad_mode)
        r->grad_mode = l->grads;
    if (r->grad_mode == LST_GRAD_RELEASE) {
        if (!fixed->grad_codec)
            r->grads = LST_CODEC_F32;
        if (!fixed->clip)
            r->clip_norm = 0;
        r->loss_scale = false;
    } else if (!fixed->grad_codec && !fixed->weights) {
        r->grads = l->grad_codec;
    }
}

/* The level's recipe where the user left it open; false where that contradicts what is fixed, or the rule. */
static bool apply(const lst_arch *arch, const level *l, const lst_fixed *fixed, lst_recipe *r)
{
    if (!fixed->weights)
        r->weights = l->weights;
    set_grads(r, l, fixed);
    if (!fixed->state)
        r->state = l->state;
    if (lst_recipe_check(r, arch, NULL) == LST_OK)
        return true;
    if (fixed->state)
        return false;
    r->state = LST_CODEC_F32; /* the rule keeps nothing that has smaller codecs */
    return lst_recipe_check(r, arch, NULL) == LST_OK;
}

static bool same_numbers(const lst_recipe *a, const lst_recipe *b)
{
    return a->weights == b->weights && a->state == b->state && a->grad_mode == b->grad_mode && a->grads == b->grads &&
           a->clip_norm == b->clip_norm;
}

/* The recipe at one of the speeds, 0 the fastest; false if it is no other than the one before. */
static bool slow_down(const lst_recipe *base, const lst_fixed *fixed, size_t speed, lst_recipe *r)
{
    static const lst_act_policy policies[N_SPEEDS] = {LST_ACT_KEEP, LST_ACT_POINTWISE, LST_ACT_INPUTS, LST_ACT_INPUTS};
    if (speed > 0 && speed < 3 && fixed->activations)
        return false;
    if (!fixed->activations)
        r->activations = policies[speed];
    if (speed < 3)
        return true;
    r->loss_chunk = 32;
    return !fixed->loss_chunk && base->loss_chunk > 32;
}

typedef struct search {
    const lst_arch *arch;
    const lst_recipe *base;
    const lst_fixed *fixed;
    uint64_t limit;
    lst_choice *out;
    lst_recipe smallest;
    uint64_t least;
    bool found;
} search;

static lst_status arena_of(const search *s, const lst_recipe *r, uint64_t *bytes, lst_error *err)
{
    lst_plan *plan = NULL;
    lst_status status = lst_plan_create(&plan, s->arch, r, err);
    if (status == LST_OK)
        *bytes = plan->arena_bytes;
    lst_plan_destroy(plan);
    return status;
}

/* Every speed of one level. What does not fit becomes the next faster, or the next better, of what does. */
static lst_status try_level(search *s, const lst_recipe *numbers, lst_error *err)
{
    lst_choice *c = s->out;
    lst_recipe last = *numbers, smallest = *numbers;
    uint64_t last_bytes = 0, least = UINT64_MAX;
    for (size_t speed = 0; speed < N_SPEEDS && !s->found; speed++) {
        lst_recipe r = *numbers;
        uint64_t bytes;
        if (!slow_down(s->base, s->fixed, speed, &r))
            continue;
        lst_status status = arena_of(s, &r, &bytes, err);
        if (status != LST_OK)
            return status;
        s->found = bytes <= s->limit;
        if (s->found) {
            c->recipe = r;
            c->arena_bytes = bytes;
            c->is_faster = last_bytes > 0;
            c->faster = last;
            c->faster_bytes = last_bytes;
        }
        last = r;
        last_bytes = bytes;
        if (bytes < least) {
            least = bytes;
            smallest = r;
        }
    }
    if (s->found)
        return LST_OK;
    c->is_better = true;
    c->better = smallest;
    c->better_bytes = least;
    if (least < s->least) {
        s->least = least;
        s->smallest = smallest;
    }
    return LST_OK;
}

lst_status lst_plan_choose(const lst_arch *arch, const lst_recipe *base, const lst_fixed *fixed, uint64_t limit_bytes,
                           lst_choice *out, lst_error *err)
{
    search s = {.arch = arch, .base = base, .fixed = fixed, .limit = limit_bytes, .out = out, .least = UINT64_MAX};
    memset(out, 0, sizeof *out);
    lst_status status = lst_recipe_check(base, arch, err);
    lst_recipe previous = *base;
    if (status == LST_OK)
        status = try_level(&s, base, err);
    for (size_t i = 0; status == LST_OK && !s.found && i < N_LEVELS; i++) {
        lst_recipe r = *base;
        if (!apply(arch, &levels[i], fixed, &r) || same_numbers(&r, base) || same_numbers(&r, &previous))
            continue;
        previous = r;
        status = try_level(&s, &r, err);
    }
    if (status != LST_OK || s.found)
        return status;
    out->recipe = s.smallest;
    out->arena_bytes = s.least;
    return lst__fail(err, LST_ERR_MEMORY,
                     "no recipe that keeps the rule, the batch and what was given fits in %llu bytes (%.2f GiB); the "
                     "smallest takes %llu (%.2f GiB)",
                     (unsigned long long)limit_bytes, (double)limit_bytes / 1073741824, (unsigned long long)s.least,
                     (double)s.least / 1073741824);
}
