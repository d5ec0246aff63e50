/* SPDX-License-Identifier: MIT
 *
 * The table of codecs: sizes, names, and what holds for every codec: runs may be cut anywhere that blocks allow,
 * nothing outside a run changes, and coding what was decoded gives the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "store/codec.h"
#include "store/draws.h"

enum { N = 5000, MOST_BYTES = 4 * N + 4096 };

static const lst__rounding rounding = {.seed = 5, .step = 17, .tensor = 3, .slot = 1};

static void sizes_are_exact(void **state)
{
    (void)state;
    static const struct {
        lst_codec codec;
        size_t n, bytes;
    } want[] = {
        {LST_CODEC_F32, 7, 28},
        {LST_CODEC_BF16, 7, 14},
        {LST_CODEC_F16, 7, 14},
        {LST_CODEC_LO16, 7, 14},
        {LST_CODEC_LO8, 7, 7},
        {LST_CODEC_Q8, 1, 2},
        {LST_CODEC_Q8, 32, 33},
        {LST_CODEC_Q8U, 33, 35},
        {LST_CODEC_Q8, 1 << 20, (1 << 20) + (1 << 15)}, /* 1.03125 a value */
        {LST_CODEC_Q4, 1, 2},
        {LST_CODEC_Q4, 16, 17},
        {LST_CODEC_Q4U, 17, 18},
        {LST_CODEC_Q4U, 31, 18},
        {LST_CODEC_Q4U, 32, 18},
        {LST_CODEC_Q4U, 33, 20},
        {LST_CODEC_Q4, 1 << 20, (1 << 19) + (1 << 16)}, /* 0.5625 */
        {LST_CODEC_Q8_DYNAMIC, 1, 8},
        {LST_CODEC_Q8_DYNAMIC, 255, 260},
        {LST_CODEC_Q8_DYNAMIC_U, 257, 268},
        {LST_CODEC_Q8_DYNAMIC, 1 << 20, (1 << 20) + (1 << 14)}, /* 1.015625 */
        {LST_CODEC_Q8_DYNAMIC_2048, 1 << 20, (1 << 20) + (1 << 11)},
        {LST_CODEC_Q8_DYNAMIC_2048_U, 2049, 2060},
        {LST_CODEC_Q8_FLASH, 33, 38},
        {LST_CODEC_Q8_FLASH_U, 64, 68},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(lst_codec_bytes(want[i].codec, want[i].n), want[i].bytes);
    for (int c = 0; c < LST_N_CODECS; c++)
        assert_int_equal(lst_codec_bytes((lst_codec)c, 0), 0);
}

/* More values never take fewer bytes, up to where the answer is SIZE_MAX for "does not fit". */
static void sizes_that_do_not_fit_are_told(void **state)
{
    (void)state;
    for (int c = 0; c < LST_N_CODECS; c++) {
        size_t last = 0;
        for (unsigned bit = 0; bit <= 64; bit++) {
            size_t n = bit == 64 ? SIZE_MAX : (size_t)1 << bit;
            size_t bytes = lst_codec_bytes((lst_codec)c, n);
            assert_true(bytes >= last && bytes >= n / 2);
            last = bytes;
        }
    }
    assert_int_equal(lst_codec_bytes(LST_CODEC_F32, SIZE_MAX / 4 + 1), SIZE_MAX);
    assert_int_equal(lst_codec_bytes(LST_CODEC_BF16, SIZE_MAX / 2 + 1), SIZE_MAX);
    assert_int_equal(lst_codec_bytes(LST_CODEC_Q8, SIZE_MAX - 7), SIZE_MAX);
    assert_int_equal(lst_codec_bytes(LST_CODEC_Q8_DYNAMIC, SIZE_MAX - 7), SIZE_MAX);
}

static void unsigned_forms_are_unsigned(void **state)
{
    (void)state;
    assert_int_equal(lst_codec_unsigned(LST_CODEC_F32), LST_CODEC_F32);
    assert_int_equal(lst_codec_unsigned(LST_CODEC_Q8), LST_CODEC_Q8U);
    assert_int_equal(lst_codec_unsigned(LST_CODEC_Q8U), LST_CODEC_Q8U);
    assert_int_equal(lst_codec_unsigned(LST_CODEC_Q4), LST_CODEC_Q4U);
    assert_int_equal(lst_codec_unsigned(LST_CODEC_Q8_DYNAMIC), LST_CODEC_Q8_DYNAMIC_U);
    assert_int_equal(lst_codec_unsigned(LST_CODEC_Q8_DYNAMIC_2048), LST_CODEC_Q8_DYNAMIC_2048_U);
    for (int c = 0; c < LST_N_CODECS; c++)
        assert_int_equal(lst_codec_block(lst_codec_unsigned((lst_codec)c)), lst_codec_block((lst_codec)c));
}

static void every_codec_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int a = 0; a < LST_N_CODECS; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(lst_codec_name((lst_codec)a), lst_codec_name((lst_codec)b));
    assert_string_equal(lst_codec_name(LST_N_CODECS), "unknown");
}

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(lst__random_normal(1, 2, i) * 1e-3);
    for (size_t i = 64; i < n && i < 320; i++)
        x[i] = 0.0f;
}

/* Codecs that stand alone (all but the parts of weights). */
static const lst__codec_traits *codec_or_null(int c)
{
    const lst__codec_traits *t = lst__codec((lst_codec)c);
    assert_true(t->block >= 1 && t->block <= LST__MAX_BLOCK && (t->block & (t->block - 1)) == 0);
    return t->decode ? t : NULL;
}

static void runs_may_be_cut_at_any_block(void **state)
{
    (void)state;
    static float x[N], whole[N], cut[N];
    static unsigned char a[MOST_BYTES], b[MOST_BYTES];
    fill(x, N);
    for (int c = 0; c < LST_N_CODECS; c++) {
        const lst__codec_traits *t = codec_or_null(c);
        if (t == NULL)
            continue;
        memset(a, 0x5a, sizeof a);
        memset(b, 0x5a, sizeof b);
        t->encode(a, N, 0, N, x, &rounding);
        for (size_t first = 0, blocks = 1; first < N; first += t->block * blocks, blocks = blocks % 3 + 1) {
            size_t n = N - first < t->block * blocks ? N - first : t->block * blocks;
            t->encode(b, N, first, n, x + first, &rounding);
            t->decode(b, N, first, n, cut + first);
        }
        t->decode(a, N, 0, N, whole);
        assert_memory_equal(a, b, t->bytes(N));
        assert_memory_equal(whole, cut, sizeof cut);
        for (size_t i = t->bytes(N); i < sizeof a; i++)
            assert_true(a[i] == 0x5a && b[i] == 0x5a);
    }
}

static void coding_what_was_decoded_changes_nothing(void **state)
{
    (void)state;
    static float x[N];
    static unsigned char a[MOST_BYTES], b[MOST_BYTES];
    for (int c = 0; c < LST_N_CODECS; c++) {
        const lst__codec_traits *t = codec_or_null(c);
        if (t == NULL)
            continue;
        for (size_t n = 1; n <= N; n += n < 70 ? 1 : 613) {
            fill(x, n);
            for (size_t i = 0; i < n; i += 256)
                x[i] = 1.0f; /* the dynamic map has 1 but not -1: see test_dynamic.c */
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
            t->encode(a, n, 0, n, x, &rounding);
            t->decode(a, n, 0, n, x);
            t->encode(b, n, 0, n, x, &rounding);
            assert_memory_equal(a, b, t->bytes(n));
        }
    }
}

static void a_rounding_context_is_part_of_the_result_only_where_it_is_read(void **state)
{
    (void)state;
    static float x[N];
    static unsigned char a[MOST_BYTES], b[MOST_BYTES];
    fill(x, N);
    static const lst_codec plain[] = {LST_CODEC_F32, LST_CODEC_BF16, LST_CODEC_F16};
    for (size_t c = 0; c < sizeof plain / sizeof *plain; c++) {
        const lst__codec_traits *t = lst__codec(plain[c]);
        t->encode(a, N, 0, N, x, NULL);
        t->encode(b, N, 0, N, x, &rounding);
        assert_memory_equal(a, b, t->bytes(N));
    }
}

/* A run over the 2^32nd element of a tensor changes keys there. */
static void draws_go_on_beyond_32_bits_of_index(void **state)
{
    (void)state;
    const size_t edge = (size_t)1 << 32;
    const lst__draws before = lst__draws_of(&rounding, edge - 32, 96), after = lst__draws_of(&rounding, edge, 64);
    assert_true(before.n == 32 && before.first == 0xffffffe0u && after.n == 64 && after.first == 0);
    assert_true(before.key.bits != after.key.bits);
    const lst__draws none = lst__draws_of(NULL, 0, 5), zero = lst__draws_of(&(lst__rounding){0}, 0, 5);
    assert_true(none.n == 5 && none.key.bits == zero.key.bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(sizes_that_do_not_fit_are_told),
        cmocka_unit_test(unsigned_forms_are_unsigned),
        cmocka_unit_test(every_codec_has_a_name_of_its_own),
        cmocka_unit_test(runs_may_be_cut_at_any_block),
        cmocka_unit_test(coding_what_was_decoded_changes_nothing),
        cmocka_unit_test(draws_go_on_beyond_32_bits_of_index),
        cmocka_unit_test(a_rounding_context_is_part_of_the_result_only_where_it_is_read),
    };
    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
