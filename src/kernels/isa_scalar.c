/* SPDX-License-Identifier: MIT
 *
 * The reference: the compiler may not vectorise this file (CMakeLists.txt), so that it is an independent
 * check of the variants that are.
 */
#include "kernels/body.h"

void lst__kernels_fill_scalar(lst__kernels *k)
{
    k->name = "scalar";
    fill_all(k);
}
