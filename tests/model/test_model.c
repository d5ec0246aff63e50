/* SPDX-License-Identifier: MIT
 *
 * Binding a plan, random weights, the gradient check a user sees, and the memory of GPT-2 124M.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "base/alloc.h"
#include "fixture.h"
#include "plan/activations.h"

static lst_plan *plan_of(lst_family family)
{
    lst_arch arch = fixture_arch(family, 0);
    lst_recipe r = fixture_recipe();
    lst_plan *plan;
    lst_error err;
    if (lst_plan_create(&plan, &arch, &r, &err) != LST_OK)
        fail_msg("%s", err.message);
    return plan;
}

static lst_status bind(const lst_plan *plan, lst_error *err)
{
    lst_arena arena;
    lst_ledger ledger;
    model *m;
    lst_ledger_init(&ledger);
    assert_int_equal(lst__arena_reserve(&arena, (size_t)plan->arena_bytes, NULL, err), LST_OK);
    lst_status status = model_create(&m, plan, arena.base, &ledger, NULL, err);
    if (status == LST_OK)
        model_destroy(m);
    assert_int_equal(ledger.now_total, 0);
    lst__arena_release(&arena);
    return status;
}

static void a_plan_that_is_not_the_models_is_refused(void **state)
{
    (void)state;
    lst_error err;
    for (int family = 0; family < LST_N_FAMILIES; family++) {
        lst_plan *plan = plan_of((lst_family)family);
        assert_int_equal(bind(plan, &err), LST_OK);
        for (size_t i = 0; i < plan->n_buffers; i++) {
            lst_buffer *b = &plan->buffers[i];
            if (b->kind == LST_BUFFER_SLOT)
                continue;
            b->bytes += 4;
            assert_int_equal(bind(plan, &err), LST_ERR_STATE);
            assert_non_null(strstr(err.message, b->name));
            b->bytes -= 4;
        }
        lst_plan_destroy(plan);
    }
}

static void a_buffer_that_nobody_uses_is_refused(void **state)
{
    (void)state;
    lst_error err;
    lst_plan *plan = plan_of(LST_FAMILY_LLAMA);
    plan->arch.tied = true; /* the plan still has a head */
    assert_int_equal(bind(plan, &err), LST_ERR_STATE);
    lst_plan_destroy(plan);
}

static void more_threads_than_planned_are_refused(void **state)
{
    (void)state;
    lst_plan *plan = plan_of(LST_FAMILY_LLAMA);
    lst_error err;
    lst_pool *pool;
    model *m;
    lst_ledger ledger;
    lst_ledger_init(&ledger);
    assert_int_equal(lst_pool_create(&pool, 3, &err), LST_OK);
    assert_int_equal(model_create(&m, plan, NULL, &ledger, pool, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "3 threads"));
    lst_pool_destroy(pool);
    lst_plan_destroy(plan);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    lst_plan *plan = plan_of(LST_FAMILY_QWEN3);
    lst_arena arena;
    lst_error err;
    model *m;
    size_t n = 0;
    lst_ledger ledger;
    lst_ledger_init(&ledger);
    assert_int_equal(lst__arena_reserve(&arena, (size_t)plan->arena_bytes, NULL, &err), LST_OK);
    for (;;) {
        lst__fault_arm(++n);
        lst_status status = model_create(&m, plan, arena.base, &ledger, NULL, &err);
        int struck = lst__fault_struck();
        lst__fault_arm(0);
        if (!struck) {
            assert_int_equal(status, LST_OK);
            break;
        }
        assert_int_equal(status, LST_ERR_MEMORY);
        assert_int_equal(ledger.now_total, 0);
    }
    assert_true(n > 5);
    model_destroy(m);
    lst__arena_release(&arena);
    lst_plan_destroy(plan);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_GPT2, 1);
    lst_recipe r = fixture_recipe();
    lst_plan *plan;
    lst_error err;
    assert_int_equal(lst__plan_generation(&plan, &arch, LST_WEIGHT_F32, 65, 1, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "2 to 64"));
    assert_int_equal(lst__plan_generation(&plan, &arch, LST_WEIGHT_F32, 1, 1, &err), LST_ERR_ARGUMENT);
    arch.max_positions = 1 << 20;
    arch.hidden = 1 << 16;
    arch.head_dim = 1 << 14;
    r.batch = 1 << 10;
    r.seq = 1 << 20;
    r.accumulation = 1 << 16;
    assert_int_equal(lst_plan_create(&plan, &arch, &r, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "--accumulation 65536"));
}

/* ---- random weights ---- */

static void random_weights_are_the_familys(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_GPT2, 1);
    lst_recipe r = fixture_recipe();
    arch.hidden = 48;
    arch.head_dim = 12;
    arch.init_range = 0.02;
    fixture f;
    assert_int_equal(fixture_open(&f, &arch, &r, 2), 0);
    model_init_random(f.m, 5);
    for (size_t i = 0; i < lst_arch_tensor_count(&arch); i++) {
        lst_arch_tensor t;
        lst_arch_tensor_at(&arch, i, &t);
        const float *w = model_weight(f.m, i);
        double squares = 0.0;
        for (size_t k = 0; k < t.n_elems; k++)
            squares += (double)w[k] * (double)w[k];
        double rms = sqrt(squares / (double)t.n_elems);
        bool projection = t.role == LST_ROLE_O_W || t.role == LST_ROLE_DOWN_W;
        double want = t.n_dims == 2                                       ? (projection ? 0.01 : 0.02)
                      : strstr(t.name, "ln_") && strstr(t.name, "weight") ? 1.0
                                                                          : 0.0;
        if (!(fabs(rms - want) <= 0.1 * want))
            fail_msg("%s: deviation %g, expected %g", t.name, rms, want);
    }
    fixture_close(&f);
}

static void random_weights_depend_on_the_seed_alone(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 0);
    lst_recipe r = fixture_recipe();
    fixture one, two;
    arch.vocab = 701;
    assert_int_equal(fixture_open(&one, &arch, &r, 1), 0);
    assert_int_equal(fixture_open(&two, &arch, &r, 3), 0);
    model_init_random(one.m, 5);
    model_init_random(two.m, 5);
    assert_memory_equal(model_weight(one.m, 0), model_weight(two.m, 0), 701 * 24 * sizeof(float));
    model_init_random(two.m, 6);
    assert_memory_not_equal(model_weight(one.m, 0), model_weight(two.m, 0), 701 * 24 * sizeof(float));
    fixture_close(&one);
    fixture_close(&two);
}

/* ---- gradient check ---- */

static void nudged_weights_agree_with_backward(void **state)
{
    (void)state;
    for (int family = 0; family < LST_N_FAMILIES; family++) {
        lst_arch arch = fixture_arch((lst_family)family, family % 2);
        lst_recipe r = fixture_recipe();
        fixture f;
        assert_int_equal(fixture_open(&f, &arch, &r, 2), 0);
        model_init_random(f.m, 5);
        fixture_tokens(&f, 2);
        size_t n = lst_arch_tensor_count(&arch);
        model_nudge *nudges = calloc(n, sizeof *nudges);
        for (size_t i = 0; i < n; i++)
            nudges[i] = (model_nudge){.tensor = i, .element = i % 6};
        assert_int_equal(model_check_gradient(f.m, nudges, n, &f.err), LST_OK);
        for (size_t i = 0; i < n; i++) {
            assert_true(nudges[i].loss_before > 0.0);
            if (!(fabs(nudges[i].rate - nudges[i].backward) < 2e-3 * fabs(nudges[i].backward) + 2e-4))
                fail_msg("family %d, tensor %zu: rate %g, backward %g", family, i, nudges[i].rate, nudges[i].backward);
        }
        free(nudges);
        fixture_close(&f);
    }
}

static void the_check_puts_weights_back(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 0);
    lst_recipe r = fixture_recipe();
    fixture f;
    r.weights = LST_WEIGHT_SPLIT32;
    assert_int_equal(fixture_open(&f, &arch, &r, 1), 0);
    model_init_random(f.m, 5);
    fixture_tokens(&f, 2);
    uint16_t before = ((uint16_t *)model_weight(f.m, 3))[4];
    model_nudge nudge = {.tensor = 3, .element = 4};
    assert_int_equal(model_check_gradient(f.m, &nudge, 1, &f.err), LST_OK);
    assert_int_equal(((uint16_t *)model_weight(f.m, 3))[4], before);
    nudge = (model_nudge){.tensor = 3, .element = 4, .nudge = 1e-9};
    assert_int_equal(model_check_gradient(f.m, &nudge, 1, &f.err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(f.err.message, "lost in the rounding"));
    nudge = (model_nudge){.tensor = 3, .element = 1 << 20};
    assert_int_equal(model_check_gradient(f.m, &nudge, 1, &f.err), LST_ERR_ARGUMENT);
    fixture_close(&f);
}

/* ---- the numbers this project promises ---- */

static double planned_gib(lst_grad_mode mode, lst_act_policy policy)
{
    lst_arch arch;
    lst_recipe r;
    lst_plan *plan;
    lst_error err;
    lst_arch_default(LST_FAMILY_GPT2, &arch);
    lst_recipe_default(&r);
    r.seq = 512;
    r.threads = 2;
    r.clip_norm = 0.0;
    r.grad_mode = mode;
    r.activations = policy;
    if (lst_plan_create(&plan, &arch, &r, &err) != LST_OK)
        fail_msg("%s", err.message);
    assert_int_equal(plan->n_params, 124439808);
    double gib = (double)plan->arena_bytes / (double)(1u << 30);
    lst_plan_destroy(plan);
    return gib;
}

static void gpt2_124m_fits_its_promise(void **state)
{
    (void)state;
    assert_true(planned_gib(LST_GRAD_KEEP, LST_ACT_KEEP) < 2.4);
    assert_true(planned_gib(LST_GRAD_RELEASE, LST_ACT_INPUTS) < 1.75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_is_not_the_models_is_refused),
        cmocka_unit_test(a_buffer_that_nobody_uses_is_refused),
        cmocka_unit_test(more_threads_than_planned_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(random_weights_are_the_familys),
        cmocka_unit_test(random_weights_depend_on_the_seed_alone),
        cmocka_unit_test(nudged_weights_agree_with_backward),
        cmocka_unit_test(the_check_puts_weights_back),
        cmocka_unit_test(gpt2_124m_fits_its_promise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
