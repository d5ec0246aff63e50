/* SPDX-License-Identifier: MIT
 *
 * What optimizer.safetensors holds beside the slots' bytes. docs/formats.md describes it; saving and loading share the
 * names here.
 */
#ifndef LST_CKPT_STATE_H
#define LST_CKPT_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "leanstep/optim.h"

/* Raised when an old reader would misread a new file. */
#define LST__CKPT_FORMAT "1"

#define LST__KEY_FORMAT "leanstep.format"
/* In place of the format's number in a file of another layout, so that none is taken for another. */
#define LST__KEY_LAYOUT "leanstep.layout"
#define LST__KEY_RULE "leanstep.rule"
#define LST__KEY_WEIGHTS "leanstep.weights"
#define LST__KEY_STATE "leanstep.state"
#define LST__KEY_SEED "leanstep.seed"
#define LST__KEY_BEGUN "leanstep.begun"
#define LST__KEY_GROUPS "leanstep.groups"
#define LST__KEY_TENSORS "leanstep.tensors"
#define LST__KEY_TRAINER "leanstep.trainer"

/* A slot's name in the file, "state.PARAM.SLOT", in fresh memory (lst__free); NULL if memory runs out. */
char *lst__state_name(const lst_tensor *tensor, const lst_slot *slot);
/* The slot's shape in the file: its tensor's where it has one element for each of the tensor's, else its length; the
 * bytes of a codec with blocks. The dims live in tensor or slot. */
void lst__state_shape(const lst_tensor *tensor, const lst_slot *slot, size_t *n_dims, const size_t **dims);

#endif
