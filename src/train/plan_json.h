/* SPDX-License-Identifier: MIT
 *
 * plan.json of a run's folder: the buckets and phases as exact integers.
 */
#ifndef LST_TRAIN_PLAN_JSON_H
#define LST_TRAIN_PLAN_JSON_H

#include "leanstep/plan.h"
#include "leanstep/status.h"

/* The text; the caller frees it with free(). */
LST_MUST_USE lst_status train__plan_json(const lst_plan *plan, char **text, lst_error *err);

#endif
