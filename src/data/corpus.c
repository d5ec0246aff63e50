/* SPDX-License-Identifier: MIT */
#include "data/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "data/scan.h"

static char *full_path(const data_corpus *corpus, size_t file)
{
    return corpus->is_dir ? lst__path_join(corpus->root, corpus->files[file].key) : lst__strdup(corpus->root);
}

static lst_status refuse_no_text(const data_corpus *corpus, lst_error *err)
{
    char skipped[160];
    data_skipped_text(&corpus->skipped, skipped, sizeof skipped);
    if (!corpus->is_dir && corpus->skipped.empty)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s is empty: there is no text to train on. Give --data a text file or a folder of them.",
                         corpus->root);
    if (!corpus->is_dir)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s is not text (it holds NUL bytes or many control characters). "
                         "Give --data a text file or a folder of them.",
                         corpus->root);
    return lst__fail(err, LST_ERR_FORMAT,
                     "no text found in the folder %s (skipped: %s). Give --data a text file or a folder of them.",
                     corpus->root, skipped);
}

lst_status data_corpus_open(data_corpus *out, const char *path, lst_error *err)
{
    data_corpus corpus = {.open_fd = -1};
    corpus.root = lst__strdup(path);
    if (!corpus.root)
        return lst__fail_memory(err, "the corpus's name", strlen(path) + 1);
    lst_status status = data__scan(&corpus, err);
    if (status == LST_OK && corpus.n_files == 0)
        status = refuse_no_text(&corpus, err);
    if (status != LST_OK) {
        data_corpus_close(&corpus);
        return status;
    }
    *out = corpus;
    return LST_OK;
}

void data_corpus_close(data_corpus *corpus)
{
    for (size_t i = 0; i < corpus->n_files; i++)
        lst__free(corpus->files[i].key);
    lst__free(corpus->files);
    lst__free(corpus->root);
    if (corpus->open_fd >= 0)
        close(corpus->open_fd);
    memset(corpus, 0, sizeof *corpus);
    corpus->open_fd = -1;
}

static lst_status open_file(data_corpus *corpus, size_t file, lst_error *err)
{
    if (corpus->open_fd >= 0 && corpus->open_file == file)
        return LST_OK;
    if (corpus->open_fd >= 0)
        close(corpus->open_fd);
    char *path = full_path(corpus, file);
    if (!path) {
        corpus->open_fd = -1;
        return lst__fail_memory(err, "a file's name", strlen(corpus->root) + strlen(corpus->files[file].key) + 2);
    }
    corpus->open_fd = open(path, O_RDONLY | O_CLOEXEC);
    corpus->open_file = file;
    lst_status status = LST_OK;
    if (corpus->open_fd < 0)
        status = lst__fail(err, LST_ERR_IO,
                           "%s could be read at the start and cannot be opened now: %s. The data must stay "
                           "in place while a run uses it.",
                           path, strerror(errno));
    lst__free(path);
    return status;
}

lst_status data_corpus_read(data_corpus *corpus, size_t file, uint64_t offset, void *out, size_t n_bytes,
                            lst_error *err)
{
    lst_status status = open_file(corpus, file, err);
    unsigned char *bytes = out;
    while (status == LST_OK && n_bytes > 0) {
        ssize_t got = pread(corpus->open_fd, bytes, n_bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lst__fail(err, LST_ERR_IO, "%s: cannot read %zu bytes at %llu: %s", corpus->files[file].key, n_bytes,
                             (unsigned long long)offset, strerror(errno));
        if (got == 0)
            return lst__fail(err, LST_ERR_IO,
                             "%s: had %llu bytes at the start and ends at %llu now. The data must not change "
                             "while a run uses it.",
                             corpus->files[file].key, (unsigned long long)corpus->files[file].n_bytes,
                             (unsigned long long)offset);
        bytes += got;
        offset += (uint64_t)got;
        n_bytes -= (size_t)got;
    }
    return status;
}

static void append_count(char *out, size_t n, size_t count, const char *what)
{
    size_t used = strlen(out);
    if (count > 0 && used < n)
        snprintf(out + used, n - used, "%s%zu %s", used ? ", " : "", count, what);
}

void data_skipped_text(const data_skipped *skipped, char *out, size_t n)
{
    out[0] = '\0';
    append_count(out, n, skipped->binary, "binary");
    append_count(out, n, skipped->hidden, "hidden");
    append_count(out, n, skipped->empty, "empty");
    append_count(out, n, skipped->special, "links or special files");
    append_count(out, n, skipped->built, "folders of builds, caches or runs");
    if (!out[0])
        snprintf(out, n, "nothing");
}
