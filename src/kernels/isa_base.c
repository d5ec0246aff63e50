/* SPDX-License-Identifier: MIT
 *
 * The body vectorised for the build's own target: SSE2 on x86-64, NEON on AArch64.
 */
#include "kernels/body.h"

void lst__kernels_fill_base(lst__kernels *k)
{
    k->name = "base";
    fill_all(k);
}
