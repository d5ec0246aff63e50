/* SPDX-License-Identifier: MIT */
#ifndef LST_BASE_FAIL_H
#define LST_BASE_FAIL_H

#include "leanstep/status.h"

/* Fills *err (if not NULL) with status and the formatted message, and returns status: `return lst__fail(err, ...)`. */
LST_MUST_USE lst_status lst__fail(lst_error *err, lst_status status, const char *format, ...) LST_PRINTF(3, 4);
/* The same with a byte position in the file at fault. */
LST_MUST_USE lst_status lst__fail_at(lst_error *err, lst_status status, uint64_t position, const char *format, ...)
    LST_PRINTF(4, 5);
/* LST_ERR_IO: the formatted message, then what the system said (error_number as in errno) and, where it is known, what
 * to do about it (full disk, quota, no permission, ...). */
LST_MUST_USE lst_status lst__fail_errno(lst_error *err, int error_number, const char *format, ...) LST_PRINTF(3, 4);

#endif
