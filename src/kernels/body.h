/* SPDX-License-Identifier: MIT
 *
 * The body of all kernels. Included once by each isa_*.c, after the pragmas that name its instruction set.
 *
 * To add an entry: declare it in the table (kernels.h), write it once as a static function in a body_*.h, and set it in
 * that file's fill_*. Rules for a body:
 *   - plain C over restrict pointers, branch-free inside the loop (selects, not ifs), so that the compiler vectorises
 *   it;
 *   - no sum or other order-dependent reduction in one variable: use the fixed lanes of body_reduce.h;
 *   - one rounding per written operation: the build forbids contraction, fast-math and reciprocal estimates;
 *   - single elements mean what the functions in numeric/ say.
 */
#ifndef LST_KERNELS_BODY_H
#define LST_KERNELS_BODY_H

#include "kernels/kernels.h"

#include "kernels/body_blocks.h"
#include "kernels/body_convert.h"
#include "kernels/body_dynamic.h"
#include "kernels/body_reduce.h"
#include "kernels/body_rules.h"
#include "kernels/body_matmul.h"

static void fill_all(lst__kernels *k)
{
    fill_convert(k);
    fill_blocks(k);
    fill_dynamic(k);
    fill_reduce(k);
    fill_rules(k);
    fill_matmul(k);
}

#endif
