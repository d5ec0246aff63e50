/* SPDX-License-Identifier: MIT
 *
 * The folder of a checkpoint: appears whole, replaces whole, goes whole.
 *
 * Removing goes through a rename to a temporary name first, so that a process killed in the middle of it leaves no
 * half-empty folder under a name that counts as complete.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"
#include "leanstep/ckpt.h"

#define PREFIX "checkpoint-"

struct lst_ckpt {
    char *run;
    char *final;
    char *temporary;
    int64_t step;
};

static void ckpt_free(lst_ckpt *ckpt)
{
    lst__free(ckpt->run);
    lst__free(ckpt->final);
    lst__free(ckpt->temporary);
    lst__free(ckpt);
}

static lst_status make_names(lst_ckpt *ckpt, const char *run, lst_error *err)
{
    char name[64];
    snprintf(name, sizeof name, PREFIX "%08lld", (long long)ckpt->step);
    ckpt->run = lst__strdup(run);
    ckpt->final = lst__path_join(run, name);
    size_t n = strlen(name);
    snprintf(name + n, sizeof name - n, ".tmp-%ld", (long)getpid());
    ckpt->temporary = lst__path_join(run, name);
    if (ckpt->run == NULL || ckpt->final == NULL || ckpt->temporary == NULL)
        return lst__fail_memory(err, "the names of a checkpoint", 3 * (strlen(run) + 64));
    return LST_OK;
}

static lst_status make_temporary(const lst_ckpt *ckpt, lst_error *err)
{
    lst_status status = lst__make_dirs(ckpt->run, err);
    /* Left by an earlier process of our number. */
    if (status == LST_OK && lst__is_dir(ckpt->temporary))
        status = lst__remove_tree(ckpt->temporary, err);
    if (status == LST_OK && mkdir(ckpt->temporary, 0777) != 0)
        status = lst__fail_errno(err, errno, "cannot make the folder %s", ckpt->temporary);
    return status;
}

lst_status lst_ckpt_begin(lst_ckpt **out, const char *run, int64_t step, lst_error *err)
{
    if (step < 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "a checkpoint of step %lld was asked for; steps are counted from 0",
                         (long long)step);
    lst_ckpt *ckpt = lst__alloc(1, sizeof *ckpt);
    if (ckpt == NULL)
        return lst__fail_memory(err, "a checkpoint", sizeof *ckpt);
    ckpt->step = step;
    lst_status status = make_names(ckpt, run, err);
    if (status == LST_OK)
        status = make_temporary(ckpt, err);
    if (status != LST_OK) {
        ckpt_free(ckpt);
        return status;
    }
    *out = ckpt;
    return LST_OK;
}

const char *lst_ckpt_folder(const lst_ckpt *ckpt)
{
    return ckpt->temporary;
}

void lst_ckpt_abort(lst_ckpt *ckpt)
{
    if (ckpt == NULL)
        return;
    /* Nobody can be told about a failure here; lst_ckpt_clean tries again at the next start. */
    lst_status ignored = lst__remove_tree(ckpt->temporary, NULL);
    (void)ignored;
    ckpt_free(ckpt);
}

/* ---- what is there ---- */

/* The step of a complete checkpoint's name, or -1. */
static int64_t step_of(const char *name)
{
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return -1;
    const char *digits = name + strlen(PREFIX);
    if (!isdigit((unsigned char)*digits) || digits[strspn(digits, "0123456789")] != '\0')
        return -1;
    errno = 0;
    long long step = strtoll(digits, NULL, 10);
    return errno == 0 ? (int64_t)step : -1;
}

/* The checkpoint with the smallest (or largest) step except `except`; NULL in *name if there is none. Their number goes
 * to *count. */
static lst_status find_extreme(const char *run, bool largest, int64_t except, char **name, int64_t *step, size_t *count,
                               lst_error *err)
{
    DIR *dir = opendir(run);
    if (dir == NULL)
        return lst__fail_errno(err, errno, "cannot list the run's folder %s", run);
    char best[NAME_MAX + 1] = "";
    int64_t best_step = -1;
    *count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int64_t found = step_of(entry->d_name);
        if (found < 0 || found == except)
            continue;
        ++*count;
        if (best_step < 0 || (largest ? found > best_step : found < best_step)) {
            best_step = found;
            memcpy(best, entry->d_name, strlen(entry->d_name) + 1);
        }
    }
    closedir(dir);
    *step = best_step;
    *name = NULL;
    if (best_step < 0)
        return LST_OK;
    *name = lst__path_join(run, best);
    return *name == NULL ? lst__fail_memory(err, "a path", strlen(run) + sizeof best) : LST_OK;
}

lst_status lst_ckpt_latest(const char *run, char **path, int64_t *step, lst_error *err)
{
    char *name;
    int64_t found;
    size_t count;
    lst_status status = find_extreme(run, true, -1, &name, &found, &count, err);
    if (status != LST_OK)
        return status;
    if (name == NULL)
        return lst__fail(err, LST_ERR_STATE, "%s holds no complete checkpoint (a folder " PREFIX "N)", run);
    *path = name;
    if (step != NULL)
        *step = found;
    return LST_OK;
}

void lst_ckpt_free(char *text)
{
    lst__free(text);
}

/* ---- committing ---- */

static lst_status remove_old(const lst_ckpt *ckpt, const char *old, lst_error *err)
{
    /* The temporary name is free by now: the folder that had it was committed or removed. */
    lst_status status = lst__rename(old, ckpt->temporary, err);
    return status == LST_OK ? lst__remove_tree(ckpt->temporary, err) : status;
}

static lst_status remove_oldest(const lst_ckpt *ckpt, size_t keep, lst_error *err)
{
    for (;;) {
        char *oldest;
        int64_t step;
        size_t n_others;
        lst_status status = find_extreme(ckpt->run, false, ckpt->step, &oldest, &step, &n_others, err);
        if (status != LST_OK)
            return status;
        if (n_others + 1 > keep)
            status = remove_old(ckpt, oldest, err);
        lst__free(oldest);
        if (status != LST_OK || n_others + 1 <= keep)
            return status;
    }
}

/* Puts the folder under its name. An older one of the same step is exchanged for it in one operation, then removed. */
static lst_status put_in_place(const lst_ckpt *ckpt, lst_error *err)
{
    if (!lst__is_dir(ckpt->final))
        return lst__rename(ckpt->temporary, ckpt->final, err);
    if (renameat2(AT_FDCWD, ckpt->temporary, AT_FDCWD, ckpt->final, RENAME_EXCHANGE) != 0)
        return lst__fail_errno(
            err, errno, "cannot put %s in the place of %s at once (remove the old one, or save to another run folder)",
            ckpt->temporary, ckpt->final);
    lst_status status = lst__sync_parent(ckpt->final, err);
    return status == LST_OK ? lst__remove_tree(ckpt->temporary, err) : status;
}

lst_status lst_ckpt_commit(lst_ckpt *ckpt, size_t keep, lst_error *err)
{
    lst_status status = lst__sync_dir(ckpt->temporary, err);
    if (status == LST_OK)
        status = put_in_place(ckpt, err);
    if (status != LST_OK) {
        lst_ckpt_abort(ckpt);
        return status;
    }
    if (keep > 0)
        status = remove_oldest(ckpt, keep, err);
    ckpt_free(ckpt);
    return status;
}

/* ---- what killed processes left ---- */

/* Whether the name ends in .tmp-PID or .tmp-PID-N and no process of that number runs (or it is our own: then it is from
 * before us). */
static bool is_stale(const char *name)
{
    const char *mark = NULL;
    for (const char *at = strstr(name, ".tmp-"); at != NULL; at = strstr(at + 1, ".tmp-"))
        mark = at;
    if (mark == NULL || !isdigit((unsigned char)mark[5]))
        return false;
    char *end;
    long pid = strtol(mark + 5, &end, 10);
    if (*end == '-')
        end += 1 + strspn(end + 1, "0123456789");
    if (*end != '\0' || pid <= 0)
        return false;
    return pid == (long)getpid() || (kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

static lst_status remove_stale(const char *run, const char *name, lst_error *err)
{
    char *path = lst__path_join(run, name);
    if (path == NULL)
        return lst__fail_memory(err, "a path", strlen(run) + strlen(name));
    lst_status status = LST_OK;
    if (lst__is_dir(path))
        status = lst__remove_tree(path, err);
    else if (unlink(path) != 0 && errno != ENOENT)
        status = lst__fail_errno(err, errno, "cannot remove %s", path);
    lst__free(path);
    return status;
}

lst_status lst_ckpt_clean(const char *run, lst_error *err)
{
    DIR *dir = opendir(run);
    if (dir == NULL)
        return lst__fail_errno(err, errno, "cannot list the run's folder %s", run);
    lst_status status = LST_OK;
    for (struct dirent *entry = readdir(dir); status == LST_OK && entry != NULL; entry = readdir(dir))
        if (is_stale(entry->d_name))
            status = remove_stale(run, entry->d_name, err);
    closedir(dir);
    return status;
}
