/* SPDX-License-Identifier: MIT
 *
 * Every variant of the loops against the base variant, bit for bit, at all short lengths and odd alignments; and exp
 * against the C library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "model/loops.h"

#define MAX_N 2100

/* What one loop wrote, whatever it was. */
typedef struct output {
    float a[MAX_N + 64], b[MAX_N + 64];
    double sum[MAX_N + 64], sum2[MAX_N + 64], value;
    float stat[2];
} output;

static float x[MAX_N + 64], y[MAX_N + 64], w[MAX_N + 64];

static void fill(uint64_t seed, int hostile)
{
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, -1e-42f, 3e38f, 88.5f, -90.0f, 1e-20f};
    for (size_t i = 0; i < MAX_N + 64; i++) {
        x[i] = (float)(3.0 * lst__random_normal(seed, 0, i));
        y[i] = (float)lst__random_normal(seed, 1, i);
        w[i] = (float)lst__random_normal(seed, 2, i);
        if (hostile && lst__random_below(seed, 3, i, 7) == 0)
            x[i] = odd[lst__random_below(seed, 4, i, sizeof odd / sizeof *odd)];
    }
}

typedef void run_fn(const model_loops *l, output *o, size_t at, size_t n);

static void rms_norm(const model_loops *l, output *o, size_t at, size_t n)
{
    l->rms_norm(x + at, w + at, o->a + at, o->stat, n, 1e-5);
}

static void layer_norm(const model_loops *l, output *o, size_t at, size_t n)
{
    l->layer_norm(x + at, w + at, y + at, o->a + at, o->stat, n, 1e-5);
}

static void rms_norm_backward(const model_loops *l, output *o, size_t at, size_t n)
{
    const float stat[2] = {0.0f, 0.7f};
    l->rms_norm_backward(o->a + at, y + at, x + at, w + at, stat, n);
}

static void layer_norm_backward(const model_loops *l, output *o, size_t at, size_t n)
{
    const float stat[2] = {0.3f, 0.7f};
    l->layer_norm_backward(o->a + at, y + at, x + at, w + at, stat, n);
}

static void norm_weights_backward(const model_loops *l, output *o, size_t at, size_t n)
{
    const float stat[2] = {0.3f, 0.7f};
    l->norm_weights_backward(o->sum + at, o->sum2 + at, y + at, x + at, stat, n);
}

static void softmax(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, x, sizeof x);
    if (n)
        o->value = (double)l->softmax(o->a + at, n, n + 5, 0.3f);
}

static void softmax_again(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, x, sizeof x);
    l->softmax_again(o->a + at, n, n + 5, 0.3f, 2.5f);
}

static void softmax_backward(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, x, sizeof x);
    l->softmax_backward(o->a + at, y + at, n, 0.2f, 0.3f);
}

static void dot(const model_loops *l, output *o, size_t at, size_t n)
{
    o->value = (double)l->dot(x + at, y + at, n);
}

static void rotate(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, x, sizeof x);
    l->rotate(o->a + at, y + at, n / 2 * 2, -1.0f);
}

static void gelu(const model_loops *l, output *o, size_t at, size_t n)
{
    l->gelu(o->a + at, x + at, n);
}

static void gelu_backward(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, x, sizeof x);
    l->gelu_backward(o->a + at, y + at, n);
}

static void swiglu(const model_loops *l, output *o, size_t at, size_t n)
{
    l->swiglu(o->a + at, x + at, y + at, n);
}

static void swiglu_backward(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, x, sizeof x);
    memcpy(o->b, y, sizeof y);
    l->swiglu_backward(o->a + at, o->b + at, w + at, n);
}

static void log_sum_exp(const model_loops *l, output *o, size_t at, size_t n)
{
    if (n)
        o->value = l->log_sum_exp(x + at, n);
}

static void cross_entropy_backward(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, x, sizeof x);
    l->cross_entropy_backward(o->a + at, n, 10.123456789, 0.01f);
}

static void add(const model_loops *l, output *o, size_t at, size_t n)
{
    memcpy(o->a, y, sizeof y);
    l->add(o->a + at, x + at, n);
}

static void sum_columns(const model_loops *l, output *o, size_t at, size_t n)
{
    l->sum_columns(o->sum + at, x + at, n);
}

static const struct {
    const char *name;
    run_fn *run;
} loops[] = {{"rms_norm", rms_norm},
             {"layer_norm", layer_norm},
             {"rms_norm_backward", rms_norm_backward},
             {"layer_norm_backward", layer_norm_backward},
             {"norm_weights_backward", norm_weights_backward},
             {"softmax", softmax},
             {"softmax_again", softmax_again},
             {"softmax_backward", softmax_backward},
             {"dot", dot},
             {"rotate", rotate},
             {"gelu", gelu},
             {"gelu_backward", gelu_backward},
             {"swiglu", swiglu},
             {"swiglu_backward", swiglu_backward},
             {"log_sum_exp", log_sum_exp},
             {"cross_entropy_backward", cross_entropy_backward},
             {"add", add},
             {"sum_columns", sum_columns}};

/* NaNs may differ in payload: all become one. */
static void tame(output *o)
{
    for (size_t i = 0; i < MAX_N + 64; i++) {
        o->a[i] = isnan(o->a[i]) ? NAN : o->a[i];
        o->b[i] = isnan(o->b[i]) ? NAN : o->b[i];
        o->sum[i] = isnan(o->sum[i]) ? (double)NAN : o->sum[i];
        o->sum2[i] = isnan(o->sum2[i]) ? (double)NAN : o->sum2[i];
    }
    o->value = isnan(o->value) ? (double)NAN : o->value;
    for (int i = 0; i < 2; i++)
        o->stat[i] = isnan(o->stat[i]) ? NAN : o->stat[i];
}

static void compare(const model_loops *variant, size_t loop, size_t at, size_t n)
{
    static output want, got;
    memset(&want, 0, sizeof want);
    memset(&got, 0, sizeof got);
    loops[loop].run(model_loops_base(), &want, at, n);
    loops[loop].run(variant, &got, at, n);
    tame(&want);
    tame(&got);
    if (memcmp(&want, &got, sizeof want))
        fail_msg("%s, variant %s, n %zu, offset %zu: other bits than base", loops[loop].name, variant->name, n, at);
}

static void check_variant(const model_loops *variant)
{
    for (int hostile = 0; hostile < 2; hostile++) {
        fill(5 + (uint64_t)hostile, hostile);
        for (size_t loop = 0; loop < sizeof loops / sizeof *loops; loop++) {
            for (size_t n = 0; n <= 67; n++)
                for (size_t at = 0; at < 5; at++)
                    compare(variant, loop, at, n);
            compare(variant, loop, 0, 1024);
            compare(variant, loop, 3, MAX_N);
        }
    }
}

static void variants_give_the_same_bits(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        check_variant(model_loops_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        check_variant(model_loops_avx512());
#endif
    check_variant(model_loops_get());
}

/* cross_entropy_backward with lse 0 and scale 1 is exp itself, down to e^-64, where a share counts as 0. */
static void exp_is_within_two_ulps(void **state)
{
    double worst = 0.0;
    (void)state;
    for (int64_t i = -6399999; i <= 8800000; i += 7) {
        float at = (float)((double)i * 1e-5), value = at;
        model_loops_get()->cross_entropy_backward(&value, 1, 0.0, 1.0f);
        double want = exp((double)at), error = fabs((double)value - want) / want;
        worst = error > worst ? error : worst;
    }
    print_message("worst relative error of exp: %.2e\n", worst);
    assert_true(worst < 1.8e-7);
}

static void exp_ends_quietly(void **state)
{
    (void)state;
    float far[] = {-1e30f, -INFINITY, 1e30f, NAN};
    model_loops_get()->cross_entropy_backward(far, 4, 0.0, 1.0f);
    assert_true(far[0] == 0.0f && far[1] == 0.0f);
    assert_true(far[2] > 1e38f);
    assert_true(isnan(far[3]));
}

/* Shares are 0 or large enough for their products to be normal numbers: subnormal ones take many times as long. */
static void no_share_is_near_the_subnormal_numbers(void **state)
{
    (void)state;
    enum { N = 400 };
    float p[N], again[N];
    size_t zeros = 0;
    for (size_t i = 0; i < N; i++)
        again[i] = p[i] = -0.5f * (float)i;
    const float lse = model_loops_get()->softmax(p, N, N, 1.0f);
    model_loops_get()->softmax_again(again, N, N, 1.0f, lse);
    for (size_t i = 0; i < N; i++) {
        assert_true(p[i] == 0.0f || p[i] > 1e-29f);
        assert_true(again[i] == 0.0f || again[i] > 1e-29f);
        zeros += p[i] == 0.0f;
    }
    assert_true(zeros > N / 2 && zeros < N - 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_give_the_same_bits),
        cmocka_unit_test(exp_is_within_two_ulps),
        cmocka_unit_test(exp_ends_quietly),
        cmocka_unit_test(no_share_is_near_the_subnormal_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
