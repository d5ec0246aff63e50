/* SPDX-License-Identifier: MIT
 *
 * flashoptim: codes, scales and decoded values of its two state formats, equal bits. Its weight split is no codec of
 * ours (split24 and split32 keep more with as many bits): the formula that docs/numerics.md compares them with is held
 * to the peer's results here.
 */
#include <math.h>

#include "numeric/bits.h"
#include "numeric/f16.h"
#include "store/kinds.h"

#include "store/codec.h"

static void check_state(const golden_file *g, const char *file, const char *name, lst_codec codec,
                        const char *code_dtype)
{
    char full[64], text[160];
    size_t n, n_codes, n_scales, n_decoded, wrong_codes = 0, wrong_scales = 0, wrong_values = 0;
    snprintf(full, sizeof full, "%s/x", name);
    float *x = kind_array(g, full, "F32", &n);
    snprintf(full, sizeof full, "%s/codes", name);
    uint8_t *codes = kind_array(g, full, code_dtype, &n_codes);
    snprintf(full, sizeof full, "%s/scales", name);
    uint16_t *scales = kind_array(g, full, "F16", &n_scales);
    snprintf(full, sizeof full, "%s/decoded", name);
    uint32_t *decoded = kind_array(g, full, "F32", &n_decoded);
    const size_t bytes = lst_codec_bytes(codec, n);
    uint8_t *memory = calloc(bytes + 1, 1);
    float *back = calloc(n + 1, sizeof *back);
    if (!memory || !back || n_codes != n || n_decoded != n)
        golden_die("no memory, or arrays of different lengths", name);
    lst__codec(codec)->encode(memory, n, 0, n, x, NULL);
    lst__codec(codec)->decode(memory, n, 0, n, back);
    const uint16_t *got_scales = (const uint16_t *)(const void *)(memory + bytes - n_scales * sizeof *scales);
    for (size_t i = 0; i < n_scales; i++)
        wrong_scales += got_scales[i] != scales[i];
    for (size_t i = 0; i < n; i++) {
        wrong_codes += memory[i] != codes[i];
        uint32_t bits;
        memcpy(&bits, &back[i], sizeof bits);
        const bool is_nan = (decoded[i] & 0x7fffffffu) > 0x7f800000u;
        wrong_values += is_nan ? back[i] == back[i] : bits != decoded[i];
    }
    snprintf(text, sizeof text, "%zu codes, %zu scales, %zu decoded values of %zu wrong, 0 allowed", wrong_codes,
             wrong_scales, wrong_values, n);
    kind_verdict(wrong_codes + wrong_scales + wrong_values == 0, file, name, text);
    free(x);
    free(codes);
    free(scales);
    free(decoded);
    free(memory);
    free(back);
}

/* x = h + code/L * U: h in 16 bits, U half a unit in its last place, code in 8 or 16 bits. */
static void check_split(const golden_file *g, const char *file, const char *name, int bits, int mantissa, int bias)
{
    char full[64], text[160];
    const char *narrow = mantissa == 7 ? "BF16" : "F16";
    size_t n, n_narrow, n_codes, n_rebuilt, wrong_codes = 0, near = 0, wrong_values = 0;
    snprintf(full, sizeof full, "%s/x", name);
    float *x = kind_array(g, full, "F32", &n);
    snprintf(full, sizeof full, "%s/narrow", name);
    uint16_t *halves = kind_array(g, full, narrow, &n_narrow);
    snprintf(full, sizeof full, "%s/error_bits_%d", name, bits);
    void *codes = kind_array(g, full, bits == 8 ? "I8" : "I16", &n_codes);
    snprintf(full, sizeof full, "%s/rebuilt_%d", name, bits);
    float *rebuilt = kind_array(g, full, "F32", &n_rebuilt);
    const double levels = bits == 8 ? 127 : 32767;
    for (size_t i = 0; i < n && n_narrow == n && n_codes == n && n_rebuilt == n; i++) {
        const double h =
            (double)(mantissa == 7 ? lst__f32_of_bits((uint32_t)halves[i] << 16) : lst__f16_to_f32(halves[i]));
        const int theirs = bits == 8 ? ((int8_t *)codes)[i] : ((int16_t *)codes)[i];
        int e = 0;
        frexp(h, &e);
        e = h == 0 || e - 1 < 1 - bias ? 1 - bias : e - 1;
        const double unit = ldexp(1, e - mantissa - 1), exact = fmin(fmax(((double)x[i] - h) / unit, -1), 1) * levels;
        const int code = (int)round(exact);
        const bool tie = fabs(fabs(exact - trunc(exact)) - 0.5) < 0.004; /* the product's rounding in float32 */
        wrong_codes += code != theirs && !(tie && abs(code - theirs) == 1);
        near += code != theirs;
        const double value = h + theirs / levels * unit;
        wrong_values += fabs(value - (double)rebuilt[i]) > fmax(0x1p-22 * fabs(value), 0x1p-149);
    }
    snprintf(full, sizeof full, "%s %d", name, bits);
    snprintf(text, sizeof text, "%zu codes, %zu rebuilt values of %zu wrong, 0 allowed (%zu at halves)", wrong_codes,
             wrong_values, n, near);
    kind_verdict(n > 0 && n_narrow == n && n_codes == n && n_rebuilt == n && wrong_codes + wrong_values == 0, file,
                 full, text);
    free(x);
    free(halves);
    free(codes);
    free(rebuilt);
}

void kind_flashoptim(const golden_file *g, const char *folder, const char *file)
{
    (void)folder;
    check_state(g, file, "m", LST_CODEC_Q8_FLASH, "I8");
    check_state(g, file, "v", LST_CODEC_Q8_FLASH_U, "U8");
    for (int bits = 8; bits <= 16; bits += 8) {
        check_split(g, file, "split_bf16", bits, 7, 127);
        check_split(g, file, "split_f16", bits, 10, 15);
    }
}
