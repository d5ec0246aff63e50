/* SPDX-License-Identifier: MIT
 *
 * What must not change a step's bits, what may change only its rounding, and that the ledger follows the plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "fixture.h"
#include "numeric/bf16.h"

typedef struct result {
    double loss;
    float *grads;
    size_t n;
} result;

/* Poison: every buffer is NaN when its life begins, so a life that is too short, or a read before a write, spoils the
 * result. */
static result step_of(const lst_arch *arch, const lst_recipe *recipe, size_t threads)
{
    fixture f;
    result r = {0};
    if (fixture_open(&f, arch, recipe, threads))
        fail_msg("%s", f.err.message);
    model_init_random(f.m, 7);
    fixture_tokens(&f, 3);
    model_set_poison(f.m, true);
    r.n = fixture_params(&f);
    r.grads = fixture_step(&f, 1.0f, &r.loss);
    if (!r.grads)
        fail_msg("step failed: %s", f.err.message);
    fixture_close(&f);
    return r;
}

static double distance(const result *a, const result *b)
{
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < a->n; i++) {
        double d = fabs((double)a->grads[i] - (double)b->grads[i]);
        worst = d > worst || isnan(d) ? d : worst;
        largest = fmax(largest, fabs((double)a->grads[i]));
    }
    return worst / largest;
}

static void assert_same_bits(result a, result b)
{
    assert_true(isfinite(a.loss));
    assert_memory_equal(&a.loss, &b.loss, sizeof a.loss);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.grads, b.grads, a.n * sizeof *a.grads);
    free(b.grads);
}

static void for_each_arch(void (*check)(const lst_arch *arch))
{
    for (int family = 0; family < LST_N_FAMILIES; family++)
        for (int tied = 0; tied < 2; tied++) {
            lst_arch arch = fixture_arch((lst_family)family, tied);
            check(&arch);
        }
}

static void check_policies(const lst_arch *arch)
{
    lst_recipe r = fixture_recipe();
    r.accumulation = 2;
    result keep = step_of(arch, &r, 2);
    r.activations = LST_ACT_POINTWISE;
    assert_same_bits(keep, step_of(arch, &r, 2));
    r.activations = LST_ACT_INPUTS;
    assert_same_bits(keep, step_of(arch, &r, 2));
    free(keep.grads);
}

static void policies_give_the_same_bits(void **state)
{
    (void)state;
    for_each_arch(check_policies);
}

static void check_threads(const lst_arch *arch)
{
    lst_recipe r = fixture_recipe();
    result one = step_of(arch, &r, 1);
    for (size_t threads = 2; threads <= 4; threads++)
        assert_same_bits(one, step_of(arch, &r, threads));
    free(one.grads);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    for_each_arch(check_threads);
}

/* Large enough that every product has several panels, every row loop several tasks. */
static void threads_give_the_same_bits_in_a_larger_model(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_QWEN3, 1);
    lst_recipe r = fixture_recipe();
    arch.hidden = 192;
    arch.head_dim = 48;
    arch.ffn = 3100;
    arch.vocab = 701;
    arch.max_positions = 256;
    arch.init_range = 0.05;
    r.seq = 150;
    r.batch = 5;
    r.loss_chunk = 64;
    result one = step_of(&arch, &r, 1);
    assert_same_bits(one, step_of(&arch, &r, 3));
    arch.vocab = 9001; /* the head's sum in parts */
    free(one.grads);
    one = step_of(&arch, &r, 1);
    assert_same_bits(one, step_of(&arch, &r, 2));
    r.weights = LST_WEIGHT_SPLIT32;
    result narrow = step_of(&arch, &r, 1);
    assert_same_bits(narrow, step_of(&arch, &r, 2));
    assert_true(fabs(narrow.loss - one.loss) < 0.05);
    free(one.grads);
    free(narrow.grads);
}

static void check_release(const lst_arch *arch)
{
    lst_recipe r = fixture_recipe();
    r.accumulation = 3;
    result kept = step_of(arch, &r, 2);
    r.grad_mode = LST_GRAD_RELEASE;
    assert_same_bits(kept, step_of(arch, &r, 2));
    free(kept.grads);
}

static void released_gradients_are_the_kept_ones(void **state)
{
    (void)state;
    for_each_arch(check_release);
}

static void check_rounded(const lst_arch *arch)
{
    lst_recipe r = fixture_recipe();
    r.weights = LST_WEIGHT_BF16_MASTER;
    r.accumulation = 2;
    result exact = step_of(arch, &r, 2);
    r.grads = LST_CODEC_BF16;
    result rounded = step_of(arch, &r, 2);
    for (size_t i = 0; i < exact.n; i++) {
        float want = lst__bf16_to_f32(lst__bf16_from_f32(exact.grads[i]));
        assert_memory_equal(&rounded.grads[i], &want, sizeof want);
    }
    free(exact.grads);
    free(rounded.grads);
}

static void kept_bf16_gradients_are_rounded_once(void **state)
{
    (void)state;
    for_each_arch(check_rounded);
}

/* The same eight sequences, with uneven counts of targets, as one batch and as eight micro-batches; gradients kept and
 * released. */
static void check_accumulation(const lst_arch *arch)
{
    lst_recipe r = fixture_recipe();
    r.batch = 8;
    result one = step_of(arch, &r, 2);
    r.batch = 1;
    r.accumulation = 8;
    for (int mode = 0; mode < LST_N_GRAD_MODES; mode++) {
        r.grad_mode = (lst_grad_mode)mode;
        result eight = step_of(arch, &r, 2);
        assert_true(fabs(one.loss - eight.loss) < 1e-6 * one.loss);
        assert_true(distance(&one, &eight) < 3e-6);
        free(eight.grads);
    }
    free(one.grads);
}

static void micro_batches_add_up_to_one_batch(void **state)
{
    (void)state;
    for_each_arch(check_accumulation);
}

static void check_chunks(const lst_arch *arch)
{
    lst_recipe r = fixture_recipe();
    r.loss_chunk = 1000; /* one chunk */
    result whole = step_of(arch, &r, 2);
    for (size_t chunk = 1; chunk <= 16; chunk *= 4) {
        r.loss_chunk = chunk;
        result parts = step_of(arch, &r, 2);
        assert_true(fabs(whole.loss - parts.loss) < 1e-6 * whole.loss);
        assert_true(distance(&whole, &parts) < 3e-6);
        free(parts.grads);
    }
    free(whole.grads);
}

static void chunks_change_only_rounding(void **state)
{
    (void)state;
    for_each_arch(check_chunks);
}

static void loss_scale_scales_gradients_not_the_loss(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 0);
    lst_recipe r = fixture_recipe();
    fixture f;
    double plain, scaled;
    assert_int_equal(fixture_open(&f, &arch, &r, 1), 0);
    model_init_random(f.m, 7);
    fixture_tokens(&f, 3);
    float *a = fixture_step(&f, 1.0f, &plain), *b = fixture_step(&f, 1024.0f, &scaled);
    assert_true(plain == scaled);
    for (size_t i = 0; i < fixture_params(&f); i++)
        assert_true(fabsf(b[i] - 1024.0f * a[i]) <= 1e-2f * fabsf(b[i]) + 1e-3f);
    free(a);
    free(b);
    fixture_close(&f);
}

/* ---- ledger ---- */

static uint64_t callers_bytes(const lst_plan *p, int phase)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].kind == LST_BUFFER_SLOT && p->buffers[i].first_phase <= phase &&
            phase <= p->buffers[i].last_phase)
            bytes += p->buffers[i].bytes;
    return bytes;
}

static void check_ledger_of(const lst_arch *arch, const lst_recipe *recipe)
{
    fixture f;
    double loss;
    if (fixture_open(&f, arch, recipe, 2))
        fail_msg("%s", f.err.message);
    fixture_tokens(&f, 1);
    free(fixture_step(&f, 1.0f, &loss));
    model_enter(f.m, lst_phase_step(arch->layers));
    model_enter(f.m, lst_phase_save(arch->layers));
    for (int phase = 0; phase < f.plan->n_phases; phase++)
        assert_int_equal(f.ledger.phase_peak[phase], lst_plan_live(f.plan, phase, NULL) - callers_bytes(f.plan, phase));
    for (int b = 0; b < LST_N_BUCKETS; b++)
        if (!lst_bucket_is_state((lst_bucket)b))
            assert_int_equal(f.ledger.peak[b], f.plan->bucket_bytes[b]);
    model_destroy(f.m);
    f.m = NULL;
    assert_int_equal(f.ledger.now_total, 0);
    fixture_close(&f);
}

static void check_ledger(const lst_arch *arch)
{
    for (int policy = 0; policy < LST_N_ACT_POLICIES; policy++)
        for (int mode = 0; mode < LST_N_GRAD_MODES; mode++)
            for (int form = 0; form < LST_N_WEIGHT_FORMS; form++) {
                lst_recipe r = fixture_recipe();
                r.activations = (lst_act_policy)policy;
                r.grad_mode = (lst_grad_mode)mode;
                r.weights = (lst_weight_form)form;
                r.accumulation = 2;
                check_ledger_of(arch, &r);
            }
}

static void ledger_follows_the_plan_phase_by_phase(void **state)
{
    (void)state;
    for_each_arch(check_ledger);
}

/* ---- refusals ---- */

static lst_status refuse(void *user, double loss, lst_error *err)
{
    (void)loss;
    (void)err;
    ++*(int *)user;
    return LST_ERR_INTERRUPTED;
}

static lst_status count(void *user, size_t tensor, const void *grad, lst_codec codec, lst_error *err)
{
    (void)tensor;
    (void)grad;
    (void)codec;
    (void)err;
    *(int *)user += 100;
    return LST_OK;
}

static void bad_tokens_are_named(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_GPT2, 1);
    lst_recipe r = fixture_recipe();
    fixture f;
    double loss;
    assert_int_equal(fixture_open(&f, &arch, &r, 1), 0);
    fixture_tokens(&f, 1);
    model_ids(f.m, 0)[5] = 53;
    assert_int_equal(model_step(f.m, 1.0f, NULL, &loss, &f.err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(f.err.message, "token id 53"));
    assert_non_null(strstr(f.err.message, "position 5"));
    model_ids(f.m, 0)[5] = 0;
    model_targets(f.m, 0)[3] = -7;
    assert_int_equal(model_step(f.m, 1.0f, NULL, &loss, &f.err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(f.err.message, "target -7"));
    for (size_t i = 0; i < r.batch * r.seq; i++)
        model_targets(f.m, 0)[i] = MODEL_IGNORE;
    assert_int_equal(model_counted(f.m), 0);
    assert_int_equal(model_step(f.m, 1.0f, NULL, &loss, &f.err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(f.err.message, "no target"));
    fixture_close(&f);
}

static void a_hook_can_stop_a_step_before_the_first_gradient(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_QWEN2, 0);
    lst_recipe r = fixture_recipe();
    fixture f;
    double loss = -1.0;
    int calls = 0;
    r.grad_mode = LST_GRAD_RELEASE;
    assert_int_equal(fixture_open(&f, &arch, &r, 1), 0);
    fixture_tokens(&f, 1);
    assert_int_equal(model_step(f.m, 1.0f, NULL, &loss, &f.err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(f.err.message, "on_gradient"));
    model_hooks hooks = {.user = &calls, .on_loss = refuse, .on_gradient = count};
    assert_int_equal(model_step(f.m, 1.0f, &hooks, &loss, &f.err), LST_ERR_INTERRUPTED);
    assert_int_equal(calls, 1);
    assert_true(loss == -1.0);
    fixture_close(&f);
}

static void evaluation_is_the_loss_of_a_step(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 1);
    lst_recipe r = fixture_recipe();
    fixture f;
    double loss, sum;
    size_t counted;
    assert_int_equal(fixture_open(&f, &arch, &r, 2), 0);
    model_init_random(f.m, 7);
    fixture_tokens(&f, 3);
    assert_int_equal(model_step(f.m, 1.0f, NULL, &loss, &f.err), LST_OK);
    model_set_poison(f.m, true);
    assert_int_equal(model_evaluate(f.m, &sum, &counted, &f.err), LST_OK);
    assert_int_equal(counted, model_counted(f.m));
    assert_true(sum / (double)counted == loss);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_give_the_same_bits),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(threads_give_the_same_bits_in_a_larger_model),
        cmocka_unit_test(released_gradients_are_the_kept_ones),
        cmocka_unit_test(kept_bf16_gradients_are_rounded_once),
        cmocka_unit_test(micro_batches_add_up_to_one_batch),
        cmocka_unit_test(chunks_change_only_rounding),
        cmocka_unit_test(loss_scale_scales_gradients_not_the_loss),
        cmocka_unit_test(ledger_follows_the_plan_phase_by_phase),
        cmocka_unit_test(bad_tokens_are_named),
        cmocka_unit_test(a_hook_can_stop_a_step_before_the_first_gradient),
        cmocka_unit_test(evaluation_is_the_loss_of_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
