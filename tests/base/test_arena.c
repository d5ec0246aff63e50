/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/memory.h"

/* The arena: aligned, zeroed, resident before use, refused with numbers when it does not fit. */

static void test_reserved_and_resident(void **state)
{
    (void)state;
    size_t bytes = ((size_t)100 << 20) + 12345;
    lst_memory_use before, after;
    lst_error err;
    for (size_t n_threads = 1; n_threads <= 2; n_threads++) {
        lst_pool *pool;
        assert_int_equal(lst_pool_create(&pool, n_threads, &err), LST_OK);
        assert_int_equal(lst__memory_use(&before, &err), LST_OK);
        lst_arena arena;
        assert_int_equal(lst__arena_reserve(&arena, bytes, pool, &err), LST_OK);
        assert_int_equal(lst__memory_use(&after, &err), LST_OK);
        assert_int_equal((uintptr_t)arena.base % (2u << 20), 0);
        assert_true(arena.bytes == bytes && arena.mapped >= bytes && arena.mapped < bytes + 65536);
        /* All of it is there before anything was written, and nothing more (1 MiB for the process itself). */
        assert_true(after.anon_bytes + (1u << 20) >= before.anon_bytes + bytes);
        assert_true(after.anon_bytes <= before.anon_bytes + bytes + (1u << 20));
        for (size_t i = 0; i < bytes; i += 4099)
            assert_int_equal(arena.base[i], 0);
        memset(arena.base, 0xa5, bytes);
        lst__arena_release(&arena);
        assert_null(arena.base);
        lst__arena_release(&arena);
        lst_pool_destroy(pool);
    }
}

static void test_small_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, (2u << 20) - 1, (2u << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        lst_arena arena;
        assert_int_equal(lst__arena_reserve(&arena, sizes[i], NULL, NULL), LST_OK);
        assert_non_null(arena.base);
        memset(arena.base, 1, sizes[i]);
        lst__arena_release(&arena);
    }
}

static void test_more_than_there_is(void **state)
{
    (void)state;
    lst_memory_limit limit;
    lst_error err;
    lst_arena arena = {0};
    assert_int_equal(lst__memory_limit(&limit, &err), LST_OK);
    assert_int_equal(lst__arena_reserve(&arena, (size_t)limit.total_bytes + (1u << 30), NULL, &err), LST_ERR_MEMORY);
    assert_non_null(strstr(err.message, "GiB ("));
    assert_non_null(strstr(err.message, "available to this process"));
    assert_non_null(strstr(err.message, limit.limited_by));
    assert_int_equal(lst__arena_reserve(&arena, SIZE_MAX, NULL, &err), LST_ERR_MEMORY);
    assert_int_equal(lst__arena_reserve(&arena, SIZE_MAX - 4096, NULL, &err), LST_ERR_MEMORY);
    assert_null(arena.base);
}

static void test_fault_hook(void **state)
{
    (void)state;
    lst_error err;
    lst_arena arena = {0};
    lst__fault_arm(1);
    assert_int_equal(lst__arena_reserve(&arena, 1000, NULL, &err), LST_ERR_MEMORY);
    assert_true(lst__fault_struck());
    assert_true(lst__fault_count() == 1);
    assert_null(arena.base);
    assert_int_equal(lst__arena_reserve(&arena, 1000, NULL, &err), LST_OK);
    lst__arena_release(&arena);
    lst__fault_arm(0);
}

/* What the process has mapped as data already; a sanitizer's share is large. */
static unsigned long long data_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "VmData: %llu", &kib) != 1) {
    }
    fclose(file);
    return kib * 1024;
}

/* In a child, because a lowered limit cannot be told from a broken machine by the rest of the tests. */
static void test_resource_limit(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        rlim_t most = (rlim_t)data_bytes() + ((rlim_t)200 << 20);
        struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
        lst_error err;
        lst_arena arena;
        setrlimit(RLIMIT_DATA, &limit);
        int ok = lst__arena_reserve(&arena, (size_t)400 << 20, NULL, &err) == LST_ERR_MEMORY &&
                 strstr(err.message, "RLIMIT_DATA") != NULL;
        ok = ok && lst__arena_reserve(&arena, (size_t)20 << 20, NULL, &err) == LST_OK;
        _exit(ok ? 0 : 1);
    }
    int result;
    waitpid(child, &result, 0);
    assert_int_equal(result, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved_and_resident), cmocka_unit_test(test_small_sizes),
        cmocka_unit_test(test_more_than_there_is),    cmocka_unit_test(test_fault_hook),
        cmocka_unit_test(test_resource_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
