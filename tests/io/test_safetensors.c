/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"
#include "io/json.h"
#include "io/safetensors.h"

/* Writing and reading back: order, alignment, metadata, odd names, and every allocation failed once. */

static char folder[64];
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lst_test_st_XXXXXX");
    int failed = mkdtemp(folder) == NULL;
    strcpy(path, folder);
    strcat(path, "/x.safetensors");
    return failed;
}

static int drop_folder(void **state)
{
    (void)state;
    return lst__remove_tree(folder, NULL) != LST_OK;
}

static const float floats[6] = {1, 2, 3, 4, 5, 6};
static const unsigned char small[3] = {7, 8, 9};
static const double wide[1] = {10};
static const size_t dims_2_3[] = {2, 3}, dims_3[] = {3}, dims_0[] = {5, 0};

static const lst_st_entry entries[] = {
    {.name = "small", .dtype = LST_ST_U8, .n_dims = 1, .dims = dims_3},
    {.name = "b", .dtype = LST_ST_F32, .n_dims = 2, .dims = dims_2_3},
    {.name = "wide", .dtype = LST_ST_F64, .n_dims = 0, .dims = NULL},
    {.name = "a \"\\\n\xc3\xa9", .dtype = LST_ST_F32, .n_dims = 2, .dims = dims_0},
    {.name = "", .dtype = LST_ST_F32, .n_dims = 2, .dims = dims_2_3},
};
static const void *const memories[] = {small, floats, wide, NULL, floats};
static const size_t sizes[] = {3, 24, 8, 0, 24};

/* Gives `step` bytes at a time. */
static lst_status source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes, lst_error *err)
{
    (void)err;
    size_t step = *(const size_t *)context, left = sizes[entry] - offset;
    *data = (const char *)memories[entry] + offset;
    *n_bytes = step < left ? step : left;
    return LST_OK;
}

static lst_status write_all(size_t step, lst_error *err)
{
    static const lst_st_pair metadata[] = {{"who", "me \"quoted\""}, {"steps", "9223372036854775807"}};
    lst_st_content content = {
        .entries = entries, .n_entries = 5, .metadata = metadata, .n_metadata = 2, .source = source, .context = &step};
    return lst__st_write(path, &content, err);
}

static void test_round_trip(void **state)
{
    (void)state;
    for (size_t step = 1; step < 100; step += 6) {
        lst_error err;
        assert_int_equal(write_all(step, &err), LST_OK);
        lst_st *st;
        assert_int_equal(lst__st_open(&st, path, &err), LST_OK);
        assert_int_equal(st->n_tensors, 5);
        for (size_t i = 0; i < 5; i++) {
            const lst_st_tensor *t = lst__st_find(st, entries[i].name);
            assert_non_null(t);
            assert_int_equal(t->dtype, entries[i].dtype);
            assert_int_equal(t->n_dims, entries[i].n_dims);
            assert_int_equal(t->n_bytes, sizes[i]);
            for (size_t d = 0; d < t->n_dims; d++)
                assert_int_equal(t->dims[d], entries[i].dims[d]);
            if (sizes[i] > 0)
                assert_memory_equal(t->data, memories[i], sizes[i]);
            /* aligned to its own element, and the widest to a cache line */
            assert_int_equal((uintptr_t)t->data % (lst__st_dtype_bits(t->dtype) / 8), 0);
        }
        assert_int_equal((uintptr_t)lst__st_find(st, "wide")->data % 64, 0);
        assert_null(lst__st_find(st, "absent"));
        assert_string_equal(lst__st_metadata(st, "format"), "pt");
        assert_string_equal(lst__st_metadata(st, "who"), "me \"quoted\"");
        assert_string_equal(lst__st_metadata(st, "steps"), "9223372036854775807");
        assert_null(lst__st_metadata(st, "absent"));
        lst__st_close(st);
    }
    lst__st_close(NULL);
}

static void test_no_tensors(void **state)
{
    (void)state;
    lst_st_content content = {0};
    lst_st *st;
    assert_int_equal(lst__st_write(path, &content, NULL), LST_OK);
    assert_int_equal(lst__st_open(&st, path, NULL), LST_OK);
    assert_int_equal(st->n_tensors, 0);
    assert_null(lst__st_find(st, "a"));
    lst__st_close(st);
}

static lst_status lazy_source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                              lst_error *err)
{
    (void)entry;
    (void)offset;
    (void)err;
    *data = "0123456789012345678901234567890";
    *n_bytes = *(const size_t *)context;
    return LST_OK;
}

static void test_refusals(void **state)
{
    (void)state;
    lst_error err;
    size_t step = 4;
    static const size_t huge[] = {SIZE_MAX / 2, 8};
    lst_st_entry pair[] = {{.name = "same", .dtype = LST_ST_U8, .n_dims = 1, .dims = dims_3},
                           {.name = "same", .dtype = LST_ST_F32, .n_dims = 1, .dims = dims_3}};
    lst_st_content content = {.entries = pair, .n_entries = 2, .source = source, .context = &step};
    assert_int_equal(lst__st_write(path, &content, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "same name"));
    pair[1].name = "__metadata__";
    assert_int_equal(lst__st_write(path, &content, &err), LST_ERR_ARGUMENT);
    pair[1] = (lst_st_entry){.name = "huge", .dtype = LST_ST_U8, .n_dims = 2, .dims = huge};
    assert_int_equal(lst__st_write(path, &content, &err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "\"huge\" is no number of bytes"));
    pair[1].name = "\xff";
    pair[1].dims = dims_3;
    pair[1].n_dims = 1;
    assert_int_not_equal(lst__st_write(path, &content, &err), LST_OK);
    assert_non_null(strstr(err.message, "not UTF-8"));
    content.n_entries = 1;
    content.source = lazy_source;
    for (step = 0; step <= 4; step += 4) {
        assert_int_equal(lst__st_write(path, &content, &err), LST_ERR_STATE);
        assert_non_null(strstr(err.message, "where 1 to 3 were expected"));
    }
    assert_false(lst__is_file(path));
    assert_int_equal(rmdir(folder), 0); /* no temporary file was left */
    assert_int_equal(lst__make_dirs(folder, NULL), LST_OK);
}

/* jansson's allocations fail with ours, so that its error paths are walked too. */
static void *failing_malloc(size_t n)
{
    return lst__alloc(n, 1);
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    lst_error err;
    json_set_alloc_funcs(failing_malloc, lst__free);
    for (uint64_t n = 1;; n++) {
        lst__fault_arm(n);
        lst_status status = write_all(5, &err);
        if (!lst__fault_struck())
            break;
        if (status != LST_OK) {
            assert_int_equal(status, LST_ERR_MEMORY);
            lst__fault_arm(0);
            assert_int_equal(rmdir(folder), 0);
            assert_int_equal(lst__make_dirs(folder, NULL), LST_OK);
        } else {
            remove(path); /* an allocation whose failure does no harm (jansson has such) */
        }
    }
    lst__fault_arm(0);
    assert_int_equal(write_all(5, &err), LST_OK);
    for (uint64_t n = 1;; n++) {
        lst_st_set *set = NULL;
        lst__fault_arm(n);
        lst_status status = lst__st_set_open(&set, path, &err);
        int struck = lst__fault_struck();
        if (status != LST_OK) {
            assert_null(set);
            /* jansson takes some of its own failures for a fault in the text */
            assert_true(status == LST_ERR_MEMORY || status == LST_ERR_FORMAT);
        }
        lst__st_set_close(set);
        if (!struck) {
            assert_true(n > 20);
            break;
        }
    }
    lst__fault_arm(0);
    json_set_alloc_funcs(malloc, free);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_round_trip),
        WITH_FOLDER(test_no_tensors),
        WITH_FOLDER(test_refusals),
        WITH_FOLDER(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
