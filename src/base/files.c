/* SPDX-License-Identifier: MIT */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

/* Opens a regular file for reading and tells its size; *fd is -1 on failure. */
static lst_status open_regular(const char *path, int *fd, size_t *n_bytes, lst_error *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return lst__fail_errno(err, errno, "cannot open %s", path);
    struct stat info;
    lst_status status = LST_OK;
    if (fstat(*fd, &info) != 0)
        status = lst__fail_errno(err, errno, "cannot ask for the size of %s", path);
    else if (S_ISDIR(info.st_mode))
        status = lst__fail(err, LST_ERR_IO, "%s is a folder, and a file is expected", path);
    else if (!S_ISREG(info.st_mode))
        status = lst__fail(err, LST_ERR_IO, "%s is not a regular file", path);
    if (status != LST_OK) {
        close(*fd);
        *fd = -1;
        return status;
    }
    *n_bytes = (size_t)info.st_size;
    return LST_OK;
}

/* Reads n bytes; fewer are a failure (the file shrank while it was read). */
static lst_status read_all(int fd, const char *path, char *to, size_t n, lst_error *err)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = read(fd, to + have, n - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lst__fail_errno(err, errno, "cannot read %s at byte %zu", path, have);
        if (got == 0)
            return lst__fail(err, LST_ERR_IO, "%s became shorter while it was read: %zu bytes instead of %zu", path,
                             have, n);
        have += (size_t)got;
    }
    return LST_OK;
}

lst_status lst__file_read(const char *path, size_t limit, char **out, size_t *n_bytes, lst_error *err)
{
    int fd;
    size_t n = 0;
    lst_status status = open_regular(path, &fd, &n, err);
    if (status != LST_OK)
        return status;
    char *text = NULL;
    if (n > limit) {
        status = lst__fail(err, LST_ERR_FORMAT, "%s has %zu bytes; at most %zu are accepted for such a file", path, n,
                           limit);
    } else {
        text = lst__alloc(n + 1, 1);
        status = text == NULL ? lst__fail_memory(err, path, n + 1) : read_all(fd, path, text, n, err);
    }
    close(fd);
    if (status != LST_OK) {
        lst__free(text);
        return status;
    }
    *out = text;
    *n_bytes = n;
    return LST_OK;
}

lst_status lst__map_open(const char *path, lst_map *out, lst_error *err)
{
    int fd;
    size_t n = 0;
    lst_status status = open_regular(path, &fd, &n, err);
    if (status != LST_OK)
        return status;
    void *data = NULL;
    if (n > 0) {
        data = lst__fault_now() ? MAP_FAILED : mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = lst__fail(err, LST_ERR_MEMORY,
                               "cannot map the %zu bytes of %s into the address space; see ulimit -v", n, path);
    }
    close(fd);
    if (status != LST_OK)
        return status;
    *out = (lst_map){.data = data, .n_bytes = n};
    return LST_OK;
}

void lst__map_close(lst_map *map)
{
    if (map == NULL || map->data == NULL)
        return;
    munmap((void *)(uintptr_t)map->data, map->n_bytes);
    *map = (lst_map){0};
}

void lst__map_forget(const void *from, size_t n_bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)from + page - 1) / page * page, end = ((uintptr_t)from + n_bytes) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* advice: nothing depends on it */
}

bool lst__is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool lst__is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

char *lst__path_join(const char *dir, const char *name)
{
    size_t n_dir = strlen(dir), n_name = strlen(name);
    bool slash = n_dir > 0 && dir[n_dir - 1] != '/';
    char *path = lst__alloc(n_dir + n_name + 2, 1);
    if (path == NULL)
        return NULL;
    memcpy(path, dir, n_dir);
    if (slash)
        path[n_dir] = '/';
    memcpy(path + n_dir + slash, name, n_name + 1);
    return path;
}
