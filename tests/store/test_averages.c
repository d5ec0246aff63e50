/* SPDX-License-Identifier: MIT
 *
 * Moving averages that live in a codec: the cases in which second moments of 8-bit optimizers freeze, stick at zero
 * or drift. The native formats must not; that the nearest-rounding formats do is pinned too, so that docs/numerics.md
 * stays true. Each case prints what it measured.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "reduced.h"
#include "store/codec.h"

enum { N = 2048 };

/* An average of N values kept in a codec, and the same in double beside it. */
typedef struct average {
    lst_codec codec;
    float now[N];
    double exact[N];
    _Alignas(64) unsigned char memory[2 * N];
    uint64_t step;
} average;

static average a;

static void start(lst_codec codec, float value)
{
    a.codec = codec;
    a.step = 0;
    for (size_t i = 0; i < N; i++) {
        a.now[i] = value;
        a.exact[i] = (double)value;
    }
    lst__codec(codec)->encode(a.memory, N, 0, N, a.now, &(lst__rounding){.seed = 1});
}

/* average = beta * average + (1 - beta) * x, through the codec. */
static void update(double beta, const float *x)
{
    const lst__rounding rounding = {.seed = 1, .step = ++a.step, .slot = 2};
    lst__codec(a.codec)->decode(a.memory, N, 0, N, a.now);
    for (size_t i = 0; i < N; i++) {
        a.now[i] = (float)beta * a.now[i] + (float)(1.0 - beta) * x[i];
        a.exact[i] = beta * a.exact[i] + (1.0 - beta) * (double)x[i];
    }
    lst__codec(a.codec)->encode(a.memory, N, 0, N, a.now, &rounding);
    lst__codec(a.codec)->decode(a.memory, N, 0, N, a.now);
}

/* ---- one gradient changes while the largest of its block stays ---- */

/* Mean of the average over the elements whose gradient went from `before` to `after`; every 16th stays at 1. */
static double after_change(lst_codec codec, float before, float after, int steps)
{
    static float x[N];
    start(codec, 0.0f);
    for (int phase = 0; phase < 2; phase++) {
        const float g = phase == 0 ? before : after;
        for (size_t i = 0; i < N; i++)
            x[i] = i % 16 == 0 ? 1.0f : g * g;
        for (int t = 0; t < steps; t++)
            update(0.999, x);
    }
    double sum = 0.0;
    for (size_t i = 0; i < N; i++)
        sum += i % 16 == 0 ? 0.0 : (double)a.now[i];
    return sum / (N / 16 * 15);
}

static void a_second_moment_follows_its_gradient(void **state)
{
    (void)state;
    static const float change[][2] = {{0.3f, 1.0f}, {1.0f, 0.3f}, {1.0f, 0.0f}};
    if (tests_reduced())
        skip(); /* a matter of numbers, which are those of the plain run */
    for (size_t c = 0; c < 3; c++) {
        const double want = (double)change[c][1] * (double)change[c][1];
        const double q8 = after_change(LST_CODEC_Q8U, change[c][0], change[c][1], 6000);
        const double q4 = after_change(LST_CODEC_Q4U, change[c][0], change[c][1], 6000);
        const double dynamic = after_change(LST_CODEC_Q8_DYNAMIC_U, change[c][0], change[c][1], 6000);
        const double flash = after_change(LST_CODEC_Q8_FLASH_U, change[c][0], change[c][1], 6000);
        print_message("|g| %.1f to %.1f: v should be %.3g; q8 %.3g, q4 %.3g, q8-dynamic %.3g, q8-flash %.3g\n",
                      (double)change[c][0], (double)change[c][1], want, q8, q4, dynamic, flash);
        assert_true(fabs(q8 - want) < 0.02 * want + 0.005 && fabs(q4 - want) < 0.05 * want + 0.02);
        assert_true(fabs(dynamic - want) > 0.3 * want && fabs(flash - want) > 0.3 * want); /* frozen */
    }
}

/* ---- blocks of gradients of one size, and of very different sizes ---- */

typedef struct spread {
    double p1, median, p99, outside, zeros; /* of sqrt(kept / exact); shares in per cent */
} spread;

static int ascending(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

static spread spread_of(lst_codec codec, double log_sd, int steps)
{
    static float x[N], scale[N];
    static double ratio[N];
    for (size_t i = 0; i < N; i++)
        scale[i] = (float)exp(log_sd * lst__random_normal(1, 1, i));
    start(codec, 0.0f);
    for (int t = 0; t < steps; t++) {
        for (size_t i = 0; i < N; i++) {
            const double g = (double)scale[i] * lst__random_normal(2, (uint64_t)t, i);
            x[i] = (float)(g * g);
        }
        update(0.999, x);
    }
    spread s = {0};
    for (size_t i = 0; i < N; i++) {
        ratio[i] = sqrt((double)a.now[i] / a.exact[i]);
        s.outside += (ratio[i] < 0.5 || ratio[i] > 2.0) * 100.0 / N;
        s.zeros += (a.now[i] == 0.0f) * 100.0 / N;
    }
    qsort(ratio, N, sizeof *ratio, ascending);
    s.p1 = ratio[N / 100];
    s.median = ratio[N / 2];
    s.p99 = ratio[N - 1 - N / 100];
    return s;
}

static void second_moments_of_different_sizes_live_in_one_block(void **state)
{
    (void)state;
    static const struct {
        lst_codec codec;
        double log_sd, p1, p99, outside; /* bounds */
    } cases[] = {
        {LST_CODEC_Q8U, 0.0, 0.82, 1.22, 0.0}, {LST_CODEC_Q8U, 1.0, 0.70, 1.32, 0.1},
        {LST_CODEC_Q8U, 2.0, 0.65, 1.45, 0.2}, {LST_CODEC_Q8U, 3.0, 0.65, 1.70, 2.0},
        {LST_CODEC_Q4U, 0.0, 0.45, 1.60, 2.0}, {LST_CODEC_Q4U, 1.0, 0.40, 2.50, 6.0},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c += (size_t)tests_count(1, 4)) {
        const spread s = spread_of(cases[c].codec, cases[c].log_sd, 2500);
        print_message("%s, sd %.0f: [%.2f, %.2f], median %.2f, outside [0.5, 2] %.2f %%, zero %.1f %%\n",
                      lst_codec_name(cases[c].codec), cases[c].log_sd, s.p1, s.p99, s.median, s.outside, s.zeros);
        assert_true(s.p1 > cases[c].p1 && s.p99 < cases[c].p99 && s.outside <= cases[c].outside && s.zeros == 0.0);
        assert_true(fabs(s.median - 1.0) < (cases[c].codec == LST_CODEC_Q8U ? 0.03 : 0.1));
    }
    static const lst_codec peers[] = {LST_CODEC_Q8_DYNAMIC_U, LST_CODEC_Q8_FLASH_U};
    for (size_t c = 0; c < 2; c++)
        for (int sd = 2; sd <= tests_count(3, 2); sd++) {
            const spread s = spread_of(peers[c], sd, 1500);
            print_message("%s, sd %d: [%.2f, %.2f], median %.2f, outside [0.5, 2] %.2f %%, zero %.1f %%\n",
                          lst_codec_name(peers[c]), sd, s.p1, s.p99, s.median, s.outside, s.zeros);
            assert_true(s.zeros > 5.0); /* stuck at zero */
        }
}

/* ---- first moments ---- */

static void a_first_moment_reaches_a_constant_gradient_and_decays_to_zero(void **state)
{
    (void)state;
    static const lst_codec codecs[] = {LST_CODEC_Q8, LST_CODEC_Q4};
    static float x[N];
    for (size_t c = 0; c < 2; c++) {
        start(codecs[c], 0.0f);
        for (size_t i = 0; i < N; i++) /* sizes from 1 down to a thousandth, both signs */
            x[i] = (i % 2 ? -1.0f : 1.0f) * powf(10.0f, -3.0f * (float)(i % 16) / 16.0f);
        double sum[16] = {0};
        for (int t = 0; t < 400; t++) {
            update(0.9, x);
            for (size_t i = 0; i < N && t >= 100; i++)
                sum[i % 16] += (double)a.now[i] / (double)x[i] / (N / 16 * 300);
        }
        for (size_t k = 0; k < 16; k++) {
            /* Below q4's smallest level, 1/24 of the largest, the value is that level now and then: its mean over these
             * 128 x 300 values (20 steps apart to be independent) has this standard deviation, times 4. */
            const double noise = 4.0 * sqrt(1.0 / 24.0 / fabs((double)x[k]) / (128.0 * 300.0 / 20.0));
            if (fabs(sum[k] - 1.0) > 0.02 + (codecs[c] == LST_CODEC_Q8 ? 0.0 : noise))
                fail_msg("%s: gradient %g gives %.3f of it", lst_codec_name(codecs[c]), (double)fabsf(x[k]), sum[k]);
        }
        /* The gradients of all but the largest vanish: so do the averages, under a scale that stays. */
        for (size_t i = 0; i < N; i++)
            x[i] = i % 16 == 0 ? x[i] : 0.0f;
        for (int t = 0; t < 400; t++)
            update(0.9, x);
        for (size_t i = 0; i < N; i++)
            assert_true(i % 16 == 0 || fabsf(a.now[i]) < 1e-4f);
    }
}

/* ---- zero gradients ---- */

/* 10,000 steps of Adam's arithmetic with the state in a codec: a weight whose gradient is always exactly zero, beside
 * others in its block that move, stays where it is. */
static void a_weight_without_gradient_never_moves(void **state)
{
    (void)state;
    static const lst_codec codecs[] = {LST_CODEC_Q8, LST_CODEC_Q4, LST_CODEC_Q8_DYNAMIC, LST_CODEC_Q8_DYNAMIC_2048};
    enum { M = 256 };
    static float m[M], v[M];
    _Alignas(64) static unsigned char m_memory[4 * M], v_memory[4 * M];
    for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++) {
        const lst__codec_traits *first = lst__codec(codecs[c]), *second = lst__codec(lst_codec_unsigned(codecs[c]));
        memset(m, 0, sizeof m);
        memset(v, 0, sizeof v);
        for (uint64_t t = 1; t <= (uint64_t)tests_count(10000, 500); t++) {
            for (size_t i = 0; i < M; i++) {
                const float g = i % 7 == 0 ? 0.0f : (float)lst__random_normal(5, t, i);
                m[i] += 0.1f * (g - m[i]);
                v[i] = 0.999f * v[i] + 0.001f * g * g;
                assert_true(i % 7 != 0 || m[i] / (sqrtf(v[i]) + 1e-8f) == 0.0f);
            }
            first->encode(m_memory, M, 0, M, m, &(lst__rounding){.seed = 1, .step = t, .slot = 1});
            second->encode(v_memory, M, 0, M, v, &(lst__rounding){.seed = 1, .step = t, .slot = 2});
            first->decode(m_memory, M, 0, M, m);
            second->decode(v_memory, M, 0, M, v);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_moment_follows_its_gradient),
        cmocka_unit_test(second_moments_of_different_sizes_live_in_one_block),
        cmocka_unit_test(a_first_moment_reaches_a_constant_gradient_and_decays_to_zero),
        cmocka_unit_test(a_weight_without_gradient_never_moves),
    };
    return cmocka_run_group_tests_name("averages", tests, NULL, NULL);
}
