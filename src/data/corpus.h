/* SPDX-License-Identifier: MIT
 *
 * A corpus: the text files under a path, in a fixed order, with a hash of all of it.
 *
 * The text stays on disk. A scan reads every file once (to tell text from binary, to count, to hash); later a batch
 * reads only the bytes it needs. So a corpus of any size costs the memory of its list of files, and a file that
 * shrinks while it is in use is an error with its name, not a signal (as it would be with a map).
 */
#ifndef LST_DATA_CORPUS_H
#define LST_DATA_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

typedef struct data_file {
    char *key; /* path below the root, or the base name of a single file: what hashes and order are made of */
    uint64_t n_bytes;
    uint64_t hash; /* of the bytes */
} data_file;

/* What a scan left out, counted so that it can be said. */
typedef struct data_skipped {
    size_t binary;  /* files that hold a NUL byte, or control characters by the dozen */
    size_t hidden;  /* files and folders whose name starts with a dot */
    size_t empty;   /* files of no bytes */
    size_t special; /* symbolic links below the root, sockets, devices */
    size_t built;   /* folders of builds (CMakeCache.txt), caches (CACHEDIR.TAG) and Leanstep runs */
} data_skipped;

typedef struct data_corpus {
    char *root; /* as given: a folder or one file */
    bool is_dir;
    size_t n_files, capacity;
    data_file *files; /* sorted by key, byte by byte */
    uint64_t n_bytes;
    uint64_t hash; /* of all keys, sizes and contents */
    data_skipped skipped;
    int open_fd; /* the file read last stays open: neighbours in the text are mostly in one file */
    size_t open_file;
} data_corpus;

/* Scans `path`. Fails on what cannot be read (naming it) and where no text is found (saying what was skipped). */
LST_MUST_USE lst_status data_corpus_open(data_corpus *out, const char *path, lst_error *err);
void data_corpus_close(data_corpus *corpus);
/* Bytes [offset, offset + n_bytes) of a file. A file that is gone or shorter now is an error. */
LST_MUST_USE lst_status data_corpus_read(data_corpus *corpus, size_t file, uint64_t offset, void *out, size_t n_bytes,
                                         lst_error *err);
/* "3 binary, 1 hidden" into out, or "nothing". */
void data_skipped_text(const data_skipped *skipped, char *out, size_t n);

#endif
