/* SPDX-License-Identifier: MIT
 *
 * The target is named here, not on the command line. It leaves FMA out, so no contraction can happen.
 */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#include "model/loops_body.h"

static const model_loops table = MODEL_LOOPS_TABLE("avx2");

const model_loops *model_loops_avx2(void)
{
    return &table;
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
#include "model/loops.h"

const model_loops *model_loops_avx2(void)
{
    return NULL;
}
#endif
