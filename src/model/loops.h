/* SPDX-License-Identifier: MIT
 *
 * The model's loops over rows of float32: one body (loops_body.h) compiled for each instruction set, behind one table.
 * Every variant gives the same bits: sums run in 16 fixed lanes, added up in double in a fixed order, and exp is ours
 * (IEEE operations only), so neither the vector width nor the C library can change a result.
 */
#ifndef MODEL_LOOPS_H
#define MODEL_LOOPS_H

#include <stddef.h>
#include <stdint.h>

typedef struct model_loops {
    const char *name;

    /* ---- norms: one row of n; stat[0] mean (0 for RMSNorm), stat[1] 1 / deviation ---- */
    void (*rms_norm)(const float *x, const float *w, float *y, float *stat, size_t n, double eps);
    void (*layer_norm)(const float *x, const float *w, const float *b, float *y, float *stat, size_t n, double eps);
    /* dx += gradient of the norm's input. x may be read with the stat that forward wrote. */
    void (*rms_norm_backward)(float *dx, const float *dy, const float *x, const float *w, const float *stat, size_t n);
    void (*layer_norm_backward)(float *dx, const float *dy, const float *x, const float *w, const float *stat,
                                size_t n);
    /* dw_sum += dy * (x - mean) / deviation, db_sum += dy, in double. db_sum may be NULL. */
    void (*norm_weights_backward)(double *dw_sum, double *db_sum, const float *dy, const float *x, const float *stat,
                                  size_t n);

    /* ---- attention ---- */
    /* s *= scale, then softmax over the n valid scores; the rest up to n_total becomes 0. Returns log-sum-exp. */
    float (*softmax)(float *s, size_t n, size_t n_total, float scale);
    /* s = exp(scale * s - lse) for the n valid scores; the rest becomes 0: the softmax again. */
    void (*softmax_again)(float *s, size_t n, size_t n_total, float scale, float lse);
    /* dp = p * (dp - inner) * scale: gradient of the scores before scaling. */
    void (*softmax_backward)(float *dp, const float *p, size_t n, float inner, float scale);
    float (*dot)(const float *x, const float *y, size_t n);
    /* Half-split rotation of one head: table holds d/2 cosines, then d/2 sines. sign -1 turns back. */
    void (*rotate)(float *x, const float *table, size_t d, float sign);

    /* ---- MLP ---- */
    void (*gelu)(float *y, const float *x, size_t n);
    void (*gelu_backward)(float *x, const float *dy, size_t n); /* x becomes its gradient */
    void (*swiglu)(float *y, const float *gate, const float *up, size_t n);
    void (*swiglu_backward)(float *gate, float *up, const float *dy, size_t n); /* both become their gradients */

    /* ---- loss ---- */
    /* Log-sum-exp of a row of logits. */
    double (*log_sum_exp)(const float *z, size_t n);
    /* z = scale * exp(z - lse): the gradient of the cross-entropy, but for the target's one. */
    void (*cross_entropy_backward)(float *z, size_t n, double lse, float scale);

    void (*add)(float *y, const float *x, size_t n);            /* y += x */
    void (*sum_columns)(double *sum, const float *x, size_t n); /* sum += x, in double */
} model_loops;

/* The best variant this CPU has, as lst__kernels_get chose it. */
const model_loops *model_loops_get(void);

/* One table a file; for tests and loops.c. NULL where the build lacks the variant. */
const model_loops *model_loops_base(void);
const model_loops *model_loops_avx2(void);
const model_loops *model_loops_avx512(void);

#endif
