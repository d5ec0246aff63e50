/* SPDX-License-Identifier: MIT
 *
 * Folders: making, renaming and removing them so that a power cut finds either the old state or the new one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"

/* Deeper trees than this are not ours to remove. */
#define MAX_DEPTH 16

lst_status lst__make_dirs(const char *path, lst_error *err)
{
    char *copy = lst__strdup(path);
    if (copy == NULL)
        return lst__fail_memory(err, "a path", strlen(path) + 1);
    lst_status status = *path == '\0' ? lst__fail(err, LST_ERR_ARGUMENT, "an empty name given for a folder") : LST_OK;
    for (char *at = copy; status == LST_OK && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char kept = *at;
        *at = '\0';
        int failed = mkdir(copy, 0777) != 0 ? errno : 0;
        if (failed != 0 && !lst__is_dir(copy))
            status = failed == EEXIST
                         ? lst__fail(err, LST_ERR_IO, "cannot make the folder %s: a file of that name is there", copy)
                         : lst__fail_errno(err, failed, "cannot make the folder %s", copy);
        *at = kept;
    }
    lst__free(copy);
    return status;
}

static lst_status remove_entries(int dir_fd, const char *path, int depth, lst_error *err);

static lst_status remove_entry(int dir_fd, const char *path, const char *name, int depth, lst_error *err)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return LST_OK;
    if (errno != EISDIR && errno != EPERM)
        return lst__fail_errno(err, errno, "cannot remove %s/%s", path, name);
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return lst__fail_errno(err, errno, "cannot remove %s/%s", path, name);
    char below[PATH_MAX];
    snprintf(below, sizeof below, "%s/%s", path, name);
    lst_status status = remove_entries(fd, below, depth + 1, err);
    if (status == LST_OK && unlinkat(dir_fd, name, AT_REMOVEDIR) != 0)
        status = lst__fail_errno(err, errno, "cannot remove %s", below);
    return status;
}

/* Removes what is in the folder; takes dir_fd over. */
static lst_status remove_entries(int dir_fd, const char *path, int depth, lst_error *err)
{
    DIR *dir = fdopendir(dir_fd);
    if (dir == NULL) {
        close(dir_fd);
        return lst__fail_errno(err, errno, "cannot list %s", path);
    }
    lst_status status = LST_OK;
    if (depth > MAX_DEPTH)
        status = lst__fail(err, LST_ERR_STATE, "%s is nested more than %d deep; remove it by hand", path, MAX_DEPTH);
    struct dirent *entry;
    while (status == LST_OK && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = remove_entry(dirfd(dir), path, entry->d_name, depth, err);
    closedir(dir);
    return status;
}

lst_status lst__remove_tree(const char *path, lst_error *err)
{
    if (path[strspn(path, "/.")] == '\0')
        return lst__fail(err, LST_ERR_ARGUMENT, "refused to remove \"%s\"", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return lst__fail_errno(err, errno, "cannot remove the folder %s", path);
    lst_status status = remove_entries(fd, path, 0, err);
    if (status == LST_OK && rmdir(path) != 0)
        status = lst__fail_errno(err, errno, "cannot remove the folder %s", path);
    return status;
}

lst_status lst__rename(const char *from, const char *to, lst_error *err)
{
    if (rename(from, to) != 0)
        return lst__fail_errno(err, errno, "cannot rename %s to %s", from, to);
    return lst__sync_parent(to, err);
}
