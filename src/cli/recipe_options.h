/* SPDX-License-Identifier: MIT
 *
 * The options that make a recipe: the same words in plan, train and measure.
 */
#ifndef CLI_RECIPE_OPTIONS_H
#define CLI_RECIPE_OPTIONS_H

#include "cli/args.h"
#include "leanstep/recipe.h"

/* Put this table into a command's tables, under the title "Recipe". */
extern const cli_option cli_recipe_options[];

#define CLI_MAX_ASSUMED 24

/* Which defaults were taken: printed, so that nothing that decides bytes is silent. */
typedef struct cli_assumed {
    size_t n;
    char lines[CLI_MAX_ASSUMED][120]; /* "--seq 512" and why, if there is a why */
} cli_assumed;

/* The recipe of a command line, checked (lst_recipe_check). arch may be NULL (a bare parameter count). assumed may be
 * NULL. Defaults that depend on others: gradients in the codec of the weights; seq at most the model's positions;
 * clipping at 1 where gradients are kept; dynamic loss scaling where they are kept in f16; all threads there are. */
LST_MUST_USE lst_status cli_recipe(const cli_args *args, const lst_arch *arch, lst_recipe *out, cli_assumed *assumed,
                                   lst_error *err);

/* The options that give this recipe (those that differ from the defaults), as typed: " --grads release --clip 0". */
void cli_recipe_line(const lst_recipe *recipe, const lst_arch *arch, char *out, size_t n);

#endif
