/* SPDX-License-Identifier: MIT
 *
 * The body for AVX2. The target is named here rather than on the command line, so that `cc src/[a-z]*.c` builds too; it
 * leaves FMA out, so no contraction can happen.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#include "kernels/body.h"

#define LST__AVX2_WORDS
#include "kernels/blocks_avx2.h"

void lst__kernels_fill_avx2(lst__kernels *k)
{
    k->name = "avx2";
    fill_all(k);
    fill_blocks_avx2(k);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int no_avx2_on_this_target;
#endif
