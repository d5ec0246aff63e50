/* SPDX-License-Identifier: MIT
 *
 * A recipe from a limit alone: the order of the candidates, and what was given stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "leanstep/plan.h"

static lst_arch small(void)
{
    lst_arch arch;
    lst_arch_default(LST_FAMILY_LLAMA, &arch);
    arch.vocab = 2000;
    arch.hidden = 128;
    arch.layers = 6;
    arch.heads = arch.kv_heads = 4;
    arch.head_dim = 32;
    arch.ffn = 512;
    return arch;
}

static lst_recipe base(void)
{
    lst_recipe r;
    lst_recipe_default(&r);
    return r;
}

static uint64_t bytes_of(const lst_recipe *r)
{
    const lst_arch arch = small();
    lst_plan *plan;
    assert_int_equal(lst_plan_create(&plan, &arch, r, NULL), LST_OK);
    uint64_t bytes = plan->arena_bytes;
    lst_plan_destroy(plan);
    return bytes;
}

static lst_status choose(const lst_recipe *r, const lst_fixed *fixed, uint64_t limit, lst_choice *out)
{
    const lst_arch arch = small();
    lst_status status = lst_plan_choose(&arch, r, fixed, limit, out, NULL);
    if (status == LST_OK) {
        assert_true(out->arena_bytes <= limit);
        assert_true(bytes_of(&out->recipe) == out->arena_bytes);
        assert_true(!out->is_better || (out->better_bytes > limit && bytes_of(&out->better) == out->better_bytes));
        assert_true(!out->is_faster || (out->faster_bytes > limit && bytes_of(&out->faster) == out->faster_bytes));
    }
    return status;
}

static void what_fits_is_left_as_it_is(void **state)
{
    (void)state;
    const lst_recipe r = base();
    const lst_fixed open = {0};
    lst_choice c;
    assert_int_equal(choose(&r, &open, bytes_of(&r), &c), LST_OK);
    assert_memory_equal(&c.recipe, &r, sizeof r);
    assert_false(c.is_better || c.is_faster);
}

/* How far from float32 a recipe is, by the place in the order that the header promises. */
static int distance(const lst_recipe *r)
{
    int weights = r->weights == LST_WEIGHT_F32 ? 0 : r->weights == LST_WEIGHT_SPLIT24 ? 100 : 200;
    int moments = r->state == LST_CODEC_F32 ? 0 : r->state == LST_CODEC_Q8 ? 10 : 20;
    bool split = r->weights == LST_WEIGHT_SPLIT24; /* bf16 gradients are its own */
    return weights + moments + (r->grad_mode == LST_GRAD_RELEASE ? 1 : r->grads == LST_CODEC_BF16 && !split ? 2 : 0);
}

/* As the limit sinks, numbers only get worse, and of the same numbers only slower. */
static void less_memory_never_gives_better_numbers(void **state)
{
    (void)state;
    const lst_recipe r = base();
    const lst_fixed open = {0};
    lst_choice c = {0};
    int last = 0, kinds = 1, slow = 0;
    uint64_t limit = bytes_of(&r);
    for (; choose(&r, &open, limit, &c) == LST_OK; limit = c.arena_bytes - 1) {
        int now = distance(&c.recipe);
        assert_true(now >= last);
        assert_true(now > last || (int)c.recipe.activations >= slow);
        kinds += now > last;
        last = now;
        slow = (int)c.recipe.activations;
        assert_true(c.recipe.batch == r.batch && c.recipe.seq == r.seq && c.recipe.rule == r.rule);
    }
    assert_true(kinds >= 5);
    assert_true(c.arena_bytes > limit && bytes_of(&c.recipe) == c.arena_bytes); /* the smallest, for the message */
}

static void speed_is_given_up_before_numbers(void **state)
{
    (void)state;
    lst_recipe r = base();
    const lst_fixed open = {0};
    lst_choice c;
    r.activations = LST_ACT_INPUTS;
    uint64_t limit = bytes_of(&r);
    r = base();
    assert_int_equal(choose(&r, &open, limit, &c), LST_OK);
    assert_int_equal(distance(&c.recipe), 0);
    assert_int_equal(c.recipe.activations, LST_ACT_INPUTS);
    assert_true(c.is_faster && c.faster.activations == LST_ACT_POINTWISE && !c.is_better);
}

static void what_was_given_stays(void **state)
{
    (void)state;
    lst_recipe r = base();
    lst_choice c;
    const lst_fixed clip = {.clip = true}, keep = {.grad_mode = true, .activations = true},
                    state_only = {.state = true};
    for (uint64_t limit = bytes_of(&r) - 1; choose(&r, &clip, limit, &c) == LST_OK; limit = c.arena_bytes - 1)
        assert_true(c.recipe.clip_norm == r.clip_norm && c.recipe.grad_mode == LST_GRAD_KEEP);
    for (uint64_t limit = bytes_of(&r) - 1; choose(&r, &keep, limit, &c) == LST_OK; limit = c.arena_bytes - 1)
        assert_true(c.recipe.grad_mode == LST_GRAD_KEEP && c.recipe.activations == LST_ACT_KEEP);
    for (uint64_t limit = bytes_of(&r) - 1; choose(&r, &state_only, limit, &c) == LST_OK; limit = c.arena_bytes - 1)
        assert_int_equal(c.recipe.state, LST_CODEC_F32);
    const lst_fixed all = {true, true, true, true, true, true, true};
    assert_int_equal(choose(&r, &all, bytes_of(&r) - 1, &c), LST_ERR_MEMORY);
    assert_memory_equal(&c.recipe, &r, sizeof r);
}

/* A rule without moments has none to make smaller; weights and gradients are still open. */
static void rules_without_moments_are_served_too(void **state)
{
    (void)state;
    lst_recipe r = base();
    lst_choice c;
    const lst_fixed open = {0};
    r.rule = LST_RULE_SGD;
    lst_hyper_default(r.rule, &r.hyper);
    bool split = false;
    for (uint64_t limit = bytes_of(&r) - 1; choose(&r, &open, limit, &c) == LST_OK; limit = c.arena_bytes - 1) {
        assert_int_equal(c.recipe.state, LST_CODEC_F32);
        split = split || c.recipe.weights == LST_WEIGHT_SPLIT24;
    }
    assert_true(split);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_left_as_it_is),
        cmocka_unit_test(less_memory_never_gives_better_numbers),
        cmocka_unit_test(speed_is_given_up_before_numbers),
        cmocka_unit_test(what_was_given_stays),
        cmocka_unit_test(rules_without_moments_are_served_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
