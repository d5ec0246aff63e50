/* SPDX-License-Identifier: MIT
 *
 * Weight forms: what the model sees, what the optimizer sees, and that the two never drift apart.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "numeric/bf16.h"
#include "store/codec.h"
#include "store/weights.h"

enum { N = 3001 };

static const lst__rounding rounding = {.seed = 5, .step = 17, .tensor = 3, .slot = 0};
static uint32_t weights_memory[N], master_memory[N];

static lst__weights weights_of(int form)
{
    memset(weights_memory, 0x5a, sizeof weights_memory);
    memset(master_memory, 0x5a, sizeof master_memory);
    int has_master = lst_weight_form_master((lst_weight_form)form) != LST_N_CODECS;
    return (lst__weights){(lst_weight_form)form, N, weights_memory, has_master ? master_memory : NULL};
}

static void fill(float *x)
{
    for (size_t i = 0; i < N; i++)
        x[i] = (float)lst__random_normal(4, 4, i);
    x[0] = 0.0f;
    x[1] = -0.0f;
    x[2] = 1e-41f;
    x[3] = 3.4e38f;
    x[4] = 1.00390625f; /* a tie between two bf16 */
}

static void names_and_parts(void **state)
{
    (void)state;
    assert_string_equal(lst_weight_form_name(LST_WEIGHT_SPLIT32), "split32");
    assert_string_equal(lst_weight_form_name(LST_N_WEIGHT_FORMS), "unknown");
    assert_int_equal(lst_weight_form_codec(LST_WEIGHT_BF16_MASTER), LST_CODEC_BF16);
    assert_int_equal(lst_weight_form_master(LST_WEIGHT_BF16_MASTER), LST_CODEC_F32);
    assert_int_equal(lst_weight_form_master(LST_WEIGHT_SPLIT32), LST_CODEC_LO16);
    assert_int_equal(lst_weight_form_master(LST_WEIGHT_BF16_NEAREST), LST_N_CODECS);
    assert_int_equal(lst_weight_form_master(LST_WEIGHT_SPLIT24), LST_CODEC_LO8);
    assert_int_equal(lst_weight_form_master(LST_WEIGHT_BF16_SR), LST_N_CODECS);
}

static void a_float32_value_survives_where_the_form_has_four_bytes(void **state)
{
    (void)state;
    static const int exact[] = {LST_WEIGHT_F32, LST_WEIGHT_BF16_MASTER, LST_WEIGHT_F16_MASTER, LST_WEIGHT_SPLIT32};
    static float x[N], back[N];
    fill(x);
    for (size_t f = 0; f < sizeof exact / sizeof *exact; f++) {
        lst__weights w = weights_of(exact[f]);
        lst__weights_encode(&w, 0, N, x, &rounding);
        lst__weights_decode(&w, 0, N, back);
        assert_memory_equal(back, x, sizeof x);
    }
}

/* What the model computes with is the rounding of what the optimizer keeps, after every encode. */
static void visible_weights_are_the_rounding_of_the_master(void **state)
{
    (void)state;
    static float x[N], visible[N];
    fill(x);
    lst__weights w = weights_of(LST_WEIGHT_BF16_MASTER);
    lst__weights_encode(&w, 0, N, x, NULL);
    lst__weights_decode_visible(&w, 0, N, visible);
    for (size_t i = 0; i < N; i++)
        assert_true(visible[i] == lst__bf16_to_f32(lst__bf16_from_f32(x[i])));
    w = weights_of(LST_WEIGHT_SPLIT32);
    lst__weights_encode(&w, 0, N, x, NULL);
    lst__weights_decode_visible(&w, 0, N, visible);
    for (size_t i = 0; i < N; i++)
        assert_true(i == 4 || visible[i] == lst__bf16_to_f32(lst__bf16_from_f32(x[i])));
    assert_true(visible[4] == 1.0078125f); /* the tie goes away from zero, where round-to-even would give 1.0 */
}

static void runs_of_one_element_give_the_same_bytes(void **state)
{
    (void)state;
    static float x[N], back[N], one[N];
    static unsigned char whole[2][sizeof weights_memory];
    fill(x);
    for (int f = 0; f < LST_N_WEIGHT_FORMS; f++) {
        lst__weights w = weights_of(f);
        lst__weights_encode(&w, 0, N, x, &rounding);
        memcpy(whole[0], weights_memory, sizeof weights_memory);
        memcpy(whole[1], master_memory, sizeof master_memory);
        lst__weights_decode(&w, 0, N, back);
        w = weights_of(f);
        for (size_t i = 0; i < N; i++)
            lst__weights_encode(&w, i, 1, x + i, &rounding);
        for (size_t i = 0; i < N; i++)
            lst__weights_decode(&w, i, 1, one + i);
        assert_memory_equal(weights_memory, whole[0], sizeof weights_memory);
        assert_memory_equal(master_memory, whole[1], sizeof master_memory);
        assert_memory_equal(one, back, sizeof back);
    }
}

/* A master started from given weights holds exactly them. */
static void a_master_starts_at_the_visible_weights(void **state)
{
    (void)state;
    static float x[N], visible[N], back[N];
    static uint32_t given[N];
    fill(x);
    for (int f = 0; f < LST_N_WEIGHT_FORMS; f++) {
        lst__weights w = weights_of(f);
        lst__codec(lst_weight_form_codec(w.form))->encode(w.weights, N, 0, N, x, &rounding);
        memcpy(given, weights_memory, sizeof given);
        lst__weights_decode_visible(&w, 0, N, visible);
        lst__weights_encode(&w, 0, N, visible, &rounding);
        lst__weights_decode(&w, 0, N, back);
        assert_memory_equal(back, visible, sizeof back);
        assert_memory_equal(given, weights_memory, sizeof given);
    }
}

/* 2,000 updates of 1e-4 from 0.5 on, each less than a tenth of a bf16 step there: mean of the weights afterwards. */
static double after_small_updates(int form, double update)
{
    static float x[N];
    lst__weights w = weights_of(form);
    for (size_t i = 0; i < N; i++)
        x[i] = 0.5f;
    lst__weights_encode(&w, 0, N, x, &rounding);
    for (uint64_t step = 1; step <= 2000; step++) {
        lst__weights_decode(&w, 0, N, x);
        for (size_t i = 0; i < N; i++)
            x[i] += (float)update;
        lst__weights_encode(&w, 0, N, x, &(lst__rounding){.seed = 1, .step = step});
    }
    double sum = 0.0;
    lst__weights_decode(&w, 0, N, x);
    for (size_t i = 0; i < N; i++)
        sum += (double)x[i] / N;
    return sum;
}

static void small_updates_arrive_except_where_the_name_says_otherwise(void **state)
{
    (void)state;
    static const double updates[] = {1e-4, 6e-7,
                                     -6e-7}; /* 6e-7: a learning rate at which bf16 weights are seen to stop */
    for (size_t u = 0; u < 3; u++) {
        const double want = 0.5 + 2000.0 * updates[u];
        for (int f = 0; f < LST_N_WEIGHT_FORMS; f++) {
            const double got = after_small_updates(f, updates[u]);
            if (f == LST_WEIGHT_BF16_NEAREST)
                assert_true(fabs(got - 0.5) < 1e-12); /* every one deleted */
            else if (f == LST_WEIGHT_BF16_SR)         /* a random walk: sqrt(steps * update * unit / N) */
                assert_true(fabs(got - want) < 5.0 * sqrt(2000.0 * fabs(updates[u]) * 0.0039 / N));
            else
                assert_true(fabs(got - want) < 0.02 * 2000.0 * fabs(updates[u]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_parts),
        cmocka_unit_test(a_float32_value_survives_where_the_form_has_four_bytes),
        cmocka_unit_test(visible_weights_are_the_rounding_of_the_master),
        cmocka_unit_test(runs_of_one_element_give_the_same_bytes),
        cmocka_unit_test(small_updates_arrive_except_where_the_name_says_otherwise),
        cmocka_unit_test(a_master_starts_at_the_visible_weights),
    };
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
