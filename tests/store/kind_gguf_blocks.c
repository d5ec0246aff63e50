/* SPDX-License-Identifier: MIT
 *
 * gguf_blocks: ggml's block formats decoded. Equal bits; any NaN for a NaN.
 */
#include "store/kinds.h"

#include <math.h>
#include <string.h>

#include "store/ggml.h"

static void check_format(const golden_file *g, const char *file, const lst__ggml_format *format)
{
    char raw_name[64], want_name[64], text[96];
    snprintf(raw_name, sizeof raw_name, "%s/raw", format->name);
    snprintf(want_name, sizeof want_name, "%s/decoded", format->name);
    golden_array about;
    if (!golden_find(g, raw_name, &about))
        return;
    size_t n_bytes, n_want, wrong = 0;
    unsigned char *raw = kind_array(g, raw_name, "U8", &n_bytes);
    float *want = kind_array(g, want_name, "F32", &n_want);
    if (n_bytes / format->bytes * format->values != n_want)
        golden_die("array of another length", want_name);
    for (size_t block = 0; block < n_bytes / format->bytes; block++) {
        float got[256];
        format->decode(raw + block * format->bytes, got);
        for (size_t i = 0; i < format->values; i++) {
            const float w = want[block * format->values + i];
            wrong += isnan(w) ? !isnan(got[i]) : memcmp(&w, &got[i], sizeof w) != 0;
        }
    }
    snprintf(text, sizeof text, "%zu of %zu values differ, 0 allowed", wrong, n_want);
    kind_verdict(wrong == 0, file, format->name, text);
    free(raw);
    free(want);
}

void kind_gguf_blocks(const golden_file *g, const char *folder, const char *file)
{
    (void)folder;
    for (size_t i = 0; i < LST__N_GGML; i++)
        check_format(g, file, &lst__ggml_formats[i]);
}
