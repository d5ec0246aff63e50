/* SPDX-License-Identifier: MIT
 *
 * Rules x codecs is a table: every pair either runs, the same for any number of threads and after a resume, or is
 * refused by name. And what few bits must not break: zero gradients, small updates, decay, small tensors.
 */
#include "optim/fixture.h"

#include <math.h>
#include <stdio.h>

#include "reduced.h"

static const lst_codec states[] = {LST_CODEC_Q8, LST_CODEC_Q4, LST_CODEC_Q8_DYNAMIC, LST_CODEC_Q8_DYNAMIC_2048};
enum { N_STATES = sizeof states / sizeof *states, STEPS = 2 };

static lst_hyper defaults(lst_rule rule)
{
    lst_hyper h;
    lst_hyper_default(rule, &h);
    return h;
}

/* What the rule keeps that a codec could hold. */
static bool keeps_moments(lst_rule rule)
{
    return rule != LST_RULE_SGD && rule != LST_RULE_ADAFACTOR && rule != LST_RULE_ADAFACTOR_TORCH;
}

static void run(fixture *f, const lst_optim_options *options)
{
    fixture_create(f, options);
    for (uint64_t t = 1; t <= STEPS; t++)
        fixture_step(f, t);
}

static void carry_over(fixture *to, const fixture *from, lst_codec weights)
{
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
        memcpy(to->weights[i], from->weights[i], lst_codec_bytes(weights, from->n_elems[i]));
        for (size_t k = 0; k < lst_optim_slot_count(from->optim, i); k++) {
            const lst_slot *s = lst_optim_slot(from->optim, i, k);
            memcpy(lst_optim_slot(to->optim, i, k)->memory, s->memory, s->bytes);
        }
        MUST(lst_optim_set_steps(to->optim, i, lst_optim_steps(from->optim, i), ERR));
    }
    lst_optim_set_begun(to->optim, lst_optim_begun(from->optim));
}

static void check_pair(lst_rule rule, lst_weight_form form, lst_codec state)
{
    lst_hyper h = defaults(rule);
    h.ns_steps = rule == LST_RULE_MUON ? 1 : h.ns_steps; /* most of the time otherwise, and nothing about codecs */
    lst_optim_options options = fixture_options(rule, &h, 1);
    options.weights = form;
    options.state = state;
    options.seed = 5;
    fixture alone, other;
    run(&alone, &options);
    MUST(lst_pool_create(&options.pool, 3, ERR));
    run(&other, &options);
    fixture_equal(&alone, &other, lst_codec_name(state));
    fixture_destroy(&other);
    lst_pool_destroy(options.pool);
    options.pool = NULL;
    fixture_create(&other, &options);
    carry_over(&other, &alone, lst_weight_form_codec(form));
    fixture_step(&alone, STEPS + 1);
    fixture_step(&other, STEPS + 1);
    fixture_equal(&alone, &other, "resumed");
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
        float *w = fixture_weights(&alone, i);
        for (size_t k = 0; k < alone.n_elems[i]; k++)
            assert_true(isfinite(w[k]));
        free(w);
    }
    fixture_destroy(&alone);
    fixture_destroy(&other);
}

static void every_pair_runs_or_is_refused(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++)
        for (size_t s = 0; s < N_STATES; s++) {
            if (keeps_moments((lst_rule)rule)) {
                for (unsigned form = 0; form < LST_N_WEIGHT_FORMS; form++)
                    if (!tests_reduced() || form == (rule + s) % LST_N_WEIGHT_FORMS)
                        check_pair((lst_rule)rule, (lst_weight_form)form, states[s]);
                continue;
            }
            const lst_hyper h = defaults((lst_rule)rule);
            lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
            options.state = states[s];
            lst_optim *optim;
            lst_error err = {.message = ""};
            assert_int_equal(lst_optim_create(&optim, &options, fixture_tensors, FIXTURE_TENSORS, &err),
                             LST_ERR_ARGUMENT);
            assert_non_null(strstr(err.message, lst_codec_name(states[s])));
        }
}

/* Codecs that are no state, for every rule, by name. bf16: rounded to nearest, a second moment with beta2 0.999 would
 * never decay. */
static void codecs_that_are_no_state_are_refused(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++)
        for (unsigned codec = 0; codec < LST_N_CODECS; codec++) {
            bool is_state = codec == LST_CODEC_F32;
            for (size_t s = 0; s < N_STATES; s++)
                is_state = is_state || codec == (unsigned)states[s];
            if (is_state)
                continue;
            const lst_hyper h = defaults((lst_rule)rule);
            lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
            options.state = (lst_codec)codec;
            lst_optim *optim;
            lst_error err = {.message = ""};
            assert_int_equal(lst_optim_create(&optim, &options, fixture_tensors, FIXTURE_TENSORS, &err),
                             LST_ERR_UNSUPPORTED);
            assert_non_null(strstr(err.message, lst_codec_name((lst_codec)codec)));
            if (codec == LST_CODEC_BF16)
                assert_non_null(strstr(err.message, "never decay"));
        }
}

static void switches_that_few_bits_break_are_refused(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.amsgrad = true;
    lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    options.state = LST_CODEC_Q8;
    lst_optim *optim;
    lst_error err = {.message = ""};
    assert_int_equal(lst_optim_create(&optim, &options, fixture_tensors, FIXTURE_TENSORS, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "amsgrad"));
    h = defaults(LST_RULE_RMSPROP);
    h.centered = true;
    options.rule = LST_RULE_RMSPROP;
    assert_int_equal(lst_optim_create(&optim, &options, fixture_tensors, FIXTURE_TENSORS, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "centered"));
    h = defaults(LST_RULE_ADAFACTOR);
    h.beta1 = 0.9; /* now there is a moment to store */
    options.rule = LST_RULE_ADAFACTOR;
    MUST(lst_optim_create(&optim, &options, fixture_tensors, FIXTURE_TENSORS, ERR));
    assert_int_equal(lst_optim_slot(optim, 0, 0)->codec, LST_CODEC_F32); /* rows */
    assert_int_equal(lst_optim_slot(optim, 0, 2)->codec, LST_CODEC_Q8);
    lst_optim_destroy(optim);
}

static void small_tensors_keep_f32(void **state)
{
    (void)state;
    const lst_hyper h = defaults(LST_RULE_ADAMW);
    lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    options.state = LST_CODEC_Q8;
    lst_slot slots[LST_MAX_SLOTS];
    size_t n;
    lst_tensor t = {.name = "w", .n_dims = 1, .dims = {4095}};
    MUST(lst_optim_slots(&options, &t, slots, &n, ERR));
    assert_true(slots[0].codec == LST_CODEC_F32 && slots[0].bytes == 4 * 4095);
    t.dims[0] = 4096;
    MUST(lst_optim_slots(&options, &t, slots, &n, ERR));
    assert_true(slots[0].codec == LST_CODEC_Q8 && slots[1].codec == LST_CODEC_Q8U);
    assert_true(slots[0].bytes <= 4096 + 4096 / 16);
    t.f32_state = true;
    MUST(lst_optim_slots(&options, &t, slots, &n, ERR));
    assert_true(slots[0].codec == LST_CODEC_F32 && slots[1].codec == LST_CODEC_F32);
}

/* Bytes of AdamW's state, whole, a million parameters: master or correction + two moments with their scales. */
static void adamw_bytes_are_pinned(void **state)
{
    (void)state;
    static const struct {
        lst_weight_form form;
        lst_codec state;
        double least, most;
    } pins[] = {
        {LST_WEIGHT_BF16_MASTER, LST_CODEC_Q8, 6, 6.125}, {LST_WEIGHT_SPLIT24, LST_CODEC_Q8, 3, 3.125},
        {LST_WEIGHT_BF16_SR, LST_CODEC_Q8, 2, 2.125},     {LST_WEIGHT_SPLIT24, LST_CODEC_Q4, 2, 2.125},
        {LST_WEIGHT_BF16_SR, LST_CODEC_Q4, 1, 1.125},     {LST_WEIGHT_F32, LST_CODEC_Q8_DYNAMIC, 2.03125, 2.03125},
    };
    const lst_tensor t = {.name = "w", .n_dims = 2, .dims = {1024, 1024}};
    for (size_t i = 0; i < sizeof pins / sizeof *pins; i++) {
        const lst_hyper h = defaults(LST_RULE_ADAMW);
        lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
        options.weights = pins[i].form;
        options.state = pins[i].state;
        lst_optim *optim;
        MUST(lst_optim_create(&optim, &options, &t, 1, ERR));
        const double bytes = (double)lst_optim_state_bytes(optim) / (1024 * 1024);
        assert_true(bytes >= pins[i].least && bytes <= pins[i].most);
        lst_optim_destroy(optim);
    }
}

/* ---- one long tensor, stepped many times ---- */

enum { N = 8192 };

typedef struct run_of_one {
    lst_optim *optim;
    _Alignas(64) unsigned char weights[4 * N];
    unsigned char *block, *scratch;
    float g[N], start[N], now[N];
} run_of_one;

static run_of_one *one_create(lst_rule rule, const lst_hyper *h, lst_weight_form form, lst_codec state)
{
    lst_optim_options options = fixture_options(rule, h, 1);
    options.weights = form;
    options.state = state;
    const lst_tensor t = {.name = "w", .n_dims = 2, .dims = {N / 64, 64}};
    run_of_one *o = aligned_alloc(64, (sizeof *o + 63) / 64 * 64);
    memset(o, 0, sizeof *o);
    MUST(lst_optim_create(&o->optim, &options, &t, 1, ERR));
    o->block = fixture_memory(lst_optim_block_bytes(o->optim));
    o->scratch = fixture_memory(lst_optim_scratch_bytes(o->optim));
    MUST(lst_optim_bind(o->optim, o->block, lst_optim_block_bytes(o->optim), ERR));
    MUST(lst_optim_bind_scratch(o->optim, o->scratch, lst_optim_scratch_bytes(o->optim), ERR));
    MUST(lst_optim_bind_weights(o->optim, 0, o->weights, ERR));
    MUST(lst_optim_reset(o->optim, ERR));
    for (size_t i = 0; i < N; i++)
        o->start[i] = fixture_value(9, 0, i);
    MUST(lst_optim_set_weights_f32(o->optim, 0, o->start, ERR));
    MUST(lst_optim_get_weights_f32(o->optim, 0, o->start, ERR)); /* as the form holds them */
    return o;
}

static void one_step(run_of_one *o)
{
    const void *grads[1] = {o->g};
    MUST(lst_optim_step(o->optim, grads, (lst_grad_scale){1, 1}, ERR));
}

static void one_destroy(run_of_one *o)
{
    lst_optim_destroy(o->optim);
    free(o->block);
    free(o->scratch);
    free(o);
}

static void zero_gradients_never_move_a_weight(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++)
        for (size_t s = 0; s < N_STATES && keeps_moments((lst_rule)rule) && rule != LST_RULE_MUON; s++) {
            lst_hyper h = defaults((lst_rule)rule);
            h.weight_decay = 0;
            run_of_one *o = one_create((lst_rule)rule, &h, LST_WEIGHT_SPLIT24, states[s]);
            const int empty = tests_count(30, 3), steps = 3 * empty;
            for (int step = 0; step < steps; step++) {
                for (size_t i = 0; i < N; i++) /* nothing at first; then every seventh stays without */
                    o->g[i] = step < empty || i % 7 == 0 ? 0 : fixture_value((uint64_t)step, 1, i);
                one_step(o);
            }
            MUST(lst_optim_get_weights_f32(o->optim, 0, o->now, ERR));
            size_t moved = 0;
            for (size_t i = 0; i < N; i++) {
                if (i % 7 == 0 && o->now[i] != o->start[i])
                    fail_msg("%s, %s: element %zu moved from %.9g to %.9g", lst_rule_name((lst_rule)rule),
                             lst_codec_name(states[s]), i, (double)o->start[i], (double)o->now[i]);
                moved += o->now[i] != o->start[i];
            }
            assert_true(moved > N / 2);
            one_destroy(o);
        }
}

/* AdamW towards a target under noise, against float32's own result: the distance left, by codec. */
static double distance_left(lst_weight_form form, lst_codec codec)
{
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.weight_decay = 0;
    h.lr = 3e-3;
    run_of_one *o = one_create(LST_RULE_ADAMW, &h, form, codec);
    double sum = 0;
    for (int step = 0; step < 600; step++) {
        MUST(lst_optim_get_weights_f32(o->optim, 0, o->now, ERR));
        for (size_t i = 0; i < N; i++) { /* curvatures over four decades, target 0.5 */
            const float curvature = powf(10.0f, -4.0f * (float)(i % 64) / 64.0f);
            o->g[i] = curvature * (o->now[i] - 0.5f + 0.1f * fixture_value((uint64_t)step, 2, i));
        }
        one_step(o);
    }
    MUST(lst_optim_get_weights_f32(o->optim, 0, o->now, ERR));
    for (size_t i = 0; i < N; i++)
        sum += fabs((double)o->now[i] - 0.5);
    one_destroy(o);
    return sum / N;
}

static void few_bits_arrive_where_float32_does(void **state)
{
    (void)state;
    if (tests_reduced())
        skip(); /* a matter of numbers, which are those of the plain run */
    const double plain = distance_left(LST_WEIGHT_F32, LST_CODEC_F32);
    static const struct {
        lst_weight_form form;
        lst_codec state;
        double most; /* distance left over float32's */
    } bounds[] = {
        {LST_WEIGHT_SPLIT32, LST_CODEC_F32, 1.0}, {LST_WEIGHT_SPLIT24, LST_CODEC_F32, 1.02},
        {LST_WEIGHT_F32, LST_CODEC_Q8, 1.05},     {LST_WEIGHT_SPLIT24, LST_CODEC_Q8, 1.05},
        {LST_WEIGHT_BF16_SR, LST_CODEC_Q8, 1.25}, {LST_WEIGHT_F32, LST_CODEC_Q4, 1.25},
    };
    printf("float32: %.5f left\n", plain);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const double left = distance_left(bounds[i].form, bounds[i].state);
        printf("%s, %s: %.5f left, %.3f of float32's (at most %.2f)\n", lst_weight_form_name(bounds[i].form),
               lst_codec_name(bounds[i].state), left, left / plain, bounds[i].most);
        assert_true(left <= bounds[i].most * plain);
    }
}

/* Mean movement of weights near 0.5 under a constant gradient, over what float32 moves. */
static double moved_share(lst_weight_form form, double lr, double decay, float g, int steps)
{
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.lr = lr;
    h.weight_decay = decay;
    run_of_one *o = one_create(LST_RULE_ADAMW, &h, form, LST_CODEC_F32);
    for (size_t i = 0; i < N; i++) {
        o->start[i] = 0.5f + (float)i / (4 * N);
        o->g[i] = g;
    }
    MUST(lst_optim_set_weights_f32(o->optim, 0, o->start, ERR));
    MUST(lst_optim_get_weights_f32(o->optim, 0, o->start, ERR));
    double want = 0, got = 0;
    for (int step = 0; step < steps; step++)
        one_step(o);
    MUST(lst_optim_get_weights_f32(o->optim, 0, o->now, ERR));
    for (size_t i = 0; i < N; i++) {
        got += (double)o->start[i] - (double)o->now[i];
        want += g != 0 ? lr * steps : (double)o->start[i] * (1 - pow(1 - lr * decay, steps));
    }
    one_destroy(o);
    return got / want;
}

/* What users of other tools report: bf16 weights that stop at a rate of 6e-7; decay that is rounded away. Not in a form
 * that has a story for small updates; bf16-nearest, asked for by name, does show it. */
static void small_updates_arrive(void **state)
{
    (void)state;
    static const lst_weight_form forms[] = {LST_WEIGHT_BF16_MASTER, LST_WEIGHT_SPLIT32, LST_WEIGHT_SPLIT24,
                                            LST_WEIGHT_BF16_SR};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const int steps = tests_count(400, 100);
        const double update = moved_share(forms[i], 6e-7, 0, 1.0f, steps),
                     decay = moved_share(forms[i], 1e-4, 0.01, 0.0f, steps);
        printf("%s: updates of 6e-7 move %.3f of what they should, decay of 1e-6 %.3f\n",
               lst_weight_form_name(forms[i]), update, decay);
        assert_true(fabs(update - 1) < 0.1 && fabs(decay - 1) < 0.1);
    }
    assert_true(moved_share(LST_WEIGHT_BF16_NEAREST, 6e-7, 0, 1.0f, tests_count(400, 100)) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_runs_or_is_refused),
        cmocka_unit_test(codecs_that_are_no_state_are_refused),
        cmocka_unit_test(switches_that_few_bits_break_are_refused),
        cmocka_unit_test(small_tensors_keep_f32),
        cmocka_unit_test(adamw_bytes_are_pinned),
        cmocka_unit_test(zero_gradients_never_move_a_weight),
        cmocka_unit_test(few_bits_arrive_where_float32_does),
        cmocka_unit_test(small_updates_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
