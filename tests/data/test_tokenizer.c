/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "data/tokenizer.h"
#include "io/json.h"

#define GOLDEN LEANSTEP_SOURCE_DIR "/tests/golden"

static data_tokenizer *load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, GOLDEN "/tokens/%s/tokenizer.json", name);
    data_tokenizer *t = NULL;
    lst_error err = {0};
    if (data_tokenizer_load(&t, path, &err) != LST_OK)
        fail_msg("%s", err.message);
    return t;
}

static void broken_files(void **state)
{
    (void)state;
    json_t *bad = NULL, *c;
    lst_error err = {0};
    assert_int_equal(lst__json_load(&bad, GOLDEN "/bad/bad.json", (size_t)1 << 24, &err), LST_OK);
    size_t i, n = 0;
    json_array_foreach(json_object_get(bad, "cases"), i, c)
    {
        const char *file = json_string_value(json_object_get(c, "file"));
        if (strncmp(file, "tokenizer_", 10) != 0)
            continue;
        char path[4096];
        snprintf(path, sizeof path, GOLDEN "/bad/%s", file);
        data_tokenizer *t = NULL;
        err = (lst_error){0};
        const uint64_t start = lst__clock_ns();
        const lst_status status = data_tokenizer_load(&t, path, &err);
        assert_true(lst__clock_ns() - start < 2000000000u);
        if (strcmp(json_string_value(json_object_get(c, "expect")), "refuse") == 0 && status == LST_OK)
            fail_msg("%s was accepted: %s", file, json_string_value(json_object_get(c, "fault")));
        if (status != LST_OK && !strstr(err.message, file))
            fail_msg("%s: the message does not name the file: %s", file, err.message);
        data_tokenizer_free(t);
        n++;
    }
    assert_true(n >= 20);
    json_decref(bad);
}

/* Any bytes come back: no token is made of anything but the bytes it stands for. */
static void any_bytes_round_trip(void **state)
{
    (void)state;
    const char *const names[] = {"gpt2", "llama3", "smollm"};
    for (size_t k = 0; k < 3; k++) {
        data_tokenizer *t = load(names[k]);
        for (uint64_t round = 0; round < 200; round++) {
            char text[300];
            const size_t n = lst__random_below(7, round, 1000, sizeof text + 1);
            for (size_t i = 0; i < n; i++) { /* half of it mangled UTF-8, half text */
                const uint64_t r = lst__random_u64(7, round, i);
                text[i] = r & 0x100 ? (char)r : "ab 1\n'\xc3\xa9"[r % 8];
            }
            data_ids ids = {0};
            data_text back = {0};
            assert_int_equal(data_tokenizer_encode(t, text, n, false, &ids, NULL), LST_OK);
            assert_int_equal(data_tokenizer_decode(t, ids.ids, ids.n, false, &back, NULL), LST_OK);
            assert_int_equal(back.n, n);
            if (n)
                assert_memory_equal(back.data, text, n);
            lst__free(ids.ids);
            lst__free(back.data);
        }
        data_tokenizer_free(t);
    }
}

/* A file without a space is one word: its time must not grow with the square of its length. */
static void one_long_word(void **state)
{
    (void)state;
    data_tokenizer *t = load("gpt2");
    const size_t n = 400000;
    char *text = lst__alloc(n, 1);
    for (size_t i = 0; i < n; i++)
        text[i] = "etaoinshr"[lst__random_below(3, 1, i, 9)];
    data_ids ids = {0};
    assert_int_equal(data_tokenizer_encode(t, text, n, false, &ids, NULL), LST_OK);
    assert_true(ids.n > n / 8 && ids.n < n);
    lst__free(ids.ids);
    lst__free(text);
    data_tokenizer_free(t);
}

static void ids_out_of_range(void **state)
{
    (void)state;
    data_tokenizer *t = load("gpt2");
    const int32_t ids[] = {-1, INT32_MAX, (int32_t)data_tokenizer_vocab(t)};
    for (size_t i = 0; i < 3; i++) {
        data_text out = {0};
        lst_error err = {0};
        assert_int_equal(data_tokenizer_decode(t, &ids[i], 1, false, &out, &err), LST_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "not in the vocabulary"));
        lst__free(out.data);
    }
    assert_int_equal(data_tokenizer_added(t, "<|endoftext|>"), 1000);
    assert_int_equal(data_tokenizer_added(t, "<|nothing|>"), -1);
    data_tokenizer_free(t);
}

/* Every allocation of reading and encoding fails once: a clean status each time, and nothing leaks. */
static void every_allocation_fails_once(void **state)
{
    (void)state;
    static const char text[] = "Hello<|im_end|> caf\xc3\xa9  12";
    int struck = 1;
    for (uint64_t n = 1; struck; n += n < 100 ? 1 : 37) {
        data_tokenizer *t = NULL;
        data_ids ids = {0};
        lst_error err = {0};
        lst__fault_arm(n);
        lst_status status = data_tokenizer_load(&t, GOLDEN "/tokens/qwen2/tokenizer.json", &err);
        if (status == LST_OK)
            status = data_tokenizer_encode(t, text, sizeof text - 1, true, &ids, &err);
        struck = lst__fault_struck();
        lst__fault_arm(0);
        assert_true(struck ? status == LST_ERR_MEMORY : status == LST_OK);
        lst__free(ids.ids);
        data_tokenizer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_files),
        cmocka_unit_test(any_bytes_round_trip),
        cmocka_unit_test(one_long_word),
        cmocka_unit_test(ids_out_of_range),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
