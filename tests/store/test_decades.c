/* SPDX-License-Identifier: MIT
 *
 * Error by decade: values spread evenly (in the logarithm) over one decade below the largest of their block, coded
 * once. Prints the table of docs/numerics.md and holds the native formats to it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "store/codec.h"

enum { BLOCK = 256, BLOCKS = 400, DECADES = 6 };

typedef struct error {
    double mean, max, bias; /* relative */
} error;

static error error_in(lst_codec codec, int decade)
{
    float x[BLOCK], back[BLOCK];
    _Alignas(64) unsigned char memory[2 * BLOCK];
    error e = {0};
    for (uint64_t b = 0; b < BLOCKS; b++) {
        for (size_t i = 0; i < BLOCK; i++)
            x[i] = (float)pow(10.0, -(double)decade - lst__random_unit(6, b, i));
        for (size_t i = 0; i < BLOCK; i += 16)
            x[i] = 1.0f;
        lst__codec(codec)->encode(memory, BLOCK, 0, BLOCK, x, &(lst__rounding){.seed = 2, .step = b});
        lst__codec(codec)->decode(memory, BLOCK, 0, BLOCK, back);
        for (size_t i = 0; i < BLOCK; i++) {
            const double apart = ((double)back[i] - (double)x[i]) / (double)x[i];
            if (i % 16 == 0)
                continue;
            e.mean += fabs(apart) / (BLOCKS * BLOCK / 16 * 15);
            e.bias += apart / (BLOCKS * BLOCK / 16 * 15);
            e.max = fmax(e.max, fabs(apart));
        }
    }
    return e;
}

static void table(const char *title, const lst_codec *codecs, size_t n, error out[][DECADES])
{
    print_message("%s: mean / largest relative error (bias)\n", title);
    for (size_t c = 0; c < n; c++) {
        print_message("| `%s` |", lst_codec_name(codecs[c]));
        for (int d = 0; d < DECADES; d++) {
            out[c][d] = error_in(codecs[c], d);
            print_message(" %.3f / %.2f (%+.3f) |", out[c][d].mean, out[c][d].max, out[c][d].bias);
        }
        print_message("\n");
    }
}

static void first_moments(void **state)
{
    (void)state;
    static const lst_codec codecs[] = {LST_CODEC_Q8, LST_CODEC_Q8_DYNAMIC, LST_CODEC_Q8_FLASH, LST_CODEC_Q4};
    error e[4][DECADES];
    table("first moment", codecs, 4, e);
    for (int d = 0; d < 5; d++)
        assert_true(e[0][d].mean < 0.09 && e[0][d].max < 0.25 && fabs(e[0][d].bias) < 0.002);
    for (int d = 0; d < DECADES; d++)
        assert_true(fabs(e[3][d].bias) < 0.1 * sqrt(pow(10.0, d)) * 0.1 + 0.01);
}

static void second_moments(void **state)
{
    (void)state;
    static const lst_codec codecs[] = {LST_CODEC_Q8U, LST_CODEC_Q8_DYNAMIC_U, LST_CODEC_Q8_FLASH_U, LST_CODEC_Q4U};
    error e[4][DECADES];
    table("second moment", codecs, 4, e);
    for (int d = 0; d < DECADES; d++)
        assert_true(e[0][d].mean < 0.09 && e[0][d].max < 0.25 && fabs(e[0][d].bias) < 0.002);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_moments), cmocka_unit_test(second_moments)};
    return cmocka_run_group_tests_name("decades", tests, NULL, NULL);
}
