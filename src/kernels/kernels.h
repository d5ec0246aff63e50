/* SPDX-License-Identifier: MIT
 *
 * Loops over arrays, one body compiled once per instruction set, behind one table. The only door to SIMD.
 *
 * Every entry gives the same bits in every variant (a NaN may carry another payload), for any n >= 0 and any pointers
 * aligned to their element. Arrays do not overlap unless an entry says so. The meaning of the stored numbers stands in
 * numeric/, how a variant is chosen in select.c, how to add an entry in body.h.
 */
#ifndef LST_KERNELS_KERNELS_H
#define LST_KERNELS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/rules.h"
#include "numeric/dynamic_map.h"
#include "numeric/rounding.h"

/* X(identifier, name in LEANSTEP_DISABLE_CPU and in messages), slowest first. "scalar" is the reference: plain C that
 * the compiler may not vectorise. "base" is the same source vectorised for the build's own target (SSE2, NEON). */
#define LST__ISA_LIST(X)                                                                                               \
    X(SCALAR, "scalar")                                                                                                \
    X(BASE, "base")                                                                                                    \
    X(AVX2, "avx2")                                                                                                    \
    X(AVX512, "avx512")

typedef enum lst__isa {
#define LST_X(id, name) LST__ISA_##id,
    LST__ISA_LIST(LST_X)
#undef LST_X
        LST__N_ISAS
} lst__isa;

typedef void lst__blocks_encode(const float *in, uint8_t *codes, uint8_t *bases, size_t n, lst__rounding_key key,
                                uint32_t first);
typedef void lst__blocks_decode(const uint8_t *codes, const uint8_t *bases, float *out, size_t n);

/* Adam's moments of a run as q8 and q8u keep them: codes, bases, the keys of their draws. `first` is the run's first
 * index (low 32 bits), a multiple of 32. */
typedef struct lst__q8_moments {
    uint8_t *m, *m_bases, *v, *v_bases;
    lst__rounding_key m_key, v_key;
    uint32_t first;
} lst__q8_moments;

typedef void lst__q8_rule(const lst__rule_args *args, const lst__q8_moments *moments);

/* The block of a product that is computed in registers. */
#define LST__MATMUL_ROWS 6
#define LST__MATMUL_COLUMNS 16

typedef struct lst__kernels {
    const char *name; /* of the variant: "avx2" */

    /* ---- conversions (body_convert.h; f16 overwritten by isa_f16c.c where the CPU has it) ---- */
    void (*bf16_to_f32)(const uint16_t *in, float *out, size_t n);
    void (*f32_to_bf16)(const float *in, uint16_t *out, size_t n);
    /* Element i draws lst__rounding_draw(key, first + i). */
    void (*f32_to_bf16_stochastic)(const float *in, uint16_t *out, size_t n, lst__rounding_key key, uint32_t first);
    void (*f16_to_f32)(const uint16_t *in, float *out, size_t n);
    void (*f32_to_f16)(const float *in, uint16_t *out, size_t n);
    void (*split32_to_f32)(const uint16_t *hi, const uint16_t *lo, float *out, size_t n);
    void (*f32_to_split32)(const float *in, uint16_t *hi, uint16_t *lo, size_t n);

    /* ---- split24 and blocks of small floats (body_blocks.h). `bases` has one byte a group of the run (numeric/q8.h,
     * q4.h). `first` is the run's first index (low 32 bits), for the blocks a multiple of 32. q4 packs two codes a
     * byte. */
    void (*split24_to_f32)(const uint16_t *hi, const uint8_t *lo, float *out, size_t n);
    void (*f32_to_split24)(const float *in, uint16_t *hi, uint8_t *lo, size_t n, lst__rounding_key key, uint32_t first);
    lst__blocks_encode *f32_to_q8, *f32_to_q8u, *f32_to_q4, *f32_to_q4u;
    lst__blocks_decode *q8_to_f32, *q8u_to_f32, *q4_to_f32, *q4u_to_f32;

    /* ---- the dynamic map (body_dynamic.h): one block under its absmax (a NaN makes all of the block NaN) ---- */
    void (*f32_to_dynamic)(const float *in, uint8_t *codes, size_t n, float absmax, const lst__dynamic_map *map);
    void (*dynamic_to_f32)(const uint8_t *codes, float *out, size_t n, float absmax, const lst__dynamic_map *map);

    /* ---- reductions (body_reduce.h): fixed lanes, so the order of the sum is the same everywhere ---- */
    double (*sum_squares)(const float *x, size_t n); /* in double */
    float (*max_abs)(const float *x, size_t n);      /* 0 for n = 0; NaN if any element is */
    int (*all_finite)(const float *x, size_t n);     /* 1 for n = 0 */

    void (*scale)(float *x, size_t n, float factor); /* x *= factor, in place */

    /* ---- rules (body_rules.h): one step on the float32 arrays of one tile, by enum lst__rule_loop_id ---- */
    lst__rule_loop *rules[LST__N_RULE_LOOPS];

    /* ---- matrix products (body_matmul.h): the orthogonalisation of a step; the model's own go through CBLAS ---- */
    /* c[i][j] = sum over k of a[k][i] * b[k][j], k in order, a product and a sum rounded each. a: k x LST__MATMUL_ROWS,
     * b: k x LST__MATMUL_COLUMNS, c: LST__MATMUL_ROWS x LST__MATMUL_COLUMNS, all packed. */
    void (*matmul)(size_t k, const float *a, const float *b, float *c);

    /* ---- rules on q8 moments (blocks_lanes.h): rules[] with the moments decoded and coded again group by group, so
     * that the divisions of one group pass while the next is decoded. NULL where a loop has no such form: the tile step
     * then calls decode, rule and encode. args->s is not read. ---- */
    lst__q8_rule *rules_q8[LST__N_RULE_LOOPS];
} lst__kernels;

/* The table of the best variant this CPU has (less what LEANSTEP_DISABLE_CPU takes away). Chosen at the first call, the
 * same ever after; any thread. Never NULL. */
const lst__kernels *lst__kernels_get(void);

/* For tests and benchmarks: the table of one variant, or NULL if this CPU or build lacks it. Ignores
 * LEANSTEP_DISABLE_CPU. */
const lst__kernels *lst__kernels_for(lst__isa isa);

/* For select.c: each isa_*.c overwrites the entries that it has. */
void lst__kernels_fill_scalar(lst__kernels *k);
void lst__kernels_fill_base(lst__kernels *k);
void lst__kernels_fill_avx2(lst__kernels *k);
void lst__kernels_fill_f16c(lst__kernels *k);
void lst__kernels_fill_avx512(lst__kernels *k);

#endif
