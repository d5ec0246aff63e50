/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files.h"

/* Files: a write is complete or absent; every failure names the path and leaves what was there. */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/lst_test_files_XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int drop_folder(void **state)
{
    (void)state;
    return lst__remove_tree(folder, NULL) != LST_OK;
}

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static size_t count_entries(void)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2;
}

static lst_status put(const char *path, const void *data, size_t n_bytes, lst_error *err)
{
    lst_writer *writer;
    lst_status status = lst__writer_open(&writer, path, err);
    if (status != LST_OK)
        return status;
    status = lst__writer_write(writer, data, n_bytes, err);
    if (status == LST_OK)
        return lst__writer_commit(writer, err);
    lst__writer_abort(writer);
    return status;
}

static void expect_content(const char *path, const char *text)
{
    char *found;
    size_t n_bytes;
    assert_int_equal(lst__file_read(path, 1000, &found, &n_bytes, NULL), LST_OK);
    assert_int_equal(n_bytes, strlen(text));
    assert_string_equal(found, text);
    lst__free(found);
}

static void test_write_then_read(void **state)
{
    (void)state;
    assert_int_equal(put(in_folder("a"), "one", 3, NULL), LST_OK);
    expect_content(in_folder("a"), "one");
    assert_int_equal(put(in_folder("a"), "second", 6, NULL), LST_OK);
    expect_content(in_folder("a"), "second");
    assert_int_equal(put(in_folder("empty"), "", 0, NULL), LST_OK);
    expect_content(in_folder("empty"), "");
    assert_int_equal(count_entries(), 2);
    lst_map map;
    assert_int_equal(lst__map_open(in_folder("empty"), &map, NULL), LST_OK);
    assert_true(map.data == NULL && map.n_bytes == 0);
    lst__map_close(&map);
    assert_int_equal(lst__map_open(in_folder("a"), &map, NULL), LST_OK);
    assert_true(map.n_bytes == 6 && memcmp(map.data, "second", 6) == 0);
    lst__map_close(&map);
}

static void test_nothing_appears_before_commit(void **state)
{
    (void)state;
    lst_writer *writer;
    assert_int_equal(lst__writer_open(&writer, in_folder("a"), NULL), LST_OK);
    assert_int_equal(lst__writer_write(writer, "x", 1, NULL), LST_OK);
    assert_false(lst__is_file(in_folder("a")));
    lst__writer_abort(writer);
    assert_int_equal(count_entries(), 0);
    lst__writer_abort(NULL);
}

static void test_two_writers_of_one_file(void **state)
{
    (void)state;
    lst_writer *first, *second;
    assert_int_equal(lst__writer_open(&first, in_folder("a"), NULL), LST_OK);
    assert_int_equal(lst__writer_open(&second, in_folder("a"), NULL), LST_OK);
    assert_int_equal(lst__writer_write(first, "1", 1, NULL), LST_OK);
    assert_int_equal(lst__writer_write(second, "2", 1, NULL), LST_OK);
    assert_int_equal(lst__writer_commit(second, NULL), LST_OK);
    assert_int_equal(lst__writer_commit(first, NULL), LST_OK);
    expect_content(in_folder("a"), "1");
    assert_int_equal(count_entries(), 1);
}

static void test_failures_name_the_path(void **state)
{
    (void)state;
    lst_error err;
    lst_writer *writer;
    char *text;
    size_t n_bytes;
    lst_map map;
    assert_int_equal(lst__writer_open(&writer, in_folder("none/x"), &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "none/x: No such file or directory"));
    assert_int_equal(lst__writer_open(&writer, folder, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "it is a folder"));
    assert_int_equal(lst__file_read(in_folder("absent"), 10, &text, &n_bytes, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "absent: No such file"));
    assert_int_equal(lst__map_open(folder, &map, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "is a folder"));
    assert_int_equal(lst__map_open("/dev/zero", &map, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "not a regular file"));
    assert_int_equal(put(in_folder("long"), "0123456789", 10, NULL), LST_OK);
    assert_int_equal(lst__file_read(in_folder("long"), 9, &text, &n_bytes, &err), LST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "has 10 bytes; at most 9"));
    assert_int_equal(lst__make_dirs(in_folder("long/below"), &err), LST_ERR_IO);
    assert_int_equal(lst__rename(in_folder("absent"), in_folder("b"), &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "cannot rename"));
    assert_int_equal(lst__remove_tree("/", &err), LST_ERR_ARGUMENT);
    assert_int_equal(lst__remove_tree("", &err), LST_ERR_ARGUMENT);
    assert_int_equal(lst__remove_tree("..", &err), LST_ERR_ARGUMENT);
}

/* A file size limit stands for a full disk: it stops a write in the middle on every machine. */
static void test_write_stopped_in_the_middle(void **state)
{
    (void)state;
    assert_int_equal(put(in_folder("kept"), "kept", 4, NULL), LST_OK);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {.rlim_cur = 100000, .rlim_max = 100000};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
        char *data = calloc(1, 300000);
        lst_error err = {0};
        int ok = put(in_folder("kept"), data, 300000, &err) == LST_ERR_IO &&
                 strstr(err.message, "stopped after 100000 bytes (what was there before is untouched)") != NULL;
        _exit(ok ? 0 : 1);
    }
    int result;
    waitpid(child, &result, 0);
    assert_int_equal(result, 0);
    expect_content(in_folder("kept"), "kept");
    assert_int_equal(count_entries(), 1);
}

static void test_disk_full(void **state)
{
    (void)state;
    if (mount("none", folder, "tmpfs", 0, "size=1m") != 0)
        skip(); /* needs the right to mount; test_write_stopped_in_the_middle covers the rest */
    assert_int_equal(put(in_folder("kept"), "kept", 4, NULL), LST_OK);
    char *data = calloc(1, 3 << 20);
    lst_error err;
    lst_status status = put(in_folder("kept"), data, 3 << 20, &err);
    free(data);
    expect_content(in_folder("kept"), "kept");
    size_t n_entries = count_entries();
    umount(folder);
    assert_int_equal(status, LST_ERR_IO);
    assert_non_null(strstr(err.message, "No space left on device; free space"));
    assert_int_equal(n_entries, 1);
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    assert_int_equal(put(in_folder("a"), "old", 3, NULL), LST_OK);
    lst_error err;
    for (uint64_t n = 1;; n++) {
        lst__fault_arm(n);
        lst_status status = put(in_folder("a"), "new", 3, &err);
        if (!lst__fault_struck()) {
            assert_int_equal(status, LST_OK);
            break;
        }
        assert_int_equal(status, LST_ERR_MEMORY);
        assert_int_equal(count_entries(), 1);
    }
    lst__fault_arm(0);
    expect_content(in_folder("a"), "new");
}

static void test_folders(void **state)
{
    (void)state;
    assert_int_equal(lst__make_dirs(in_folder("x/y//z/"), NULL), LST_OK);
    assert_int_equal(lst__make_dirs(in_folder("x/y"), NULL), LST_OK);
    assert_true(lst__is_dir(in_folder("x/y/z")));
    assert_int_equal(put(in_folder("x/y/file"), "1", 1, NULL), LST_OK);
    assert_int_equal(put(in_folder("outside"), "1", 1, NULL), LST_OK);
    char link_path[256];
    snprintf(link_path, sizeof link_path, "%s/x/link", folder);
    assert_int_equal(symlink("../outside", link_path), 0);
    char from[256];
    snprintf(from, sizeof from, "%s", in_folder("x"));
    assert_int_equal(lst__rename(from, in_folder("moved"), NULL), LST_OK);
    assert_int_equal(lst__remove_tree(in_folder("moved"), NULL), LST_OK);
    assert_false(lst__is_dir(in_folder("moved")));
    assert_true(lst__is_file(in_folder("outside"))); /* a link is removed, not followed */
}

static void test_path_join(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    for (size_t i = 0; i < 4; i++) {
        char *path = lst__path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        lst__free(path);
    }
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_write_then_read),
        WITH_FOLDER(test_nothing_appears_before_commit),
        WITH_FOLDER(test_two_writers_of_one_file),
        WITH_FOLDER(test_failures_name_the_path),
        WITH_FOLDER(test_write_stopped_in_the_middle),
        WITH_FOLDER(test_disk_full),
        WITH_FOLDER(test_every_allocation_fails_once),
        WITH_FOLDER(test_folders),
        cmocka_unit_test(test_path_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
