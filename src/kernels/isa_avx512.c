/* SPDX-License-Identifier: MIT
 *
 * The body for AVX-512 (F, BW, DQ, VL: Skylake-SP and Zen 4 on), with full 512-bit vectors: the kernels are short loops
 * over a tile in L1. AVX512F brings FMA instructions, so here -ffp-contract=off is what forbids contraction; the tests
 * hold this variant bit-equal to the reference.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

#include "kernels/body.h"

#define LST__AVX2_WORDS
#include "kernels/blocks_avx2.h"

void lst__kernels_fill_avx512(lst__kernels *k)
{
    const lst__kernels narrower = *k;
    k->name = "avx512";
    fill_all(k);
    /* One look-up of 16 lanes takes longer than two of 8: 1.19 ns a value against 0.78, decoded 0.60 against 0.37
     * (Sapphire Rapids, gcc 12). */
    k->f32_to_dynamic = narrower.f32_to_dynamic;
    k->dynamic_to_f32 = narrower.dynamic_to_f32;
    fill_blocks_avx2(k);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int no_avx512_on_this_target;
#endif
