/* SPDX-License-Identifier: MIT */
#include "train/new_folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"

lst_status train_refuse_existing(const char *out, lst_error *err)
{
    struct stat st;
    if (lstat(out, &st) == 0)
        return lst__fail(err, LST_ERR_STATE, "%s exists already, and nothing is overwritten. Name another folder", out);
    return LST_OK;
}

static lst_status fill_and_rename(const char *temporary, const char *out, train_fill_folder *fill, void *context,
                                  lst_error *err)
{
    lst_status status = lst__make_dirs(temporary, err);
    if (status != LST_OK)
        return status;
    status = fill(context, temporary, err);
    if (status == LST_OK)
        status = lst__sync_dir(temporary, err);
    if (status == LST_OK)
        status = lst__rename(temporary, out, err);
    if (status != LST_OK)
        (void)!lst__remove_tree(temporary, NULL);
    return status;
}

lst_status train_new_folder(const char *out, train_fill_folder *fill, void *context, lst_error *err)
{
    size_t length = strlen(out), n = length + 32;
    while (length > 1 && out[length - 1] == '/')
        length--;
    char *temporary = lst__alloc(n, 1);
    if (!temporary)
        return lst__fail_memory(err, "a path", n);
    snprintf(temporary, n, "%.*s.tmp-%ld", (int)length, out, (long)getpid());
    const lst_status status = fill_and_rename(temporary, out, fill, context, err);
    lst__free(temporary);
    return status;
}
