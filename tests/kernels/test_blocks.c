/* SPDX-License-Identifier: MIT
 *
 * Kernels of blocks: every variant gives the bytes of the scalar reference, for hostile groups and for tame ones, at
 * all lengths up to a few blocks, against guard pages; and reads no further than the codes and scales of the run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/guarded.h"
#include "kernels/hostile.h"
#include "kernels/kernels.h"
#include "numeric/bits.h"

enum { LONGEST = 300, ALIGNMENTS = 5, N_FORMATS = 4 };

static guarded pages[3];
static const lst__rounding_key key = {0x9abcdef012345678u};

typedef struct format {
    const char *name;
    size_t bytes_of_32, group;
} format;
static const format formats[N_FORMATS] = {{"q8", 32, 32}, {"q8u", 32, 32}, {"q4", 16, 16}, {"q4u", 16, 16}};

static lst__blocks_encode *encoder(const lst__kernels *k, size_t f)
{
    lst__blocks_encode *all[N_FORMATS] = {k->f32_to_q8, k->f32_to_q8u, k->f32_to_q4, k->f32_to_q4u};
    return all[f];
}

static lst__blocks_decode *decoder(const lst__kernels *k, size_t f)
{
    lst__blocks_decode *all[N_FORMATS] = {k->q8_to_f32, k->q8u_to_f32, k->q4_to_f32, k->q4u_to_f32};
    return all[f];
}

/* Hostile numbers in some groups; in others numbers of one size, where single bits of a draw matter; or zeros. */
static void fill(float *x, size_t n, uint64_t stream)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = lst__random_below(1, stream, i / 16, 8);
        uint32_t bits = hostile_bits(stream, i);
        if (kind > 0)
            bits = (bits & 0x81ffffffu) | 0x3c000000u;
        if (kind == 1 || (kind == 2 && i % 2))
            bits = 0;
        x[i] = lst__f32_of_bits(bits);
    }
}

static void check_encode(const lst__kernels *k, size_t f, size_t n, size_t shift, int at_end)
{
    const lst__kernels *reference = lst__kernels_for(LST__ISA_SCALAR);
    const size_t each = formats[f].bytes_of_32, n_codes = n / 32 * each + (n % 32 < each ? n % 32 : each);
    const size_t n_bases = (n + formats[f].group - 1) / formats[f].group;
    static uint8_t want_codes[LONGEST], want_bases[LONGEST];
    float *x = guarded_at(pages[0], at_end, shift * 4, n * 4);
    uint8_t *codes = guarded_at(pages[1], at_end, shift, n_codes),
            *bases = guarded_at(pages[2], at_end, shift, n_bases);
    fill(x, n, n + 31 * shift);
    encoder(k, f)(x, codes, bases, n, key, 0xffffffc0u);
    encoder(reference, f)(x, want_codes, want_bases, n, key, 0xffffffc0u);
    if (memcmp(codes, want_codes, n_codes) != 0 || memcmp(bases, want_bases, n_bases) != 0)
        fail_msg("%s of %s encodes otherwise than the reference at n = %zu", k->name, formats[f].name, n);
    /* Any bytes may be decoded. */
    for (size_t i = 0; i < n_codes; i++)
        codes[i] = (uint8_t)hostile_bits(3, i);
    static float want[LONGEST];
    decoder(k, f)(codes, bases, x, n);
    decoder(reference, f)(codes, bases, want, n);
    if (n > 0 && memcmp(x, want, n * 4) != 0)
        fail_msg("%s of %s decodes otherwise than the reference at n = %zu", k->name, formats[f].name, n);
}

static void small_floats_equal_the_reference(void **state)
{
    (void)state;
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++)
        for (size_t f = 0; lst__kernels_for(isa) != NULL && f < N_FORMATS; f++)
            for (size_t n = 0; n <= LONGEST; n++)
                for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
                    check_encode(lst__kernels_for(isa), f, n, shift, 0);
                    check_encode(lst__kernels_for(isa), f, n, shift, 1);
                }
}

/* Every code under every base. */
static void all_codes_decode_as_the_reference(void **state)
{
    (void)state;
    static uint8_t codes[256], bases[16];
    static float got[512], want[512];
    for (size_t i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    for (lst__isa isa = LST__ISA_BASE; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (int base = 0; k != NULL && base < 256; base++)
            for (size_t f = 0; f < N_FORMATS; f++) {
                memset(bases, base, sizeof bases);
                decoder(k, f)(codes, bases, got, 256);
                decoder(lst__kernels_for(LST__ISA_SCALAR), f)(codes, bases, want, 256);
                assert_memory_equal(got, want, 256 * sizeof *got);
            }
    }
}

static void split24_equals_the_reference(void **state)
{
    (void)state;
    const lst__kernels *reference = lst__kernels_for(LST__ISA_SCALAR);
    static uint16_t want_hi[LONGEST];
    static uint8_t want_lo[LONGEST];
    static float want[LONGEST];
    for (lst__isa isa = LST__ISA_BASE; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (size_t n = 0; k != NULL && n <= LONGEST; n++)
            for (int at_end = 0; at_end < 2; at_end++) {
                float *x = guarded_at(pages[0], at_end, 4 * (n % 9), n * 4);
                uint16_t *hi = guarded_at(pages[1], at_end, 2 * (n % 7), n * 2);
                uint8_t *lo = guarded_at(pages[2], at_end, n % 5, n);
                fill(x, n, 2 * n);
                uint32_t first = (uint32_t)(0u - n / 2); /* the index wraps, and runs start anywhere */
                k->f32_to_split24(x, hi, lo, n, key, first);
                reference->f32_to_split24(x, want_hi, want_lo, n, key, first);
                assert_true(memcmp(hi, want_hi, n * 2) == 0 && memcmp(lo, want_lo, n) == 0);
                k->split24_to_f32(hi, lo, x, n);
                reference->split24_to_f32(hi, lo, want, n);
                assert_true(n == 0 || memcmp(x, want, n * 4) == 0);
            }
    }
}

static void check_dynamic(const lst__kernels *k, int is_signed, size_t n, float absmax, int at_end)
{
    const lst__kernels *reference = lst__kernels_for(LST__ISA_SCALAR);
    const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
    static uint8_t want_codes[LONGEST];
    static float want[LONGEST];
    float *x = guarded_at(pages[0], at_end, 4 * (n % 9), n * 4);
    uint8_t *codes = guarded_at(pages[1], at_end, n % 5, n);
    fill(x, n, 2 * n + 1);
    k->f32_to_dynamic(x, codes, n, absmax, map);
    reference->f32_to_dynamic(x, want_codes, n, absmax, map);
    if (memcmp(codes, want_codes, n) != 0)
        fail_msg("%s encodes the dynamic map otherwise than the reference at n = %zu", k->name, n);
    k->dynamic_to_f32(codes, x, n, absmax, map);
    reference->dynamic_to_f32(codes, want, n, absmax, map);
    for (size_t i = 0; i < n; i++) /* NaN as a class */
        if (lst__bits_of_f32(x[i]) != lst__bits_of_f32(want[i]) && (x[i] == x[i] || want[i] == want[i]))
            fail_msg("%s decodes the dynamic map otherwise than the reference at n = %zu", k->name, n);
}

static void dynamic_map_equals_the_reference(void **state)
{
    (void)state;
    static const uint32_t scales[] = {0, 1, 0x007fffff, 0x00800000, 0x3c800000, 0x3f800000, 0x7f7fffff, 0x7fc00000};
    for (lst__isa isa = LST__ISA_BASE; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (size_t n = 0; k != NULL && n <= LONGEST; n++)
            for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
                for (int which = 0; which < 4; which++)
                    check_dynamic(k, which & 1, n, lst__f32_of_bits(scales[s]), which >> 1);
    }
}

static int open_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        pages[i] = guarded_new();
    return 0;
}

static int close_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        guarded_free(pages[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_equal_the_reference),
        cmocka_unit_test(all_codes_decode_as_the_reference),
        cmocka_unit_test(split24_equals_the_reference),
        cmocka_unit_test(dynamic_map_equals_the_reference),
    };
    return cmocka_run_group_tests_name("blocks", tests, open_pages, close_pages);
}
