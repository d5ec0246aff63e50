/* SPDX-License-Identifier: MIT
 *
 * --memory alone: the recipe that the planner picks for it, and what is said about the choice.
 */
#ifndef CLI_CHOOSE_H
#define CLI_CHOOSE_H

#include <stdio.h>

#include "cli/args.h"
#include "cli/recipe_options.h"
#include "leanstep/plan.h"

typedef struct cli_choice_made {
    bool made; /* the recipe is not the one that the options alone give */
    lst_choice choice;
} cli_choice_made;

/* With --memory, where the recipe of the options and defaults does not fit: another that does, if there is one. Options
 * that were typed stay. *recipe and *assumed are changed to match. */
LST_MUST_USE lst_status cli_choose(const cli_args *args, const lst_arch *arch, lst_recipe *recipe, cli_assumed *assumed,
                                   cli_choice_made *out, lst_error *err);
/* What was chosen, why, and what the next better ones would need; nothing where nothing was chosen. */
void cli_print_choice(FILE *out, const cli_args *args, const lst_arch *arch, const cli_choice_made *choice);

#endif
