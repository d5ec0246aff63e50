/* SPDX-License-Identifier: MIT
 *
 * Recipes by name, as `bench`, `compare` and the table of `plan` call them: "RULE FORMAT", where FORMAT is how weights
 * are kept, how moments are kept, or both joined by +: "adamw f32", "adamw split24+q8", "lion q8", "sgd f32".
 */
#ifndef CLI_RECIPE_NAME_H
#define CLI_RECIPE_NAME_H

#include <stddef.h>

#include "leanstep/recipe.h"

/* Reads a name of n bytes. A space, a slash or a colon stands between rule and format; a format alone means adamw, a
 * rule alone float32. Sets rule, weights and state of *out, nothing else. LST_ERR_ARGUMENT lists what there is;
 * `option` begins the message. */
LST_MUST_USE lst_status cli_recipe_by_name(const char *option, const char *name, size_t n, lst_recipe *out,
                                           lst_error *err);

/* The name of a recipe, in the one form: "adamw f32", "adamw q8" (float32 weights), "adamw split24+q8". */
void cli_recipe_name(const lst_recipe *recipe, char *out, size_t n);

#endif
