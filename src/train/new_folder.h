/* SPDX-License-Identifier: MIT
 *
 * Folders that appear whole or not at all: filled under another name beside the place, flushed, then renamed.
 */
#ifndef LST_TRAIN_NEW_FOLDER_H
#define LST_TRAIN_NEW_FOLDER_H

#include "leanstep/status.h"

/* Writes what belongs in `folder`, which is there and empty. */
typedef lst_status train_fill_folder(void *context, const char *folder, lst_error *err);

/* LST_ERR_STATE where `out` exists, whatever it is: to be asked before long work. */
LST_MUST_USE lst_status train_refuse_existing(const char *out, lst_error *err);
/* Makes `out` with what fill() writes. Nothing of it is left where that fails. */
LST_MUST_USE lst_status train_new_folder(const char *out, train_fill_folder *fill, void *context, lst_error *err);

#endif
