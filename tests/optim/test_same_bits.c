/* SPDX-License-Identifier: MIT
 *
 * One result by every way to it: any number of threads, all tensors at once or one by one, in place or through the
 * codecs, gradients in any codec that holds them, scaled or not, exact weight forms.
 */
#include "optim/fixture.h"

#include "reduced.h"

#include <math.h>
#include <stdio.h>

#define STEPS ((uint64_t)tests_count(5, 2))

/* Options that use what the rule has. */
static lst_hyper busy_hyper(lst_rule rule)
{
    lst_hyper h;
    lst_hyper_default(rule, &h);
    h.weight_decay = 0.1;
    return h;
}

static void run(fixture *f, const lst_optim_options *options)
{
    fixture_create(f, options);
    for (uint64_t t = 1; t <= STEPS; t++)
        fixture_step(f, t);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++)
        for (unsigned form = 0; form < LST_N_WEIGHT_FORMS; form++) {
            if (tests_reduced() && form != rule % LST_N_WEIGHT_FORMS)
                continue;
            const lst_hyper h = busy_hyper((lst_rule)rule);
            lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
            options.weights = (lst_weight_form)form;
            fixture alone, together;
            run(&alone, &options);
            for (size_t n = (size_t)tests_count(1, 2); n <= 5; n += (size_t)tests_count(1, 3)) {
                MUST(lst_pool_create(&options.pool, n, ERR));
                run(&together, &options);
                fixture_equal(&alone, &together, lst_rule_name((lst_rule)rule));
                for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
                    const size_t bytes =
                        together.n_elems[i] * (lst_weight_form_codec((lst_weight_form)form) == LST_CODEC_F32 ? 4 : 2);
                    assert_memory_equal(alone.weights[i], together.weights[i], bytes);
                }
                fixture_destroy(&together);
                lst_pool_destroy(options.pool);
                options.pool = NULL;
            }
            fixture_destroy(&alone);
        }
}

static void one_by_one_equals_all_at_once(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++) {
        const lst_hyper h = busy_hyper((lst_rule)rule);
        const lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
        fixture all, each;
        run(&all, &options);
        fixture_create(&each, &options);
        for (uint64_t t = 1; t <= STEPS; t++) {
            fixture_grads(&each, t);
            MUST(lst_optim_begin(each.optim, ERR));
            for (size_t i = FIXTURE_TENSORS; i-- > 0;) /* backward's order */
                MUST(lst_optim_step_tensor(each.optim, i, each.grads[i], (lst_grad_scale){1, 1}, ERR));
        }
        fixture_equal(&all, &each, lst_rule_name((lst_rule)rule));
        fixture_destroy(&all);
        fixture_destroy(&each);
    }
}

/* split32 is decoded and encoded tile by tile, f32 and the masters are worked on in place: the same bits all over. */
static void exact_forms_agree(void **state)
{
    (void)state;
    static const lst_weight_form exact[] = {LST_WEIGHT_BF16_MASTER, LST_WEIGHT_F16_MASTER, LST_WEIGHT_SPLIT32};
    for (unsigned rule = 0; rule < LST_N_RULES; rule++) {
        const lst_hyper h = busy_hyper((lst_rule)rule);
        lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
        fixture plain, other;
        run(&plain, &options);
        for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
            options.weights = exact[i];
            run(&other, &options);
            fixture_equal(&plain, &other, lst_weight_form_name(exact[i]));
            fixture_destroy(&other);
        }
        fixture_destroy(&plain);
    }
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)(bits >> 16); /* exact: fixture_grads makes them so */
}

static void bf16_gradients_agree(void **state)
{
    (void)state;
    const lst_hyper h = busy_hyper(LST_RULE_ADAMW);
    lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    fixture plain, narrow;
    run(&plain, &options);
    options.grads = LST_CODEC_BF16;
    fixture_create(&narrow, &options);
    for (uint64_t t = 1; t <= STEPS; t++) {
        const void *grads[FIXTURE_TENSORS];
        fixture_grads(&narrow, t);
        for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
            uint16_t *packed = (uint16_t *)narrow.grads[i]; /* over itself, front to back */
            for (size_t k = 0; k < narrow.n_elems[i]; k++) {
                float g;
                memcpy(&g, (char *)packed + 4 * k, 4);
                packed[k] = to_bf16(g);
            }
            grads[i] = packed;
        }
        MUST(lst_optim_step(narrow.optim, grads, (lst_grad_scale){1, 1}, ERR));
    }
    fixture_equal(&plain, &narrow, "bf16 gradients");
    fixture_destroy(&plain);
    fixture_destroy(&narrow);
}

static void scaled_gradients_agree(void **state)
{
    (void)state;
    const lst_hyper h = busy_hyper(LST_RULE_ADAM);
    const lst_optim_options options = fixture_options(LST_RULE_ADAM, &h, 1);
    fixture plain, scaled;
    run(&plain, &options);
    fixture_create(&scaled, &options);
    for (uint64_t t = 1; t <= STEPS; t++) {
        const void *grads[FIXTURE_TENSORS];
        fixture_grads(&scaled, t);
        for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
            for (size_t k = 0; k < scaled.n_elems[i]; k++)
                scaled.grads[i][k] *= 4096.0f; /* = 1 / (unscale * clip), all powers of two */
            grads[i] = scaled.grads[i];
        }
        MUST(lst_optim_step(scaled.optim, grads, (lst_grad_scale){1.0f / 1024, 0.25f}, ERR));
    }
    fixture_equal(&plain, &scaled, "scaled gradients");
    fixture_destroy(&plain);
    fixture_destroy(&scaled);
}

/* Unscale first, then clip, both in float32: what GradScaler and clip_grad_norm_ would have left in the gradient. */
static void scaling_rounds_twice(void **state)
{
    (void)state;
    lst_hyper h;
    lst_hyper_default(LST_RULE_SGD, &h);
    h.lr = 1.0;
    const lst_optim_options options = fixture_options(LST_RULE_SGD, &h, 1);
    fixture f;
    fixture_create(&f, &options);
    fixture_grads(&f, 1);
    const float unscale = 0.3f, clip = 0.7f;
    const void *grads[FIXTURE_TENSORS] = {NULL, NULL, f.grads[2], NULL};
    MUST(lst_optim_step(f.optim, grads, (lst_grad_scale){unscale, clip}, ERR));
    const float *w = f.weights[2];
    for (size_t k = 0; k < f.n_elems[2]; k++) {
        volatile float unscaled = f.grads[2][k] * unscale;
        volatile float clipped = unscaled * clip;
        assert_true(w[k] == f.init[2][k] - clipped);
    }
    fixture_destroy(&f);
}

/* The weights that the model sees are the rounding of what the optimizer knows, after every step. */
static void weights_are_the_rounding_of_the_master(void **state)
{
    (void)state;
    const lst_hyper h = busy_hyper(LST_RULE_ADAMW);
    lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    options.weights = LST_WEIGHT_BF16_MASTER;
    fixture f;
    fixture_create(&f, &options);
    for (uint64_t t = 0; t <= STEPS; t++) {
        if (t > 0)
            fixture_step(&f, t);
        for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
            const float *master = lst_optim_slot(f.optim, i, 0)->memory;
            for (size_t k = 0; k < f.n_elems[i]; k++) {
                uint32_t bits;
                memcpy(&bits, &master[k], 4);
                assert_int_equal(((uint16_t *)f.weights[i])[k], (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
            }
        }
    }
    fixture_destroy(&f);
}

/* State, weights and counts carried into a fresh optimizer: it goes on as if nothing had happened, in every rule and
 * form. */
static void a_resumed_run_goes_on(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++)
        for (unsigned form = 0; form < LST_N_WEIGHT_FORMS; form++) {
            if (tests_reduced() && form != rule % LST_N_WEIGHT_FORMS)
                continue;
            const lst_hyper h = busy_hyper((lst_rule)rule);
            lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
            options.weights = (lst_weight_form)form;
            fixture whole, resumed;
            run(&whole, &options);
            fixture_create(&resumed, &options);
            for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
                memcpy(resumed.weights[i], whole.weights[i],
                       lst_codec_bytes(lst_weight_form_codec((lst_weight_form)form), whole.n_elems[i]));
                for (size_t k = 0; k < lst_optim_slot_count(whole.optim, i); k++) {
                    const lst_slot *from = lst_optim_slot(whole.optim, i, k);
                    memcpy(lst_optim_slot(resumed.optim, i, k)->memory, from->memory, from->bytes);
                }
                MUST(lst_optim_set_steps(resumed.optim, i, lst_optim_steps(whole.optim, i), ERR));
            }
            lst_optim_set_begun(resumed.optim, lst_optim_begun(whole.optim));
            for (uint64_t t = STEPS + 1; t <= STEPS + 3; t++) {
                fixture_step(&whole, t);
                fixture_step(&resumed, t);
            }
            fixture_equal(&whole, &resumed, lst_rule_name((lst_rule)rule));
            fixture_destroy(&whole);
            fixture_destroy(&resumed);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(one_by_one_equals_all_at_once),
        cmocka_unit_test(exact_forms_agree),
        cmocka_unit_test(bf16_gradients_agree),
        cmocka_unit_test(scaled_gradients_agree),
        cmocka_unit_test(scaling_rounds_twice),
        cmocka_unit_test(weights_are_the_rounding_of_the_master),
        cmocka_unit_test(a_resumed_run_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
