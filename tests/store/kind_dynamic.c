/* SPDX-License-Identifier: MIT
 *
 * tables, dynamic_b256, dynamic_b2048: the closed form exactly, bitsandbytes' and torchao's tables within 2 units in
 * the last place; absmax exactly, codes equal to `codes` or `alt`; decoded values exactly under the table that made
 * the file, and within 3 units in the last place under ours.
 */
#include "store/kinds.h"

#include "kernels/kernels.h"
#include "numeric/dynamic_map.h"
#include "store/codec.h"

static void check_table(const golden_file *g, const char *file, const char *name, int is_signed, uint32_t allowed_ulp)
{
    char bits_name[96], text[96];
    golden_array about;
    snprintf(bits_name, sizeof bits_name, "%s_bits", name);
    if (!golden_find(g, bits_name, &about))
        return;
    size_t n;
    uint32_t *want = kind_array(g, bits_name, "U32", &n), worst = 0;
    for (size_t i = 0; i < n && n == 256; i++) {
        const uint32_t got = lst__bits_of_f32(lst__dynamic_map_get(is_signed)->level[i]);
        const uint32_t apart = got > want[i] ? got - want[i] : want[i] - got;
        worst = apart > worst ? apart : worst;
    }
    snprintf(text, sizeof text, "%zu levels, at most %u ulp apart, %u allowed", n, worst, allowed_ulp);
    kind_verdict(n == 256 && worst <= allowed_ulp, file, name, text);
    free(want);
}

void kind_tables(const golden_file *g, const char *folder, const char *file)
{
    (void)folder;
    static const struct {
        const char *name;
        int is_signed;
        uint32_t allowed_ulp;
    } tables[] = {
        {"closed_form_signed", 1, 0},   {"closed_form_unsigned", 0, 0}, {"bnb_dynamic_signed", 1, 1},
        {"bnb_dynamic_unsigned", 0, 2}, {"torchao_8bit_signed", 1, 1},  {"torchao_8bit_unsigned", 0, 2},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        check_table(g, file, tables[i].name, tables[i].is_signed, tables[i].allowed_ulp);
    kind_four_bit_tables(g, file);
}

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Decoded values of the golden codes: under the file's table with the kernel, as a foreign checkpoint is read, bit
 * for bit; and with the codec, whose levels are those of the closed form. */
static size_t count_wrong_values(const golden_file *tables, const char *name, lst_codec codec, uint8_t *memory,
                                 const float *scales, const float *want, size_t n)
{
    const bool is_signed = strncmp(name, "signed/", 7) == 0;
    const size_t block = lst_codec_block(codec);
    size_t n_levels, wrong = 0;
    float *level = kind_array(tables, is_signed ? "bnb_dynamic_signed" : "bnb_dynamic_unsigned", "F32", &n_levels);
    lst__dynamic_map map = *lst__dynamic_map_get(is_signed);
    memcpy(map.level, level, sizeof map.level);
    float *theirs = calloc(n + 1, sizeof *theirs), *ours = calloc(n + 1, sizeof *ours);
    if (!theirs || !ours || n_levels != 256)
        golden_die("no memory, or no table", name);
    for (size_t first = 0; first < n; first += block)
        lst__kernels_get()->dynamic_to_f32(memory + first, theirs + first, n - first < block ? n - first : block,
                                           scales[first / block], &map);
    lst__codec(codec)->decode(memory, n, 0, n, ours);
    for (size_t i = 0; i < n; i++) {
        const double allowed = fmax(3.6e-7 * fabs((double)want[i]), 0x1p-148);
        wrong += !same_bits(theirs[i], want[i]) || fabs((double)ours[i] - (double)want[i]) > allowed;
    }
    free(level);
    free(theirs);
    free(ours);
    return wrong;
}

/* One array: codes, scales, decoded values. */
static void check_case(const golden_file *g, const golden_file *tables, const char *file, const char *name,
                       lst_codec codec)
{
    static const char *const parts[] = {"x", "codes", "alt", "absmax", "decoded"};
    void *array[5];
    size_t n[5];
    for (size_t i = 0; i < 5; i++) {
        char full[160];
        snprintf(full, sizeof full, "%s/%s", name, parts[i]);
        array[i] = kind_array(g, full, i == 1 || i == 2 ? "U8" : "F32", &n[i]);
    }
    const lst__codec_traits *t = lst__codec(codec);
    const size_t total = n[0], bytes = t->bytes(total), blocks = (total + t->block - 1) / t->block;
    uint8_t *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory || n[3] != blocks)
        golden_die("no memory, or blocks of another size", name);
    t->encode(memory, total, 0, total, array[0], NULL);
    size_t wrong_codes = 0, other = 0, wrong_scales = 0;
    const uint8_t *codes = array[1], *alt = array[2];
    for (size_t i = 0; i < total; i++) {
        wrong_codes += memory[i] != codes[i] && memory[i] != alt[i];
        other += memory[i] != codes[i];
    }
    const float *scales = (const float *)(const void *)(memory + bytes - blocks * sizeof *scales);
    for (size_t b = 0; b < blocks; b++)
        wrong_scales += !same_bits(scales[b], ((const float *)array[3])[b]);
    memcpy(memory, codes, total);
    const size_t wrong_values = count_wrong_values(tables, name, codec, memory, scales, array[4], total);
    char text[200];
    snprintf(text, sizeof text, "%zu codes, %zu scales, %zu decoded values of %zu wrong, 0 allowed (%zu near ties)",
             wrong_codes, wrong_scales, wrong_values, total, other);
    kind_verdict(wrong_codes + wrong_scales + wrong_values == 0, file, name, text);
    for (size_t i = 0; i < 5; i++)
        free(array[i]);
    free(memory);
}

void kind_dynamic(const golden_file *g, const char *folder, const char *file)
{
    golden_file tables = golden_open(folder, "tables");
    const json_int_t block = json_integer_value(json_object_get(g->about, "block"));
    size_t index;
    json_t *entry;
    json_array_foreach(json_object_get(g->about, "cases"), index, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        const bool is_signed = strncmp(name, "signed/", 7) == 0;
        if (block == 256)
            check_case(g, &tables, file, name, is_signed ? LST_CODEC_Q8_DYNAMIC : LST_CODEC_Q8_DYNAMIC_U);
        else if (block == 2048)
            check_case(g, &tables, file, name, is_signed ? LST_CODEC_Q8_DYNAMIC_2048 : LST_CODEC_Q8_DYNAMIC_2048_U);
        else
            kind_skip(file, name, "blocks of this size are no codec of this library");
    }
    golden_close(&tables);
}
