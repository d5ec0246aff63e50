/* SPDX-License-Identifier: MIT */
#include "leanstep/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

const char *lst_status_name(lst_status status)
{
    static const char *const names[] = {
#define LST_X(id, name, text) name,
        LST_STATUS_LIST(LST_X)
#undef LST_X
    };
    size_t i = (size_t)status;
    return i < sizeof names / sizeof names[0] ? names[i] : "unknown";
}

static void fill(lst_error *err, lst_status status, uint64_t position, const char *format, va_list args)
{
    err->status = status;
    err->position = position;
    vsnprintf(err->message, sizeof err->message, format, args);
}

lst_status lst__fail(lst_error *err, lst_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        fill(err, status, 0, format, args);
        va_end(args);
    }
    return status;
}

lst_status lst__fail_at(lst_error *err, lst_status status, uint64_t position, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        fill(err, status, position, format, args);
        va_end(args);
    }
    return status;
}

static const char *advice(int error_number)
{
    switch (error_number) {
    case ENOSPC:
        return "; free space there or choose a folder on another disk";
    case EDQUOT:
        return "; your disk quota is used up: free space or choose another folder";
    case EFBIG:
        return "; the file size limit of this process (ulimit -f) or of the file system is reached";
    case EROFS:
        return "; the file system is mounted read-only: choose another folder";
    case EACCES:
    case EPERM:
        return "; check the owner and permissions of the file and of its folder";
    case ENOENT:
        return "; check the spelling, and that the folder exists";
    case EMFILE:
        return "; raise the limit of open files (ulimit -n)";
    default:
        return "";
    }
}

lst_status lst__fail_errno(lst_error *err, int error_number, const char *format, ...)
{
    if (err == NULL)
        return LST_ERR_IO;
    va_list args;
    va_start(args, format);
    fill(err, LST_ERR_IO, 0, format, args);
    va_end(args);
    char text[128];
    const char *what = strerror_r(error_number, text, sizeof text);
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s%s", what, advice(error_number));
    return LST_ERR_IO;
}
