/* SPDX-License-Identifier: MIT */
#include "model/loops.h"

#include <string.h>

#include "kernels/kernels.h"

const model_loops *model_loops_get(void)
{
    const char *isa = lst__kernels_get()->name;
    const model_loops *loops = NULL;
    if (!strcmp(isa, "avx512"))
        loops = model_loops_avx512();
    if (!loops && (!strcmp(isa, "avx512") || !strcmp(isa, "avx2")))
        loops = model_loops_avx2();
    return loops ? loops : model_loops_base();
}
