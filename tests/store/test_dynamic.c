/* SPDX-License-Identifier: MIT
 *
 * q8-dynamic: the corners of scales and blocks.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "store/codec.h"

enum { MOST = 5000 };

static _Alignas(64) unsigned char memory[2 * MOST];
static float x[MOST], back[MOST];

static void round_trip(lst_codec codec, size_t n)
{
    lst__codec(codec)->encode(memory, n, 0, n, x, NULL);
    lst__codec(codec)->decode(memory, n, 0, n, back);
}

static float scale_of_block(size_t n, size_t block)
{
    float scale;
    memcpy(&scale, memory + (n + 3) / 4 * 4 + block * 4, sizeof scale);
    return scale;
}

static void a_block_of_zeros_is_zero(void **state)
{
    (void)state;
    memset(x, 0, sizeof x);
    x[300] = 2.0f;
    round_trip(LST_CODEC_Q8_DYNAMIC, 600);
    for (size_t i = 0; i < 600; i++)
        assert_true(back[i] == (i == 300 ? 2.0f : 0.0f));
    assert_true(memory[0] == 127 && memory[301] == 127 && scale_of_block(600, 0) == 0.0f);
    round_trip(LST_CODEC_Q8_DYNAMIC_U, 600);
    assert_true(memory[0] == 0 && memory[301] == 0 && back[300] == 2.0f);
}

/* 1 / absmax would be infinite. */
static void subnormal_and_huge_scales_keep_their_precision(void **state)
{
    (void)state;
    static const float scales[] = {1e-39f, 1e-42f, FLT_MIN, 1e-20f, 1.0f, 1e20f, FLT_MAX};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
        for (size_t i = 0; i < 256; i++)
            x[i] = scales[s] * ((float)i / 255.0f);
        round_trip(LST_CODEC_Q8_DYNAMIC_U, 256);
        assert_true(back[255] == x[255]);
        for (size_t i = 0; i < 256; i++)
            assert_true(fabs((double)back[i] - (double)x[i]) <= 0.0036 * (double)x[255] + 0x1p-149);
    }
}

static void tails_have_their_own_scale(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097};
    static const lst_codec codecs[] = {LST_CODEC_Q8_DYNAMIC, LST_CODEC_Q8_DYNAMIC_2048};
    for (size_t c = 0; c < 2; c++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const size_t n = lengths[l], block = lst_codec_block(codecs[c]);
            for (size_t i = 0; i < n; i++)
                x[i] = (float)(i / block + 1) *
                       (i % block == 0 ? 1.0f : 0.5f); /* one block's scale is 1, the next 2, ... */
            round_trip(codecs[c], n);
            for (size_t b = 0; b * block < n; b++)
                assert_true(scale_of_block(n, b) == (float)(b + 1));
            for (size_t i = 0; i < n; i++)
                assert_true(fabsf(back[i] - x[i]) <= 0.008f * (float)(i / block + 1));
        }
}

static void the_missing_minus_one_costs_seven_thousandths(void **state)
{
    (void)state;
    memset(x, 0, sizeof x);
    x[7] = -3.0f;
    round_trip(LST_CODEC_Q8_DYNAMIC, 256);
    assert_true(memory[7] == 0 && back[7] == -0.99296875f * 3.0f && scale_of_block(256, 0) == 3.0f);
}

static void infinity_saturates_and_nan_takes_its_block_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < 768; i++)
        x[i] = 1.0f;
    x[10] = INFINITY;
    x[300] = NAN;
    round_trip(LST_CODEC_Q8_DYNAMIC, 768);
    assert_true(back[10] == FLT_MAX);
    for (size_t i = 0; i < 256; i++)
        assert_true(isfinite(back[i]));
    for (size_t i = 256; i < 512; i++)
        assert_true(isnan(back[i]));
    for (size_t i = 512; i < 768; i++)
        assert_true(back[i] == 1.0f);
}

/* 1,000 times decoded and coded again: no drift, where the largest magnitude is positive. */
static void no_drift(void **state)
{
    (void)state;
    for (size_t i = 0; i < 1000; i++)
        x[i] = i % 256 == 3 ? 9.0f : (float)lst__random_normal(1, 1, i);
    round_trip(LST_CODEC_Q8_DYNAMIC, 1000);
    static float first[1000];
    memcpy(first, back, sizeof first);
    for (int k = 0; k < 1000; k++) {
        memcpy(x, back, sizeof first);
        round_trip(LST_CODEC_Q8_DYNAMIC, 1000);
    }
    assert_memory_equal(first, back, sizeof first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_of_zeros_is_zero),
        cmocka_unit_test(subnormal_and_huge_scales_keep_their_precision),
        cmocka_unit_test(tails_have_their_own_scale),
        cmocka_unit_test(the_missing_minus_one_costs_seven_thousandths),
        cmocka_unit_test(infinity_saturates_and_nan_takes_its_block_alone),
        cmocka_unit_test(no_drift),
    };
    return cmocka_run_group_tests_name("dynamic", tests, NULL, NULL);
}
