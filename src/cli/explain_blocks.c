/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cli/explain.h"
#include "store/codec.h"

enum { N = 2048, STEPS = 2000 };
#define BETA2 0.999

static float values[N], decoded[N];
static double ratios[N];
static _Alignas(64) unsigned char memory[4 * N];

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- one outlier ---- */

/* Plain 8-bit integers, 127 for the largest magnitude of a block. */
static void linear(size_t block)
{
    for (size_t first = 0; first < N; first += block) {
        float most = 0;
        for (size_t i = first; i < first + block; i++)
            most = fmaxf(most, fabsf(values[i]));
        for (size_t i = first; i < first + block; i++)
            decoded[i] = roundf(values[i] / most * 127) / 127 * most;
    }
}

static void outlier_row(const char *name, double bytes)
{
    size_t zeros = 0;
    for (size_t i = 0; i < N; i++) {
        zeros += decoded[i] == 0;
        ratios[i] = fabs((double)decoded[i] / (double)values[i] - 1);
    }
    qsort(ratios, N, sizeof *ratios, ascending);
    printf("    %-34s %6.3f %9.1f %% %11.1f %%\n", name, bytes, 100.0 * (double)zeros / N, 100 * ratios[N / 2]);
}

static void outlier_codec(lst_codec codec, const char *name)
{
    lst__codec(codec)->encode(memory, N, 0, N, values, &(lst__rounding){.seed = 1});
    lst__codec(codec)->decode(memory, N, 0, N, decoded);
    outlier_row(name, (double)lst_codec_bytes(codec, N) / N);
}

static void one_outlier(void)
{
    for (size_t i = 0; i < N; i++)
        values[i] = (float)(0.001 * lst__random_normal(1, 1, i));
    values[N / 2] = 1;
    printf("%d values of about 0.001, and among them one outlier of 1. Stored and read back:\n\n"
           "    %-34s %6s %11s %13s\n",
           (int)N, "", "bytes", "became 0", "median error");
    linear(N);
    outlier_row("8-bit integers, one scale for all", 1 + 4.0 / N);
    linear(32);
    outlier_row("8-bit integers, a scale for 32", 1 + 4.0 / 32);
    outlier_codec(LST_CODEC_Q8_DYNAMIC_2048, "dynamic map, a scale for 2,048");
    outlier_codec(LST_CODEC_Q8_DYNAMIC, "dynamic map, a scale for 256");
    outlier_codec(LST_CODEC_Q8, "q8: small floats, exponent for 32");
    printf("\nUnder one scale the outlier takes all levels: nearly everything else becomes 0. Under block scales it "
           "spoils\n"
           "its own block alone.\n\n");
}

/* ---- gradients of very different size in one block ---- */

/* The second moment of N weights, kept in a codec step after step, beside the same in double. */
static void average(lst_codec codec)
{
    static double exact[N];
    memset(exact, 0, sizeof exact);
    memset(decoded, 0, sizeof decoded);
    lst__codec(codec)->encode(memory, N, 0, N, decoded, NULL);
    for (uint64_t t = 0; t < STEPS; t++) {
        lst__codec(codec)->decode(memory, N, 0, N, decoded);
        for (size_t i = 0; i < N; i++) {
            const double g = (double)values[i] * lst__random_normal(2, t, i);
            exact[i] = BETA2 * exact[i] + (1 - BETA2) * g * g;
            decoded[i] = (float)BETA2 * decoded[i] + (float)(1 - BETA2) * (float)(g * g);
        }
        lst__codec(codec)->encode(memory, N, 0, N, decoded, &(lst__rounding){.seed = 1, .step = t});
    }
    lst__codec(codec)->decode(memory, N, 0, N, decoded);
    for (size_t i = 0; i < N; i++)
        ratios[i] = sqrt((double)decoded[i] / exact[i]);
    qsort(ratios, N, sizeof *ratios, ascending);
}

static void average_row(lst_codec codec, const char *name)
{
    size_t zeros = 0, far = 0;
    average(codec);
    for (size_t i = 0; i < N; i++) {
        zeros += ratios[i] == 0;
        far += ratios[i] < 0.5 || ratios[i] > 2;
    }
    printf("    %-34s %6.3f %9.1f %% %11.1f %%   %5.2f .. %.2f\n", name, (double)lst_codec_bytes(codec, N) / N,
           100.0 * (double)zeros / N, 100.0 * (double)far / N, ratios[N / 100], ratios[N - 1 - N / 100]);
}

lst_status cli_explain_blocks(lst_error *err)
{
    (void)err;
    one_outlier();
    for (size_t i = 0; i < N; i++)
        values[i] = (float)exp(2 * lst__random_normal(3, 1, i));
    printf("What still breaks: gradients of very different size in one block (sizes spread log-normally, deviation 2). "
           "The\n"
           "second moment of each weight after %d steps, against the same in double:\n\n"
           "    %-34s %6s %11s %13s   %s\n",
           (int)STEPS, "", "bytes", "stuck at 0", "off by 2x", "root(kept / exact), 1 % .. 99 %");
    average_row(LST_CODEC_Q8_DYNAMIC_U, "q8-dynamic (bitsandbytes)");
    average_row(LST_CODEC_Q8_FLASH_U, "q8-flash (FlashOptim)");
    average_row(LST_CODEC_Q8U, "q8");
    average_row(LST_CODEC_Q4U, "q4");
    printf("\nRounded to nearest, a small moment that has fallen to 0 stays there: what one step adds, 0.001 of g*g, "
           "is less\n"
           "than half the first level. Adam divides by the root: such a weight steps up to 31 times too far. q8 and q4 "
           "have\n"
           "levels 2^-39 and 2^-11 of the block's largest, never round from above 0 to 0, and round stochastically, so "
           "that\n"
           "an average follows its gradient however small a step's change is. q4 has 15 levels: the smallest moments "
           "of a\n"
           "block are kept too large, which slows their weights down and lets none jump.\n");
    return LST_OK;
}
