/* SPDX-License-Identifier: MIT
 *
 * 4-bit formats of others, which are no codecs of this library (q4 has a scale for 16 values and rounds
 * stochastically): the formulas that reference pages and plans quote are held to what the peers' packages computed.
 * torchao's maps, nearest codes, scales and packing; bitsandbytes' nf4 and fp4 tables.
 */
#include <math.h>

#include "store/kinds.h"

enum { LEVELS = 16, BLOCK = 128 };

/* ---- tables ---- */

/* Three decades of 1, 2 and 4 centres with their negatives, 0 and 1; unsigned: sixteenths without 0. */
static void torchao_levels(bool is_signed, float out[LEVELS])
{
    size_t n = 0;
    for (int k = 1; !is_signed && k <= LEVELS; k++)
        out[n++] = (float)k / LEVELS;
    if (!is_signed)
        return;
    for (int decade = 0; decade < 3; decade++)
        for (int k = 0; k < 1 << decade; k++) {
            const double level = pow(10, decade - 2) * (0.1 + 0.9 * (k + 0.5) / (1 << decade));
            out[8 + n] = (float)level;
            out[6 - n] = -(float)level;
            n++;
        }
    out[7] = 0;
    out[15] = 1;
}

/* z with P(Z < z) = p for p >= 0.5, by bisection. */
static double normal_quantile(double p)
{
    double low = 0, high = 10;
    for (int i = 0; i < 80; i++) {
        const double middle = 0.5 * (low + high);
        *(0.5 * erfc(-middle / sqrt(2)) < p ? &low : &high) = middle;
    }
    return low;
}

/* Quantiles of a normal distribution, evenly spaced in probability, 8 above zero and 7 below, largest magnitude 1. */
static void nf4_levels(float out[LEVELS])
{
    const double offset = 0.9677083, most = normal_quantile(offset);
    for (int i = 0; i < 8; i++)
        out[15 - i] = (float)(normal_quantile(offset + (0.5 - offset) * i / 8) / most);
    for (int i = 0; i < 7; i++)
        out[i] = (float)(-normal_quantile(offset + (0.5 - offset) * i / 7) / most);
    out[7] = 0;
}

static void fp4_levels(float out[LEVELS])
{
    static const double twelfths[8] = {0, 0.0625, 8, 12, 4, 6, 2, 3};
    for (int i = 0; i < 8; i++) {
        out[i] = (float)(twelfths[i] / 12);
        out[8 + i] = -out[i];
    }
}

static void fp4_cpu_levels(float out[LEVELS])
{
    static const float digits[8] = {0, 0.0052f, 0.6667f, 1, 0.3333f, 0.5f, 0.1667f, 0.25f};
    for (int i = 0; i < 8; i++) {
        out[i] = digits[i];
        out[8 + i] = -digits[i];
    }
}

static void check_table(const golden_file *g, const char *file, const char *name, const float *want, double allowed)
{
    char text[96];
    golden_array about;
    size_t n;
    if (!golden_find(g, name, &about))
        return;
    float *got = kind_array(g, name, "F32", &n);
    double worst = n == LEVELS ? 0 : INFINITY;
    for (size_t i = 0; i < LEVELS && n == LEVELS; i++)
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
    snprintf(text, sizeof text, "%zu levels, at most %.1e apart, %.1e allowed", n, worst, allowed);
    kind_verdict(worst <= allowed, file, name, text);
    free(got);
}

void kind_four_bit_tables(const golden_file *g, const char *file)
{
    float level[LEVELS];
    torchao_levels(true, level);
    check_table(g, file, "closed_form_4bit_signed", level, 0);
    check_table(g, file, "torchao_4bit_signed", level, 0x1p-24);
    torchao_levels(false, level);
    check_table(g, file, "closed_form_4bit_unsigned", level, 0);
    check_table(g, file, "torchao_4bit_unsigned", level, 0);
    nf4_levels(level);
    check_table(g, file, "nf4", level, 2e-7);
    fp4_levels(level);
    check_table(g, file, "fp4", level, 0x1p-24);
    fp4_cpu_levels(level);
    check_table(g, file, "fp4_cpu_table", level, 0);
}

/* ---- torchao's blocks ---- */

static uint8_t nearest(const float *level, float x)
{
    uint8_t code = 0;
    while (code < LEVELS - 1 && x > 0.5f * (level[code] + level[code + 1]))
        code++;
    return code;
}

static void check_blocks(const golden_file *g, const char *file, const char *name)
{
    static const char *const parts[] = {"x", "codes", "alt", "absmax", "decoded", "torchao_codes", "torchao_packed"};
    void *array[7];
    size_t n[7], wrong_codes = 0, wrong_scales = 0, wrong_values = 0, wrong_packing = 0;
    float level[LEVELS];
    torchao_levels(strncmp(name, "signed", 6) == 0, level);
    for (size_t i = 0; i < 7; i++) {
        char full[160];
        snprintf(full, sizeof full, "%s/%s", name, parts[i]);
        array[i] = kind_array(g, full, i == 0 || i == 3 || i == 4 ? "F32" : "U8", &n[i]);
    }
    const float *x = array[0], *scales = array[3], *decoded = array[4];
    const uint8_t *codes = array[1], *alt = array[2], *theirs = array[5], *packed = array[6];
    for (size_t first = 0; first < n[0]; first += BLOCK) {
        const size_t end = first + BLOCK < n[0] ? first + BLOCK : n[0];
        float most = 0;
        for (size_t i = first; i < end; i++)
            most = fmaxf(most, fabsf(x[i]));
        wrong_scales += most != scales[first / BLOCK];
        for (size_t i = first; i < end; i++) {
            const uint8_t code = nearest(level, most > 0 ? x[i] / most : 0);
            wrong_codes += code != codes[i] && code != alt[i];
            const double value = (double)level[codes[i]] * (double)most;
            wrong_values += fabs(value - (double)decoded[i]) > fmax(2.4e-7 * fabs(value), 0x1p-149);
        }
    }
    for (size_t i = 0; i < n[6]; i++) /* two codes a byte, the even index in the high half */
        wrong_packing += packed[i] != (theirs[2 * i] << 4 | theirs[2 * i + 1]);
    char text[160];
    snprintf(text, sizeof text, "%zu codes, %zu scales, %zu decoded values, %zu packed bytes of %zu wrong, 0 allowed",
             wrong_codes, wrong_scales, wrong_values, wrong_packing, n[0]);
    kind_verdict(wrong_codes + wrong_scales + wrong_values + wrong_packing == 0, file, name, text);
    for (size_t i = 0; i < 7; i++)
        free(array[i]);
}

void kind_torchao_4bit(const golden_file *g, const char *folder, const char *file)
{
    (void)folder;
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(g->about, "cases"), index, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (json_integer_value(json_object_get(g->about, "block")) == BLOCK)
            check_blocks(g, file, name);
        else
            kind_skip(file, name, "torchao has blocks of 128");
    }
}
