/* SPDX-License-Identifier: MIT
 *
 * Every variant of every conversion gives the bytes of the scalar reference: hostile numbers, all lengths from 0 to
 * 130, all alignments to an element, against guard pages at either end; and the values of numeric/ over all patterns.
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
#include "numeric/bf16.h"
#include "numeric/f16.h"
#include "numeric/split32.h"
#include "numeric/sweep.h"

enum { LONGEST = 130, ALIGNMENTS = 17 };

/* A conversion from up to two arrays to up to two arrays; sizes of an element in bytes, 0 for an array not used. */
typedef struct conversion {
    const char *name;
    size_t in_bytes[2], out_bytes[2];
    void (*run)(const lst__kernels *k, void *const in[2], void *const out[2], size_t n);
} conversion;

static const lst__rounding_key key = {0x9abcdef012345678u};
static const uint32_t first_index = 0xffffffc0u; /* the index wraps within the array */

static void run_bf16_to_f32(const lst__kernels *k, void *const in[2], void *const out[2], size_t n)
{
    k->bf16_to_f32(in[0], out[0], n);
}
static void run_f32_to_bf16(const lst__kernels *k, void *const in[2], void *const out[2], size_t n)
{
    k->f32_to_bf16(in[0], out[0], n);
}
static void run_stochastic(const lst__kernels *k, void *const in[2], void *const out[2], size_t n)
{
    k->f32_to_bf16_stochastic(in[0], out[0], n, key, first_index);
}
static void run_f16_to_f32(const lst__kernels *k, void *const in[2], void *const out[2], size_t n)
{
    k->f16_to_f32(in[0], out[0], n);
}
static void run_f32_to_f16(const lst__kernels *k, void *const in[2], void *const out[2], size_t n)
{
    k->f32_to_f16(in[0], out[0], n);
}
static void run_split32_to_f32(const lst__kernels *k, void *const in[2], void *const out[2], size_t n)
{
    k->split32_to_f32(in[0], in[1], out[0], n);
}
static void run_f32_to_split32(const lst__kernels *k, void *const in[2], void *const out[2], size_t n)
{
    k->f32_to_split32(in[0], out[0], out[1], n);
}

static const conversion conversions[] = {
    {"bf16_to_f32", {2, 0}, {4, 0}, run_bf16_to_f32},
    {"f32_to_bf16", {4, 0}, {2, 0}, run_f32_to_bf16},
    {"f32_to_bf16_stochastic", {4, 0}, {2, 0}, run_stochastic},
    {"f16_to_f32", {2, 0}, {4, 0}, run_f16_to_f32},
    {"f32_to_f16", {4, 0}, {2, 0}, run_f32_to_f16},
    {"split32_to_f32", {2, 2}, {4, 0}, run_split32_to_f32},
    {"f32_to_split32", {4, 0}, {2, 2}, run_f32_to_split32},
};

static guarded pages[4];

static void fill_hostile(void *array, size_t bytes, uint64_t stream)
{
    for (size_t i = 0; i * 4 < bytes; i++) {
        uint32_t bits = hostile_bits(stream, i);
        memcpy((unsigned char *)array + 4 * i, &bits, bytes - 4 * i < 4 ? bytes - 4 * i : 4);
    }
}

/* One length at one place: the variant writes into guarded pages, the reference into plain arrays. */
static void check_one(const conversion *c, const lst__kernels *k, size_t n, size_t shift, int at_end)
{
    const lst__kernels *reference = lst__kernels_for(LST__ISA_SCALAR);
    static uint32_t want_0[LONGEST], want_1[LONGEST];
    void *in[2] = {NULL, NULL}, *out[2] = {NULL, NULL}, *want[2] = {want_0, want_1};
    for (size_t a = 0; a < 2; a++) {
        /* The arrays take different alignments. */
        in[a] = guarded_at(pages[a], at_end, (shift * (a + 1)) % ALIGNMENTS * c->in_bytes[a], n * c->in_bytes[a]);
        out[a] =
            guarded_at(pages[2 + a], at_end, (shift * (a + 3)) % ALIGNMENTS * c->out_bytes[a], n * c->out_bytes[a]);
        fill_hostile(in[a], n * c->in_bytes[a], n + 1000 * a);
        memset(out[a], 0xa5, n * c->out_bytes[a]);
    }
    c->run(k, in, out, n);
    c->run(reference, in, want, n);
    for (size_t a = 0; a < 2; a++)
        if (memcmp(out[a], want[a], n * c->out_bytes[a]) != 0)
            fail_msg("%s of %s differs from the reference at n = %zu, alignment %zu", k->name, c->name, n, shift);
}

static void variants_equal_the_reference(void **state)
{
    (void)state;
    for (lst__isa isa = LST__ISA_BASE; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        if (k == NULL)
            continue;
        for (size_t c = 0; c < sizeof conversions / sizeof *conversions; c++)
            for (size_t n = 0; n <= LONGEST; n++)
                for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
                    check_one(&conversions[c], k, n, shift, 0);
                    check_one(&conversions[c], k, n, shift, 1);
                }
    }
}

/* Nothing outside the n elements is written. */
static void variants_write_no_further(void **state)
{
    (void)state;
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (size_t c = 0; k != NULL && c < sizeof conversions / sizeof *conversions; c++)
            for (size_t n = 0; n <= LONGEST; n++) {
                void *in[2] = {pages[0].first, pages[1].first}, *out[2] = {pages[2].first + 64, pages[3].first + 64};
                memset(in[0], 0x3f, GUARDED_BYTES);
                memset(in[1], 0x3f, GUARDED_BYTES);
                memset(pages[2].first, 0xa5, GUARDED_BYTES);
                memset(pages[3].first, 0xa5, GUARDED_BYTES);
                conversions[c].run(k, in, out, n);
                for (size_t a = 0; a < 2; a++)
                    for (size_t i = 0; i < 1024; i++)
                        if (i < 64 || i >= 64 + n * conversions[c].out_bytes[a])
                            assert_int_equal(pages[2 + a].first[i], 0xa5);
            }
    }
}

static void all_codes_decode_as_numeric_says(void **state)
{
    (void)state;
    static uint16_t codes[65536];
    static uint32_t bf16[65536], f16[65536];
    for (uint32_t i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        if (k == NULL)
            continue;
        k->bf16_to_f32(codes, (float *)(void *)bf16, 65536);
        k->f16_to_f32(codes, (float *)(void *)f16, 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            assert_int_equal(bf16[i], lst__bits_of_f32(lst__bf16_to_f32(codes[i])));
            assert_int_equal(f16[i], lst__bits_of_f32(lst__f16_to_f32(codes[i])));
        }
    }
}

enum { CHUNK = 4096 };

/* Chunk of patterns first, first + step, ... through every encoder. */
static void check_chunk(const lst__kernels *k, uint64_t first, uint64_t step)
{
    static uint32_t in[CHUNK];
    static uint16_t bf16[CHUNK], f16[CHUNK], hi[CHUNK], lo[CHUNK];
    for (uint32_t i = 0; i < CHUNK; i++)
        in[i] = (uint32_t)(first + i * step);
    const float *x = (const float *)(const void *)in;
    k->f32_to_bf16(x, bf16, CHUNK);
    k->f32_to_f16(x, f16, CHUNK);
    k->f32_to_split32(x, hi, lo, CHUNK);
    for (uint32_t i = 0; i < CHUNK; i++) {
        float v = lst__f32_of_bits(in[i]);
        lst__split32 s = lst__split32_from_f32(v);
        if (bf16[i] != lst__bf16_from_f32(v) || f16[i] != lst__f16_from_f32(v) || hi[i] != s.hi || lo[i] != s.lo)
            fail_msg("%s differs from numeric/ at 0x%08x", k->name, in[i]);
    }
}

static void all_floats_encode_as_numeric_says(void **state)
{
    (void)state;
    uint64_t step = sweep_step();
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        for (uint64_t first = 0; k != NULL && first <= 0xffffffffu; first += CHUNK * step)
            check_chunk(k, first, step);
    }
}

static int open_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++)
        pages[i] = guarded_new();
    return 0;
}

static int close_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++)
        guarded_free(pages[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_equal_the_reference),
        cmocka_unit_test(variants_write_no_further),
        cmocka_unit_test(all_codes_decode_as_numeric_says),
        cmocka_unit_test(all_floats_encode_as_numeric_says),
    };
    return cmocka_run_group_tests_name("convert", tests, open_pages, close_pages);
}
