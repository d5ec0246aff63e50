/* SPDX-License-Identifier: MIT
 *
 * Files: whole reads, read-only maps, and writes that are complete or absent. Messages name the path and what the
 * system said.
 */
#ifndef LST_BASE_FILES_H
#define LST_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

/* Whole file into fresh memory (lst__free), NUL-terminated beyond *n_bytes. Refuses more than limit bytes. */
LST_MUST_USE lst_status lst__file_read(const char *path, size_t limit, char **out, size_t *n_bytes, lst_error *err);

typedef struct lst_map {
    const unsigned char *data;
    size_t n_bytes;
} lst_map;
/* Read-only map of a regular file. An empty file gives data NULL, n_bytes 0. */
LST_MUST_USE lst_status lst__map_open(const char *path, lst_map *out, lst_error *err);
void lst__map_close(lst_map *map);
/* The whole pages in these bytes of a map will not be read again soon: they leave the resident memory of the process
 * (and come back if they are read after all). Only for bytes in a map. */
void lst__map_forget(const void *from, size_t n_bytes);

/* A file that appears under its name only when complete: written to a temporary file in the same folder,
 * fsynced, renamed over the target, the folder fsynced. A failure before commit leaves an existing file untouched. */
typedef struct lst_writer lst_writer;
LST_MUST_USE lst_status lst__writer_open(lst_writer **out, const char *path, lst_error *err);
LST_MUST_USE lst_status lst__writer_write(lst_writer *writer, const void *data, size_t n_bytes, lst_error *err);
LST_MUST_USE lst_status lst__writer_commit(lst_writer *writer, lst_error *err); /* frees the writer, also on failure */
void lst__writer_abort(lst_writer *writer); /* removes the temporary file; NULL is allowed */

LST_MUST_USE lst_status lst__make_dirs(const char *path, lst_error *err); /* mkdir -p */
/* Removes a folder and what is in it (a checkpoint that was replaced). Refuses "/" and "". */
LST_MUST_USE lst_status lst__remove_tree(const char *path, lst_error *err);
/* rename + fsync of the folder that holds it. */
LST_MUST_USE lst_status lst__rename(const char *from, const char *to, lst_error *err);
bool lst__is_dir(const char *path);
bool lst__is_file(const char *path);
/* "dir/name" in fresh memory (lst__free). NULL if memory runs out. */
char *lst__path_join(const char *dir, const char *name);

#endif
