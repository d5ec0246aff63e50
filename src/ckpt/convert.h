/* SPDX-License-Identifier: MIT
 *
 * Optimizer state on its way from one layout of files to another: what a file of any layout holds, in one form.
 */
#ifndef LST_CKPT_CONVERT_H
#define LST_CKPT_CONVERT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/safetensors.h"
#include "leanstep/ckpt.h"

/* One slot of one tensor, where it lies in the file that is read. */
typedef struct lst__held {
    const char *param; /* borrowed from the description's JSON */
    char *slot;        /* "exp_avg" */
    size_t param_index;
    const lst_st_tensor *codes;  /* all of it, or the codes alone */
    const lst_st_tensor *scales; /* NULL where they follow the codes in the same tensor */
    size_t n_elems, n_dims;
    size_t dims[LST_MAX_DIMS]; /* of the values */
    bool own_length;           /* not one value for each of the parameter's */
    bool is_moment;            /* has a codec and another layout's name; else its bytes pass as they are */
    lst_codec codec;           /* of a moment */
} lst__held;

typedef struct lst__held_state {
    const char *path;
    lst_st *st;
    lst_ckpt_layout layout;
    lst_rule rule;
    lst_codec state; /* signed form; float32 where no moment has blocks */
    char *weights, *seed, *trainer;
    int64_t begun;
    json_t *groups, *tensors; /* as in the metadata of Leanstep's own layout */
    size_t n_held;
    lst__held *held;
} lst__held_state;

/* Reads a file of any layout; everything in it is checked. */
LST_MUST_USE lst_status lst__held_open(lst__held_state *out, const char *path, lst_error *err);
void lst__held_close(lst__held_state *held);

/* The other layouts' names of moments: 1 or 2 for bitsandbytes' state1 and state2; 0: it has no place for the slot. */
int lst__held_number(lst_rule rule, const char *slot);
/* The codec of a slot when moments are kept in `state`: its unsigned form for second moments. */
lst_codec lst__held_codec(const char *slot, lst_codec state);
bool lst__held_is_moment(const char *slot);

#endif
