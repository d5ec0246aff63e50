/* SPDX-License-Identifier: MIT */
#include "data/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/random.h"

/* Deeper than any tree a person keeps, shallow enough for the stack. */
#define MAX_DEPTH 64
#define READ_BYTES 32768

uint64_t data__hash(uint64_t hash, const void *bytes, size_t n_bytes)
{
    const unsigned char *p = bytes;
    for (; n_bytes > 0; p += 8) {
        uint64_t word = 0;
        size_t n = n_bytes < 8 ? n_bytes : 8;
        for (size_t i = 0; i < n; i++)
            word |= (uint64_t)p[i] << (8 * i);
        hash = lst__random_mix(hash ^ word) + n;
        n_bytes -= n;
    }
    return hash;
}

/* Control characters that no text uses; tab, line feeds, form feed, backspace and escape are met in real ones. */
static int is_odd_control(unsigned char c)
{
    return (c < 32 && !(c >= 7 && c <= 13) && c != 27) || c == 127;
}

typedef struct content {
    uint64_t n_bytes, hash;
    size_t n_odd;
    int has_nul;
} content;

static lst_status read_content(const char *path, content *out, lst_error *err)
{
    memset(out, 0, sizeof *out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return lst__fail(err, LST_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    unsigned char buffer[READ_BYTES];
    size_t held = 0;
    for (;;) {
        ssize_t got = read(fd, buffer + held, sizeof buffer - held);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int code = errno;
            close(fd);
            return lst__fail(err, LST_ERR_IO, "cannot read %s: %s", path, strerror(code));
        }
        held += (size_t)got;
        if (got > 0 && held < sizeof buffer)
            continue; /* the hash wants whole buffers, whatever pieces the system hands out */
        for (size_t i = 0; i < held; i++) {
            out->has_nul |= buffer[i] == 0;
            out->n_odd += (size_t)is_odd_control(buffer[i]);
        }
        out->hash = data__hash(out->hash, buffer, held);
        out->n_bytes += held;
        held = 0;
        if (got == 0)
            break;
    }
    close(fd);
    return LST_OK;
}

static lst_status add_file(data_corpus *corpus, const char *path, const char *key, lst_error *err)
{
    content c;
    lst_status status = read_content(path, &c, err);
    if (status != LST_OK)
        return status;
    if (c.n_bytes == 0 || c.has_nul || c.n_odd * 50 > c.n_bytes) {
        *(c.n_bytes == 0 ? &corpus->skipped.empty : &corpus->skipped.binary) += 1;
        return LST_OK;
    }
    if (corpus->n_files == corpus->capacity) {
        size_t capacity = corpus->capacity ? 2 * corpus->capacity : 64;
        data_file *files = lst__realloc(corpus->files, capacity, sizeof *files);
        if (!files)
            return lst__fail_memory(err, "the list of files", capacity * sizeof *files);
        corpus->files = files;
        corpus->capacity = capacity;
    }
    char *copy = lst__strdup(key);
    if (!copy)
        return lst__fail_memory(err, "a file's name", strlen(key) + 1);
    corpus->files[corpus->n_files++] = (data_file){copy, c.n_bytes, c.hash};
    corpus->n_bytes += c.n_bytes;
    return LST_OK;
}

/* Folders that programs write: their text is nobody's writing, and a run's own folder grows while it trains. */
static bool is_built(const char *dir)
{
    static const char *const marks[] = {"CMakeCache.txt", "CACHEDIR.TAG", "metrics.jsonl"};
    bool found = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks && !found; i++) {
        char *path = lst__path_join(dir, marks[i]);
        found = path && lst__is_file(path);
        lst__free(path);
    }
    return found;
}

static lst_status scan_folder(data_corpus *corpus, const char *dir, const char *prefix, int depth, lst_error *err);

static lst_status scan_entry(data_corpus *corpus, const char *dir, const char *prefix, const char *name, int depth,
                             lst_error *err)
{
    if (name[0] == '.') {
        corpus->skipped.hidden++;
        return LST_OK;
    }
    char *path = lst__path_join(dir, name);
    char *key = prefix[0] ? lst__path_join(prefix, name) : lst__strdup(name);
    struct stat st;
    lst_status status = LST_OK;
    if (!path || !key)
        status = lst__fail_memory(err, "a file's name", strlen(dir) + strlen(name) + 2);
    else if (lstat(path, &st) != 0)
        status = lst__fail(err, LST_ERR_IO, "cannot look at %s: %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode) && is_built(path))
        corpus->skipped.built++;
    else if (S_ISDIR(st.st_mode))
        status = scan_folder(corpus, path, key, depth + 1, err);
    else if (S_ISREG(st.st_mode))
        status = add_file(corpus, path, key, err);
    else
        corpus->skipped.special++;
    lst__free(path);
    lst__free(key);
    return status;
}

static lst_status scan_folder(data_corpus *corpus, const char *dir, const char *prefix, int depth, lst_error *err)
{
    if (depth > MAX_DEPTH)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: folders nested more than %d deep", dir, MAX_DEPTH);
    DIR *handle = opendir(dir);
    if (!handle)
        return lst__fail(err, LST_ERR_IO,
                         "cannot read the folder %s: %s. Every folder below --data must be readable; "
                         "give another path or change its permissions.",
                         dir, strerror(errno));
    lst_status status = LST_OK;
    while (status == LST_OK) {
        errno = 0;
        struct dirent *entry = readdir(handle);
        if (!entry && errno)
            status = lst__fail(err, LST_ERR_IO, "cannot read the folder %s: %s", dir, strerror(errno));
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = scan_entry(corpus, dir, prefix, entry->d_name, depth, err);
    }
    closedir(handle);
    return status;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const data_file *)a)->key, ((const data_file *)b)->key);
}

static uint64_t hash_all(const data_corpus *corpus)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < corpus->n_files; i++) {
        const data_file *file = &corpus->files[i];
        uint64_t words[2] = {file->n_bytes, file->hash};
        hash = data__hash(hash, file->key, strlen(file->key) + 1);
        hash = data__hash(hash, words, sizeof words);
    }
    return hash;
}

lst_status data__scan(data_corpus *corpus, lst_error *err)
{
    struct stat st;
    if (stat(corpus->root, &st) != 0)
        return lst__fail(err, LST_ERR_IO, "cannot find the data %s: %s. Give --data a text file or a folder of them.",
                         corpus->root, strerror(errno));
    corpus->is_dir = S_ISDIR(st.st_mode);
    lst_status status;
    if (corpus->is_dir) {
        status = scan_folder(corpus, corpus->root, "", 0, err);
    } else if (S_ISREG(st.st_mode)) {
        const char *slash = strrchr(corpus->root, '/');
        status = add_file(corpus, corpus->root, slash ? slash + 1 : corpus->root, err);
    } else {
        status = lst__fail(err, LST_ERR_ARGUMENT,
                           "%s is neither a file nor a folder: the text is read more than once, so a "
                           "pipe or device will not do",
                           corpus->root);
    }
    if (status == LST_OK && corpus->n_files > 0) {
        qsort(corpus->files, corpus->n_files, sizeof *corpus->files, by_key);
        corpus->hash = hash_all(corpus);
    }
    return status;
}
