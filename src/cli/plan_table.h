/* SPDX-License-Identifier: MIT
 *
 * Every rule with every way to keep its moments and its weights, side by side: the table of `plan --table optimizers`.
 */
#ifndef CLI_PLAN_TABLE_H
#define CLI_PLAN_TABLE_H

#include <stdint.h>

#include "leanstep/recipe.h"

/* arch NULL: n_params of unknown shape; rules whose state depends on shapes are then planned as if all were matrices
 * 4,096 wide, and the table says so. Gradients are kept or released as in `base`. */
LST_MUST_USE lst_status cli_plan_table(const lst_arch *arch, uint64_t n_params, const lst_recipe *base, lst_error *err);

/* Whether a rule's state follows from the number of parameters alone: as much for a vector as for a matrix of as
 * many. */
bool cli_plan_counts_suffice(lst_rule rule);

#endif
