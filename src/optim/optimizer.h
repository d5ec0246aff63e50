/* SPDX-License-Identifier: MIT
 *
 * The inside of an optimizer handle.
 */
#ifndef LST_OPTIM_OPTIMIZER_H
#define LST_OPTIM_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/optim.h"
#include "optim/pass.h"
#include "optim/rule.h"

typedef struct lst__param {
    lst_tensor tensor; /* the name is ours */
    size_t n_elems;
    lst_slot slots[LST_MAX_SLOTS]; /* master first where there is one, then the rule's in its order */
    size_t offsets[LST_MAX_SLOTS]; /* in the block of lst_optim_bind */
    size_t n_slots;
    void *weights;
    bool ready;   /* state holds a start or something loaded */
    bool stepped; /* since the last begin */
    int64_t steps;
} lst__param;

/* One tensor's part of a step that deals the tasks of many tensors at once. */
typedef struct lst__batch_entry {
    lst__step step;
    lst__rule_call call;
    lst__pass pass;
    size_t first_task;
} lst__batch_entry;

struct lst_optim {
    lst_optim_options options; /* groups points to ours */
    lst_hyper *groups;
    const lst__rule *rule;
    const lst__kernels *kernels;
    lst__param *params;
    size_t n_params;
    lst__batch_entry *batch; /* n_params of them */
    size_t block_bytes;
    size_t scratch_bytes;
    void *scratch;
    int64_t begun;
    bool open; /* begun, so tensors may be stepped */
};

/* Checks what does not depend on a tensor. */
LST_MUST_USE lst_status lst__options_check(const lst_optim_options *options, lst_error *err);
LST_MUST_USE lst_status lst__slots_of(const lst_optim_options *options, const lst_tensor *tensor, lst_slot *out,
                                      size_t *n_slots, lst_error *err);

/* Whether the parameter's first slot is its master. */
bool lst__has_master(const lst_optim *optim);
/* The parameter's weights and master as the store sees them. */
lst__weights lst__param_weights(const lst_optim *optim, size_t tensor);
/* LST_ERR_ARGUMENT if there is no tensor of this index. */
LST_MUST_USE lst_status lst__check_index(const lst_optim *optim, size_t tensor, lst_error *err);
/* LST_ERR_STATE if its weights or a slot have no memory. */
LST_MUST_USE lst_status lst__check_bound(const lst__param *param, lst_error *err);

#endif
