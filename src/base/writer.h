/* SPDX-License-Identifier: MIT
 *
 * What a write that must survive a power cut needs beside base/files.h.
 */
#ifndef LST_BASE_WRITER_H
#define LST_BASE_WRITER_H

#include "leanstep/status.h"

/* fsync of the folder that holds path: makes a rename or a new name in it durable. */
LST_MUST_USE lst_status lst__sync_parent(const char *path, lst_error *err);
/* fsync of the folder itself. */
LST_MUST_USE lst_status lst__sync_dir(const char *path, lst_error *err);

#endif
