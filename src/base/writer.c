/* SPDX-License-Identifier: MIT */
#include "base/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"

/* The temporary file is PATH.tmp-PID-N in the target's folder (a rename must not cross file systems). It is removed by
 * commit on failure and by abort. A process that is killed leaves it: whoever owns the folder removes what matches
 * *.tmp-* when it starts (for a run's folder that is lst_ckpt_clean). */

struct lst_writer {
    int fd;
    uint64_t n_written;
    char *path;
    char *temporary;
};

static void writer_free(lst_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    lst__free(writer->path);
    lst__free(writer->temporary);
    lst__free(writer);
}

/* Creates the temporary file under the first free number. */
static lst_status create_temporary(lst_writer *writer, lst_error *err)
{
    size_t room = strlen(writer->path) + 64;
    writer->temporary = lst__alloc(room, 1);
    if (writer->temporary == NULL)
        return lst__fail_memory(err, "a path", room);
    for (unsigned n = 0; n < 1000; n++) {
        snprintf(writer->temporary, room, "%s.tmp-%ld-%u", writer->path, (long)getpid(), n);
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd >= 0)
            return LST_OK;
        if (errno != EEXIST)
            break;
    }
    return lst__fail_errno(err, errno, "cannot write %s", writer->path);
}

lst_status lst__writer_open(lst_writer **out, const char *path, lst_error *err)
{
    if (lst__is_dir(path))
        return lst__fail(err, LST_ERR_IO, "cannot write %s: it is a folder", path);
    lst_writer *writer = lst__alloc(1, sizeof *writer);
    if (writer == NULL)
        return lst__fail_memory(err, "a file writer", sizeof *writer);
    writer->fd = -1;
    writer->path = lst__strdup(path);
    lst_status status =
        writer->path == NULL ? lst__fail_memory(err, "a path", strlen(path) + 1) : create_temporary(writer, err);
    if (status != LST_OK) {
        writer_free(writer);
        return status;
    }
    *out = writer;
    return LST_OK;
}

lst_status lst__writer_write(lst_writer *writer, const void *data, size_t n_bytes, lst_error *err)
{
    const char *from = data;
    size_t left = n_bytes;
    while (left > 0) {
        /* The system may take less than asked (near a full disk, or above 2 GiB): then the rest is tried again. */
        ssize_t n = write(writer->fd, from, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return lst__fail_errno(err, n < 0 ? errno : EIO,
                                   "writing %s stopped after %llu bytes (what was there before is untouched)",
                                   writer->path, (unsigned long long)writer->n_written);
        from += n;
        left -= (size_t)n;
        writer->n_written += (uint64_t)n;
    }
    return LST_OK;
}

static lst_status sync_and_close(lst_writer *writer, lst_error *err)
{
    int error = 0;
    /* EINVAL and ENOTSUP: a kind of file system that cannot be asked; nothing is wrong with the data. */
    if (fsync(writer->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        error = errno;
    if (close(writer->fd) != 0 && error == 0)
        error = errno;
    writer->fd = -1;
    if (error != 0)
        return lst__fail_errno(err, error,
                               "writing %s failed when its bytes went to the disk (what was there before is untouched)",
                               writer->path);
    return LST_OK;
}

lst_status lst__writer_commit(lst_writer *writer, lst_error *err)
{
    lst_status status = sync_and_close(writer, err);
    if (status == LST_OK && rename(writer->temporary, writer->path) != 0)
        status = lst__fail_errno(err, errno, "cannot rename %s to %s", writer->temporary, writer->path);
    if (status != LST_OK)
        unlink(writer->temporary);
    else
        status = lst__sync_parent(writer->path, err);
    writer_free(writer);
    return status;
}

void lst__writer_abort(lst_writer *writer)
{
    if (writer == NULL)
        return;
    unlink(writer->temporary);
    writer_free(writer);
}

lst_status lst__sync_dir(const char *path, lst_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return lst__fail_errno(err, errno, "cannot open the folder %s", path);
    int error = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
    close(fd);
    return error != 0 ? lst__fail_errno(err, error, "cannot make the folder %s durable", path) : LST_OK;
}

lst_status lst__sync_parent(const char *path, lst_error *err)
{
    /* On the stack: after a rename nothing may fail that the system itself does not fail. */
    char dir[PATH_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof dir)
        return lst__fail(err, LST_ERR_ARGUMENT, "a path of %zu bytes is longer than the system takes", strlen(path));
    memcpy(dir, n == 0 ? "." : path, n == 0 ? 1 : n);
    dir[n == 0 ? 1 : n] = '\0';
    return lst__sync_dir(dir, err);
}
