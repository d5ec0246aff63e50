/* SPDX-License-Identifier: MIT
 *
 * --hyper NAME=VALUE,...: the hyper-parameters that have no option of their own, because only one rule knows them.
 */
#ifndef CLI_HYPER_OPTIONS_H
#define CLI_HYPER_OPTIONS_H

#include <stddef.h>

#include "leanstep/optim.h"

/* Changes fields of *out as the text says. Refuses a name that the rule does not use, listing those it does. */
LST_MUST_USE lst_status cli_hyper_read(const char *text, lst_rule rule, lst_hyper *out, lst_error *err);

/* The text that gives this hyper from the rule's defaults, or "" if they are the same but for fields with an option. */
void cli_hyper_text(const lst_hyper *hyper, lst_rule rule, char *out, size_t n);

#endif
