/* SPDX-License-Identifier: MIT
 *
 * Weights of a file (or of shards) on their way into memory: found, checked, and read in tiles of float32.
 */
#ifndef LST_CKPT_SOURCE_H
#define LST_CKPT_SOURCE_H

#include <stddef.h>

#include "io/safetensors.h"
#include "leanstep/status.h"

/* Values that are converted at a time: a tile of float32 and its source fit in L1. */
#define LST__CKPT_TILE 1024

/* The tensor of this name (of "transformer.X" also without the prefix), with this shape and a dtype that can be read as
 * numbers; LST_ERR_STATE says what differs. */
LST_MUST_USE lst_status lst__source_find(const lst_st_set *set, const char *path, const char *name, size_t n_dims,
                                         const size_t *dims, const lst_st_tensor **out, lst_error *err);
/* n <= LST__CKPT_TILE values from `first` on, exact in float32. */
void lst__source_tile(const lst_st_tensor *tensor, size_t first, size_t n, float *out);
/* Everything before value `end` has been read: its pages may go. */
void lst__source_done(const lst_st_tensor *tensor, size_t end);

#endif
