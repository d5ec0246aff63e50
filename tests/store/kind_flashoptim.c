/* SPDX-License-Identifier: MIT
 *
 * flashoptim: codes, scales and decoded values of its two state formats, equal bits. Its weight split is no format of
 * ours (split24 and split32 keep more with as many bits), so that part is not compared.
 */
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

void kind_flashoptim(const golden_file *g, const char *folder, const char *file)
{
    (void)folder;
    check_state(g, file, "m", LST_CODEC_Q8_FLASH, "I8");
    check_state(g, file, "v", LST_CODEC_Q8_FLASH_U, "U8");
    kind_skip(file, "split_bf16, split_f16", "FlashOptim's weight split is no format of this library");
}
