/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "io/json.h"
#include "io/printable.h"

/* JSON: what is refused, with which words, and where; getters; doubles that come back bit for bit. */

static lst_status parse(const char *text, json_t **out, lst_error *err)
{
    return lst__json_parse(out, "some.json", text, strlen(text), err);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "some.json: invalid JSON at line 1"},
        {"{\"a\": 1,\n \"b\": }", "invalid JSON at line 2, column"},
        {"{\"a\": 1, \"a\": 2}", "duplicate object key"},
        {"[1] [2]", "end of file expected"},
        {"{\"a\": 01}", "invalid JSON"},
        {"[NaN]", "invalid token"},
        {"[1e999]", "real number overflow"},
        {"[99999999999999999999]", "too big integer"},
        {"[\"\\ud800\"]", "invalid Unicode"},
        {"[\"\\u0000\"]", "\\u0000 is not allowed"},
        {"[\"\xc0\xaf\"]", "byte 2 (0xc0) is not UTF-8"},
        {"[\"\xed\xa0\x80\"]", "byte 2 (0xed) is not UTF-8"},
        {"[\"\xf4\x90\x80\x80\"]", "is not UTF-8"},
        {"[\"\xe2\x82", "is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root = NULL;
        lst_error err = {0};
        assert_int_equal(parse(cases[i][0], &root, &err), LST_ERR_FORMAT);
        assert_null(root);
        if (strstr(err.message, cases[i][1]) == NULL)
            fail_msg("case %zu: %s", i, err.message);
    }
    lst_error err;
    json_t *root;
    assert_int_equal(lst__json_parse(&root, "x", "[\"\0\"]", 5, &err), LST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "NUL"));
    assert_int_equal(err.position, 2);
}

static void test_depth(void **state)
{
    (void)state;
    char text[201];
    for (size_t depth = 60; depth <= 70; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        json_t *root = NULL;
        lst_error err;
        assert_int_equal(parse(text, &root, &err), depth <= LST_JSON_MAX_DEPTH ? LST_OK : LST_ERR_FORMAT);
        json_decref(root);
    }
    /* brackets inside strings do not count */
    memset(text, '[', 200);
    text[0] = text[199] = '"';
    text[200] = '\0';
    json_t *root;
    assert_int_equal(parse(text, &root, NULL), LST_OK);
    json_decref(root);
}

static void test_getters(void **state)
{
    (void)state;
    json_t *root, *part;
    lst_error err;
    assert_int_equal(
        parse("{\"n\": -3, \"x\": 2.5, \"s\": \"t\", \"b\": true, \"o\": {}, \"a\": [], \"z\": null}", &root, &err),
        LST_OK);
    int64_t n = 0;
    size_t size = 77;
    double x = 0;
    bool b = false;
    const char *s = NULL;
    assert_int_equal(lst__json_get_int(root, "f", "n", &n, &err), LST_OK);
    assert_int_equal(n, -3);
    assert_int_equal(lst__json_get_real(root, "f", "x", &x, &err), LST_OK);
    assert_true(x == 2.5);
    assert_int_equal(lst__json_get_real(root, "f", "n", &x, &err), LST_OK);
    assert_int_equal(lst__json_get_bool(root, "f", "b", &b, &err), LST_OK);
    assert_true(b);
    assert_int_equal(lst__json_get_string(root, "f", "s", &s, &err), LST_OK);
    assert_string_equal(s, "t");
    assert_int_equal(lst__json_get_object(root, "f", "o", &part, &err), LST_OK);
    assert_int_equal(lst__json_get_array(root, "f", "a", &part, &err), LST_OK);
    assert_true(lst__json_has(root, "n") && !lst__json_has(root, "z") && !lst__json_has(root, "absent"));
    assert_int_equal(lst__json_get_size(root, "f", "n", &size, &err), LST_ERR_FORMAT);
    assert_string_equal(err.message, "f: key \"n\" is -3; an integer of at least 0 is expected");
    assert_int_equal(size, 77);
    assert_int_equal(lst__json_get_int(root, "f", "x", &n, &err), LST_ERR_FORMAT);
    assert_string_equal(err.message, "f: key \"x\" is a fraction; an integer is expected");
    assert_int_equal(lst__json_get_string(root, "f", "absent", &s, &err), LST_ERR_FORMAT);
    assert_string_equal(err.message, "f: key \"absent\" is missing; a string is expected");
    assert_int_equal(lst__json_get_array(root, "f", "z", &part, &err), LST_ERR_FORMAT);
    assert_string_equal(err.message, "f: key \"z\" is null; an array is expected");
    static const char *const keys[] = {"n", "x", "s", "b", "o", "a"};
    assert_int_equal(lst__json_only_keys(root, "f", keys, 6, &err), LST_ERR_FORMAT);
    assert_string_equal(err.message, "f: unknown key \"z\"; known are: n, x, s, b, o, a");
    json_decref(root);
}

static void test_save_and_load(void **state)
{
    (void)state;
    char path[] = "/tmp/lst_test_json_XXXXXX";
    close(mkstemp(path));
    static const double values[] = {0.1, 1e-8, 0.999, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0};
    json_t *array = json_array(), *back;
    for (size_t i = 0; i < 7; i++)
        json_array_append_new(array, json_real(values[i]));
    lst_error err;
    assert_int_equal(lst__json_save(array, path, &err), LST_OK);
    assert_int_equal(lst__json_load(&back, path, 1000, &err), LST_OK);
    for (size_t i = 0; i < 7; i++) {
        double value = json_real_value(json_array_get(back, i));
        assert_memory_equal(&value, &values[i], sizeof value);
    }
    json_decref(back);
    char *text;
    assert_int_equal(lst__json_text(array, &text, &err), LST_OK);
    assert_int_equal(parse(text, &back, &err), LST_OK);
    assert_true(json_equal(back, array));
    lst__free(text);
    json_decref(back);
    json_decref(array);
    assert_int_equal(lst__json_load(&back, path, 10, &err), LST_ERR_FORMAT);
    unlink(path);
    assert_int_equal(lst__json_load(&back, path, 1000, &err), LST_ERR_IO);
}

static void test_printable(void **state)
{
    (void)state;
    char out[12];
    assert_string_equal(lst__printable("a\nb\x1b\x7f", out, sizeof out), "a?b??");
    assert_string_equal(lst__printable("12345678901", out, sizeof out), "12345678901");
    assert_string_equal(lst__printable("123456789012", out, sizeof out), "12345678...");
    assert_string_equal(lst__printable("1234567\xc3\xa9 and more", out, sizeof out), "1234567...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_depth),     cmocka_unit_test(test_getters),
        cmocka_unit_test(test_save_and_load), cmocka_unit_test(test_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
