/* SPDX-License-Identifier: MIT
 *
 * A folder of its own for each test, and files in it.
 */
#ifndef TESTS_DATA_TEMP_FOLDER_H
#define TESTS_DATA_TEMP_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/files.h"

typedef struct temp_folder {
    char path[64];
} temp_folder;

static inline int temp_folder_make(void **state)
{
    temp_folder *folder = malloc(sizeof *folder);
    strcpy(folder->path, "/tmp/leanstep-test-XXXXXX");
    if (!mkdtemp(folder->path) || chmod(folder->path, 0755) != 0)
        return -1;
    *state = folder;
    return 0;
}

static inline int temp_folder_remove(void **state)
{
    temp_folder *folder = *state;
    lst_status status = lst__remove_tree(folder->path, NULL);
    free(folder);
    return status == LST_OK ? 0 : -1;
}

/* "<folder>/<name>"; a few static buffers take turns. */
static inline const char *temp_path(const temp_folder *folder, const char *name)
{
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder->path, name);
    return path;
}

static inline void temp_write_bytes(const temp_folder *folder, const char *name, const void *bytes, size_t n_bytes)
{
    const char *path = temp_path(folder, name);
    char dir[512];
    strcpy(dir, path);
    *strrchr(dir, '/') = '\0';
    assert_int_equal(lst__make_dirs(dir, NULL), LST_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n_bytes, file), n_bytes);
    assert_int_equal(fclose(file), 0);
}

static inline void temp_write(const temp_folder *folder, const char *name, const char *text)
{
    temp_write_bytes(folder, name, text, strlen(text));
}

#endif
