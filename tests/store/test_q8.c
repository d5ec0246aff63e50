/* SPDX-License-Identifier: MIT
 *
 * q8 and q4 as formats: levels, bounds on the error, unbiased rounding, zeros, the ends of the range, NaN.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "numeric/bits.h"
#include "numeric/q4.h"
#include "numeric/q8.h"
#include "store/codec.h"

/* One format as these tests need it: values of a group, and how fine it is. */
typedef struct format {
    lst_codec codec;
    int is_signed;
    size_t group;
    double span; /* smallest level over the largest number's power of two, as a power of two */
    double fine,
        coarse; /* largest distance of neighbouring levels, relative to the lower one: next to the largest, below */
    double fine_span; /* how far below the largest the fine gear reaches, in binades */
} format;

static const format formats[] = {
    {LST_CODEC_Q8, 1, LST__Q8_GROUP, -19, 1.0 / 16, 1.0 / 4, 3},
    {LST_CODEC_Q8U, 0, LST__Q8_GROUP, -39, 1.0 / 16, 1.0 / 4, 7},
    {LST_CODEC_Q4, 1, LST__Q4_GROUP, -4, 1.0 / 2, 1.0, 1},
    {LST_CODEC_Q4U, 0, LST__Q4_GROUP, -11, 1.0 / 2, 1.0, 2},
};
enum { N_FORMATS = sizeof formats / sizeof *formats, GROUP = 64 };

/* One group: x[0] is the largest, the rest as given. Coded and decoded with the draws of `step`. */
static void code_group(const format *f, const float *x, size_t n, uint64_t step, float *out)
{
    _Alignas(8) unsigned char memory[2 * GROUP];
    const lst__rounding rounding = {.seed = 9, .step = step};
    lst__codec(f->codec)->encode(memory, n, 0, n, x, &rounding);
    lst__codec(f->codec)->decode(memory, n, 0, n, out);
}

/* Every code under every base: levels ascend strictly, and coding a level with any draw gives its code back. */
static void levels_ascend_and_survive(void **state)
{
    (void)state;
    static const uint32_t draws[] = {0, 1, 0x8000, 0xffff};
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        uint32_t codes_8 = is_signed ? 128 : 256, codes_4 = is_signed ? 8 : 16;
        for (uint32_t base = 0; base <= (is_signed ? 235u : 215u); base++)
            for (uint32_t code = 0; code < codes_8; code++) {
                float level = lst__q8_decode(code, base, is_signed);
                assert_true(isfinite(level) &&
                            (code == 0 ? level == 0.0f : level > lst__q8_decode(code - 1, base, is_signed)));
                for (size_t d = 0; d < 4; d++) {
                    const uint32_t kept = lst__q8_short(lst__q8_magnitude(level), draws[d]);
                    const uint32_t fine = lst__q8_fine(kept, draws[d]);
                    assert_int_equal(lst__q8_encode(kept, fine, draws[d], base, is_signed), code);
                }
            }
        for (uint32_t base = 0; base <= (is_signed ? 249u : 242u); base++)
            for (uint32_t code = 0; code < codes_4; code++) {
                float level = lst__q4_decode(code, base, is_signed);
                assert_true(isfinite(level) &&
                            (code == 0 ? level == 0.0f : level > lst__q4_decode(code - 1, base, is_signed)));
                for (size_t d = 0; d < 4; d++)
                    assert_int_equal(lst__q4_encode(level, lst__q4_fine(lst__q4_magnitude(level), draws[d]), draws[d],
                                                    base, is_signed),
                                     code);
            }
    }
}

/* The error of one rounding is below the distance of the neighbouring levels, at every scale of group and of value. */
static void error_stays_below_one_step(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_FORMATS; k++) {
        const format *f = &formats[k];
        for (int scale = -80; scale <= 120; scale += 5)
            for (int below = 0; below <= 45; below++) {
                float x[GROUP] = {ldexpf(1.0f, scale)}, out[GROUP];
                for (size_t i = 1; i < f->group; i++)
                    x[i] = ldexpf((float)(1.0 + lst__random_unit(3, (uint64_t)below, i)), scale - below - 1);
                code_group(f, x, f->group, (uint64_t)(below + 1), out);
                assert_true(out[0] == x[0]);
                double smallest = ldexp(1.0, scale + (int)f->span);
                for (size_t i = 1; i < f->group; i++) {
                    double step = (double)x[i] * (-1 - below >= -f->fine_span ? f->fine : f->coarse);
                    double allowed = (double)x[i] < 1.25 * smallest ? 1.25 * smallest : step;
                    if (fabs((double)out[i] - (double)x[i]) > allowed)
                        fail_msg("%s: %a beside %a became %a", lst_codec_name(f->codec), (double)x[i], (double)x[0],
                                 (double)out[i]);
                }
            }
    }
}

/* Mean over many draws, for values from the largest down to just above the smallest level. */
static void rounding_is_unbiased(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    for (size_t k = 0; k < N_FORMATS; k++) {
        const format *f = &formats[k];
        float x[GROUP] = {1.9f}, out[GROUP];
        double sum[GROUP] = {0}, squares[GROUP] = {0};
        for (size_t i = 1; i < f->group; i++)
            x[i] = (float)exp2((f->span + 0.5) * (double)i / (double)f->group);
        for (uint64_t step = 0; step < DRAWS; step++) {
            code_group(f, x, f->group, step, out);
            for (size_t i = 0; i < f->group; i++) {
                sum[i] += (double)out[i];
                squares[i] += (double)out[i] * (double)out[i];
            }
        }
        for (size_t i = 0; i < f->group; i++) {
            double mean = sum[i] / DRAWS, variance = squares[i] / DRAWS - mean * mean;
            double bound = 5.0 * sqrt(fmax(variance, 0.0) / DRAWS) + 1e-4 * (double)x[i];
            if (fabs(mean - (double)x[i]) > bound)
                fail_msg("%s: the mean of %g is %g, further than %g", lst_codec_name(f->codec), (double)x[i], mean,
                         bound);
        }
    }
}

static void zeros_stay_and_nothing_else_becomes_zero_unsigned(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_FORMATS; k++) {
        const format *f = &formats[k];
        for (uint64_t step = 0; step < 300; step++) {
            float x[GROUP] = {0}, out[GROUP];
            for (size_t i = 0; i < f->group; i += 2)
                x[i] = ldexpf(1.0f, -(int)((i * 7 + step) % 134)); /* down to the least bf16 subnormal */
            code_group(f, x, f->group, step, out);
            for (size_t i = 0; i < f->group; i++)
                assert_true(x[i] == 0.0f ? out[i] == 0.0f : f->is_signed || out[i] > 0.0f);
        }
        float zeros[GROUP] = {0}, out[GROUP];
        code_group(f, zeros, f->group, 1, out);
        for (size_t i = 0; i < f->group; i++)
            assert_true(out[i] == 0.0f);
    }
}

static void signs_are_kept(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_FORMATS; k++) {
        const format *f = &formats[k];
        float x[GROUP], minus[GROUP], out[GROUP], out_minus[GROUP];
        for (size_t i = 0; i < f->group; i++) {
            x[i] = (float)lst__random_unit(1, 1, i);
            minus[i] = -x[i];
        }
        code_group(f, x, f->group, 5, out);
        code_group(f, minus, f->group, 5, out_minus);
        for (size_t i = 0; i < f->group; i++)
            assert_true(out_minus[i] == (f->is_signed ? -out[i] : out[i]));
    }
}

static void the_ends_of_the_range(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_FORMATS; k++) {
        const format *f = &formats[k];
        for (uint64_t step = 0; step < 200; step++) {
            float x[GROUP], out[GROUP];
            for (size_t i = 0; i < f->group; i++)
                x[i] = i % 3 == 0 ? FLT_MAX : i % 3 == 1 ? INFINITY : 1.0f;
            code_group(f, x, f->group, step, out);
            for (size_t i = 0; i < f->group; i++)
                assert_true(isfinite(out[i]) && (i % 3 == 2 || (double)out[i] > 2.5e38));
            for (size_t i = 0; i < f->group; i++)
                x[i] = ldexpf(1.0f, -149 + (int)i % 3);
            code_group(f, x, f->group, step, out);
            for (size_t i = 0; i < f->group; i++)
                assert_true(out[i] >= 0.0f && (double)out[i] <= 1.2e-38);
        }
    }
}

/* A NaN stays one, whatever its neighbours. */
static void a_nan_stays_a_nan(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_FORMATS; k++)
        for (size_t at = 0; at < formats[k].group; at++)
            for (uint32_t payload = 1; payload < 0x800000u; payload = payload * 2 + 1) {
                float x[GROUP], out[GROUP];
                for (size_t i = 0; i < formats[k].group; i++)
                    x[i] = 1.0f;
                x[at] = lst__f32_of_bits(0x7f800000u | payload);
                code_group(&formats[k], x, formats[k].group, payload, out);
                assert_true(isnan(out[at]));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_ascend_and_survive),
        cmocka_unit_test(error_stays_below_one_step),
        cmocka_unit_test(rounding_is_unbiased),
        cmocka_unit_test(zeros_stay_and_nothing_else_becomes_zero_unsigned),
        cmocka_unit_test(signs_are_kept),
        cmocka_unit_test(the_ends_of_the_range),
        cmocka_unit_test(a_nan_stays_a_nan),
    };
    return cmocka_run_group_tests_name("q8", tests, NULL, NULL);
}
