/* SPDX-License-Identifier: MIT
 *
 * What would make a run smaller: the table that stands under a plan that does not fit.
 */
#ifndef CLI_LEVERS_H
#define CLI_LEVERS_H

#include <stdio.h>

#include "leanstep/plan.h"

/* Each lever alone, most bytes first, with its price. */
LST_MUST_USE lst_status cli_print_levers(FILE *out, const lst_plan *plan, lst_error *err);

#endif
