/* SPDX-License-Identifier: MIT
 *
 * float_formats: float32 to bf16 and f16 and back. Equal bits; any NaN for a NaN.
 */
#include "store/kinds.h"

#include "leanstep/codec.h"
#include "store/codec.h"

static bool is_nan16(uint16_t h, uint16_t infinity)
{
    return (h & 0x7fffu) > infinity;
}

static bool is_nan32(uint32_t bits)
{
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

static void check_encode(const golden_file *g, const char *file, lst_codec codec, const char *want_name,
                         uint16_t infinity)
{
    size_t n, n_want, wrong = 0;
    float *x = kind_array(g, "f32_bits", "U32", &n);
    uint16_t *want = kind_array(g, want_name, "U16", &n_want), *got = calloc(n + 1, sizeof *got);
    if (n_want != n || !got)
        golden_die("array of another length", want_name);
    lst__codec(codec)->encode(got, n, 0, n, x, NULL);
    for (size_t i = 0; i < n; i++)
        wrong += is_nan16(want[i], infinity) ? !is_nan16(got[i], infinity) : got[i] != want[i];
    char text[96];
    snprintf(text, sizeof text, "%zu of %zu values differ, 0 allowed", wrong, n);
    kind_verdict(wrong == 0, file, want_name, text);
    free(x);
    free(want);
    free(got);
}

static void check_decode(const golden_file *g, const char *file, lst_codec codec, const char *name,
                         const char *want_name)
{
    size_t n, n_want, wrong = 0;
    uint16_t *h = kind_array(g, name, "U16", &n);
    golden_array about;
    if (!golden_find(g, want_name, &about))
        golden_die("no array", want_name);
    uint32_t *want = kind_array(g, want_name, about.dtype, &n_want), *got = calloc(n + 1, sizeof *got);
    if (n_want != n || !got)
        golden_die("array of another length", want_name);
    lst__codec(codec)->decode(h, n, 0, n, (float *)(void *)got);
    for (size_t i = 0; i < n; i++)
        wrong += is_nan32(want[i]) ? !is_nan32(got[i]) : got[i] != want[i];
    char text[96];
    snprintf(text, sizeof text, "%zu of %zu values differ, 0 allowed", wrong, n);
    kind_verdict(wrong == 0, file, want_name, text);
    free(h);
    free(want);
    free(got);
}

void kind_float_formats(const golden_file *g, const char *folder, const char *file)
{
    (void)folder;
    check_encode(g, file, LST_CODEC_BF16, "to_bf16", 0x7f80);
    check_encode(g, file, LST_CODEC_F16, "to_f16", 0x7c00);
    check_decode(g, file, LST_CODEC_BF16, "bf16_bits", "bf16_to_f32");
    check_decode(g, file, LST_CODEC_F16, "f16_bits", "f16_to_f32");
}
