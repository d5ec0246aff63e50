/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cgroup.h"
#include "base/files.h"
#include "base/memory.h"

/* Memory probes: they see 100 MiB come and go; control groups are read from made-up trees of both versions. */

#define MIB ((size_t)1 << 20)

/* What may be resident beside the block: under the thread sanitizer every touched byte has shadow. */
#ifdef __SANITIZE_THREAD__
#define SLACK (2000 * MIB)
#else
#define SLACK (2 * MIB)
#endif

static void test_sees_100_mib(void **state)
{
    (void)state;
    lst_memory_use before, during, after;
    lst_error err;
    assert_int_equal(lst__memory_use(&before, &err), LST_OK);
    unsigned char *block = mmap(NULL, 100 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    memset(block, 1, 100 * MIB);
    assert_int_equal(lst__memory_use(&during, &err), LST_OK);
    munmap(block, 100 * MIB);
    assert_int_equal(lst__memory_use(&after, &err), LST_OK);
    assert_true(during.anon_bytes >= before.anon_bytes + 99 * MIB &&
                during.anon_bytes <= before.anon_bytes + 100 * MIB + SLACK);
    assert_true(after.anon_bytes <= before.anon_bytes + SLACK);
    assert_true(after.anon_peak_bytes >= during.anon_bytes);
    assert_true(after.peak_bytes >= during.anon_bytes);
    lst__memory_peak_reset();
    assert_int_equal(lst__memory_use(&after, &err), LST_OK);
    assert_true(after.anon_peak_bytes == after.anon_bytes);
}

static void test_file_pages_are_apart(void **state)
{
    (void)state;
    char path[] = "/tmp/lst_test_memory_XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    char *chunk = calloc(1, MIB);
    for (int i = 0; i < 64; i++)
        assert_int_equal(fwrite(chunk, 1, MIB, file), MIB);
    free(chunk);
    fclose(file);
    lst_memory_use before, during;
    assert_int_equal(lst__memory_use(&before, NULL), LST_OK);
    lst_map map;
    assert_int_equal(lst__map_open(path, &map, NULL), LST_OK);
    unsigned sum = 0;
    for (size_t i = 0; i < map.n_bytes; i += 4096)
        sum += map.data[i];
    assert_int_equal(sum, 0);
    assert_int_equal(lst__memory_use(&during, NULL), LST_OK);
    assert_true(during.file_bytes >= before.file_bytes + 63 * MIB);
    assert_true(during.anon_bytes <= before.anon_bytes + SLACK);
    lst__map_close(&map);
    remove(path);
}

static void test_watch_sees_a_short_peak(void **state)
{
    (void)state;
    lst_error err;
    lst_memory_use before, after;
    lst__memory_watch_stop();
    lst__memory_peak_reset();
    assert_int_equal(lst__memory_use(&before, &err), LST_OK);
    assert_int_equal(lst__memory_watch_start(1, &err), LST_OK);
    assert_int_equal(lst__memory_watch_start(1, &err), LST_ERR_STATE);
    unsigned char *block = mmap(NULL, 50 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(block, 1, 50 * MIB);
    struct timespec pause = {0, 100000000};
    nanosleep(&pause, NULL);
    munmap(block, 50 * MIB);
    lst__memory_watch_stop();
    assert_int_equal(lst__memory_use(&after, &err), LST_OK);
    assert_true(after.anon_peak_bytes >= before.anon_bytes + 49 * MIB);
    assert_true(after.anon_bytes < before.anon_bytes + 8 * MIB + SLACK);
}

static void test_limit_is_sane(void **state)
{
    (void)state;
    lst_memory_limit limit;
    assert_int_equal(lst__memory_limit(&limit, NULL), LST_OK);
    assert_true(limit.total_bytes >= 64 * MIB && limit.available_bytes > 0);
    assert_true(limit.available_bytes <= limit.total_bytes);
    assert_non_null(limit.limited_by);
}

/* Writes text to root/name, making the folders. */
static void put(const char *root, const char *name, const char *text)
{
    char path[512], dir[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    assert_int_equal(lst__make_dirs(dir, NULL), LST_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void read_tree(const char *root, lst_cgroup *out)
{
    char membership[512], mount[512];
    snprintf(membership, sizeof membership, "%s/membership", root);
    snprintf(mount, sizeof mount, "%s/fs", root);
    lst__cgroup_read_at(membership, mount, out);
}

static void test_cgroup_v2(void **state)
{
    (void)state;
    char root[] = "/tmp/lst_test_cgroup_XXXXXX";
    assert_non_null(mkdtemp(root));
    lst_cgroup group;
    read_tree(root, &group);
    assert_true(group.memory_limit_bytes == UINT64_MAX && group.memory_free_bytes == UINT64_MAX && group.cpus == 0);
    put(root, "membership", "0::/a/b\n");
    put(root, "fs/a/b/memory.max", "max\n");
    put(root, "fs/a/b/memory.current", "5000\n");
    put(root, "fs/a/b/cpu.max", "max 100000\n");
    read_tree(root, &group);
    assert_true(group.memory_limit_bytes == UINT64_MAX && group.cpus == 0);
    /* the parent binds, and its page cache that can be dropped is not held */
    put(root, "fs/a/memory.max", "1000000\n");
    put(root, "fs/a/memory.current", "700000\n");
    put(root, "fs/a/memory.stat", "anon 1\ninactive_file 200000\nactive_file 7\n");
    put(root, "fs/a/cpu.max", "150000 100000\n");
    read_tree(root, &group);
    assert_true(group.memory_limit_bytes == 1000000 && group.memory_free_bytes == 500000);
    assert_true(group.cpus == 1.5);
    put(root, "fs/a/b/memory.high", "400000\n");
    read_tree(root, &group);
    assert_true(group.memory_limit_bytes == 400000 && group.memory_free_bytes == 395000);
    assert_int_equal(lst__remove_tree(root, NULL), LST_OK);
}

static void test_cgroup_v1_in_a_container(void **state)
{
    (void)state;
    char root[] = "/tmp/lst_test_cgroup_XXXXXX";
    assert_non_null(mkdtemp(root));
    lst_cgroup group;
    /* the path is the host's: only the mount's own files exist here */
    put(root, "membership", "12:cpu,cpuacct:/docker/x\n11:memory:/docker/x\n1:name=systemd:/docker/x\n");
    put(root, "fs/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(root, "fs/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put(root, "fs/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    read_tree(root, &group);
    assert_true(group.memory_limit_bytes == UINT64_MAX && group.cpus == 0);
    put(root, "fs/memory/memory.limit_in_bytes", "800000\n");
    put(root, "fs/memory/memory.usage_in_bytes", "900000\n");
    put(root, "fs/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
    read_tree(root, &group);
    assert_true(group.memory_limit_bytes == 800000 && group.memory_free_bytes == 0);
    assert_true(group.cpus == 2);
    assert_int_equal(lst__remove_tree(root, NULL), LST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sees_100_mib),
        cmocka_unit_test(test_file_pages_are_apart),
        cmocka_unit_test(test_watch_sees_a_short_peak),
        cmocka_unit_test(test_limit_is_sane),
        cmocka_unit_test(test_cgroup_v2),
        cmocka_unit_test(test_cgroup_v1_in_a_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
