/* SPDX-License-Identifier: MIT
 *
 * The MODEL argument: a config.json, a folder that holds one, or the name of a built-in configuration.
 */
#ifndef CLI_MODEL_ARG_H
#define CLI_MODEL_ARG_H

#include <stdio.h>

#include "leanstep/arch.h"

/* A path that exists wins over a name. LST_ERR_ARGUMENT lists the names. */
LST_MUST_USE lst_status cli_model_arch(const char *model, lst_arch *out, lst_error *err);
/* "name  what it is" lines for the help. */
void cli_model_list(FILE *out);

#endif
