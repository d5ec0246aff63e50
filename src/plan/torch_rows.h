/* SPDX-License-Identifier: MIT
 *
 * Rows of torch_step_bytes.csv (counted PyTorch runs) as runs to price.
 */
#ifndef LST_PLAN_TORCH_ROWS_H
#define LST_PLAN_TORCH_ROWS_H

#include "io/csv.h"
#include "leanstep/estimate.h"

LST_MUST_USE lst_status lst__torch_row(const lst_csv *csv, size_t row, lst_torch_run *out, lst_error *err);

#endif
