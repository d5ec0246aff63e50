/* SPDX-License-Identifier: MIT
 *
 * The scan of files and folders: order, what is skipped, what is refused, and the hash that resuming relies on.
 */
#include "data/temp_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include "data/corpus.h"
#include "data/scan.h"

static data_corpus open_ok(const char *path)
{
    data_corpus corpus;
    lst_error err = {0};
    if (data_corpus_open(&corpus, path, &err) != LST_OK)
        fail_msg("%s", err.message);
    return corpus;
}

static void open_fails(const char *path, lst_status status, const char *says)
{
    data_corpus corpus;
    lst_error err = {0};
    assert_int_equal(data_corpus_open(&corpus, path, &err), status);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

static void folder_is_sorted_and_recursive(void **state)
{
    temp_write(*state, "b.txt", "bb");
    temp_write(*state, "a/z.txt", "zzz");
    temp_write(*state, "a/y/x.txt", "x");
    data_corpus corpus = open_ok(((temp_folder *)*state)->path);
    assert_int_equal(corpus.n_files, 3);
    assert_string_equal(corpus.files[0].key, "a/y/x.txt");
    assert_string_equal(corpus.files[1].key, "a/z.txt");
    assert_string_equal(corpus.files[2].key, "b.txt");
    assert_int_equal(corpus.n_bytes, 6);
    char bytes[2];
    assert_int_equal(data_corpus_read(&corpus, 1, 1, bytes, 2, NULL), LST_OK);
    assert_memory_equal(bytes, "zz", 2);
    data_corpus_close(&corpus);
}

static void what_is_no_text_is_skipped_and_counted(void **state)
{
    const temp_folder *folder = *state;
    temp_write(folder, "text", "text\twith\nall\r\nof \x1b[1mthese\x1b[0m\n");
    temp_write_bytes(folder, "nul", "a\0b", 3);
    temp_write_bytes(folder, "control", "\x01\x02\x03\x04zzzz", 8);
    temp_write(folder, "empty", "");
    temp_write(folder, ".hidden", "secret");
    temp_write(folder, ".git/config", "secret");
    temp_write(folder, "build/CMakeCache.txt", "A=B");
    temp_write(folder, "run/metrics.jsonl", "{}");
    assert_int_equal(symlink("text", temp_path(folder, "link")), 0);
    assert_int_equal(symlink(".", temp_path(folder, "loop")), 0);
    assert_int_equal(mkfifo(temp_path(folder, "pipe"), 0600), 0);
    data_corpus corpus = open_ok(folder->path);
    assert_int_equal(corpus.n_files, 1);
    assert_int_equal(corpus.skipped.binary, 2);
    assert_int_equal(corpus.skipped.empty, 1);
    assert_int_equal(corpus.skipped.hidden, 2);
    assert_int_equal(corpus.skipped.special, 3);
    assert_int_equal(corpus.skipped.built, 2);
    char text[160];
    data_skipped_text(&corpus.skipped, text, sizeof text);
    assert_string_equal(text,
                        "2 binary, 2 hidden, 1 empty, 3 links or special files, 2 folders of builds, caches or runs");
    data_corpus_close(&corpus);
}

static void bad_paths_are_named(void **state)
{
    const temp_folder *folder = *state;
    open_fails(temp_path(folder, "absent"), LST_ERR_IO, "absent");
    open_fails(folder->path, LST_ERR_FORMAT, "no text found");
    temp_write(folder, "empty", "");
    open_fails(temp_path(folder, "empty"), LST_ERR_FORMAT, "is empty");
    temp_write_bytes(folder, "nul", "a\0b", 3);
    open_fails(temp_path(folder, "nul"), LST_ERR_FORMAT, "not text");
    open_fails(folder->path, LST_ERR_FORMAT, "1 binary, 1 empty");
    open_fails("/dev/null", LST_ERR_ARGUMENT, "neither a file nor a folder");
}

/* Root may read everything, so the child becomes nobody first. */
static void unreadable_folder_is_an_error(void **state)
{
    const temp_folder *folder = *state;
    temp_write(folder, "text", "text");
    temp_write(folder, "locked/text", "text");
    assert_int_equal(chmod(temp_path(folder, "locked"), 0), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        data_corpus corpus;
        lst_error err = {0};
        lst_status status = data_corpus_open(&corpus, folder->path, &err);
        _exit(status == LST_ERR_IO && strstr(err.message, "locked") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(temp_path(folder, "locked"), 0755), 0);
    assert_int_equal(status, 0);
}

static uint64_t hash_of(const char *path)
{
    data_corpus corpus = open_ok(path);
    uint64_t hash = corpus.hash;
    data_corpus_close(&corpus);
    return hash;
}

static void hash_sees_every_change(void **state)
{
    const temp_folder *folder = *state;
    temp_write(folder, "d/a", "one");
    temp_write(folder, "d/b", "two");
    uint64_t before = hash_of(temp_path(folder, "d"));
    assert_int_equal(hash_of(temp_path(folder, "d")), before);
    temp_write(folder, "d/b", "twO");
    assert_int_not_equal(hash_of(temp_path(folder, "d")), before);
    temp_write(folder, "d/b", "two");
    assert_int_equal(hash_of(temp_path(folder, "d")), before);
    assert_int_equal(rename(temp_path(folder, "d/b"), temp_path(folder, "d/c")), 0);
    assert_int_not_equal(hash_of(temp_path(folder, "d")), before);
    assert_int_equal(rename(temp_path(folder, "d/c"), temp_path(folder, "d/b")), 0);
    assert_int_equal(rename(temp_path(folder, "d"), temp_path(folder, "elsewhere")), 0);
    assert_int_equal(hash_of(temp_path(folder, "elsewhere")), before); /* a corpus may move */
}

static void hash_does_not_depend_on_the_pieces(void **state)
{
    (void)state;
    unsigned char bytes[1001];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    uint64_t whole = data__hash(1, bytes, sizeof bytes);
    assert_int_equal(data__hash(data__hash(1, bytes, 512), bytes + 512, sizeof bytes - 512), whole);
    assert_int_not_equal(data__hash(1, bytes, sizeof bytes - 1), whole);
}

static void shrunk_and_missing_files_are_errors(void **state)
{
    const temp_folder *folder = *state;
    temp_write(folder, "d/a", "0123456789");
    temp_write(folder, "d/b", "0123456789");
    data_corpus corpus = open_ok(temp_path(folder, "d"));
    temp_write(folder, "d/a", "0123");
    assert_int_equal(remove(temp_path(folder, "d/b")), 0);
    char bytes[10];
    lst_error err = {0};
    assert_int_equal(data_corpus_read(&corpus, 0, 0, bytes, 10, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "a: had 10 bytes at the start and ends at 4 now"));
    assert_int_equal(data_corpus_read(&corpus, 1, 0, bytes, 10, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "d/b"));
    data_corpus_close(&corpus);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_folder_make, temp_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folder_is_sorted_and_recursive),
        TEST(what_is_no_text_is_skipped_and_counted),
        TEST(bad_paths_are_named),
        TEST(unreadable_folder_is_an_error),
        TEST(hash_sees_every_change),
        TEST(hash_does_not_depend_on_the_pieces),
        TEST(shrunk_and_missing_files_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
