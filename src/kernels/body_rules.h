/* SPDX-License-Identifier: MIT
 *
 * Loops of the optimizer rules, included once by every instruction set's file and compiled for it. Plain C: the
 * compiler vectorises it, and because no fused multiply-add and no estimate is allowed, every variant gives the
 * same bits. No loop reads a neighbour, so cutting an array in tiles anywhere changes nothing either.
 */
#include "kernels/kernels.h"

#if defined(__GNUC__)
#define LST__ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define LST__ALWAYS_INLINE static inline
#endif

/* No rule: the same streams as AdamW's (four arrays read, three written) with as little arithmetic as can be, to
 * measure what the memory gives. */
static void rule_stream(const lst__rule_args *a)
{
    float *restrict w = a->w;
    float *restrict x = a->s[0];
    float *restrict y = a->s[1];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        w[i] += g[i];
        x[i] += g[i];
        y[i] += g[i];
    }
}

/* g = sign*g + l2*w; w = w + rate*g. */
static void rule_sgd(const lst__rule_args *a)
{
    const float sign = a->k[LST__K_SIGN], l2 = a->k[LST__K_L2], rate = a->k[LST__K_RATE];
    float *restrict w = a->w;
    const float *restrict g = a->g;
    if (l2 == 0.0f) { /* apart, so that an infinite weight without decay gives no 0 * inf */
        for (size_t i = 0; i < a->n; i++)
            w[i] = w[i] + rate * (sign * g[i]);
        return;
    }
    for (size_t i = 0; i < a->n; i++)
        w[i] = w[i] + rate * (sign * g[i] + l2 * w[i]);
}

/* g = sign*g + l2*w; b = keep*b + take*g, the first time b = g exactly; d = b, or with Nesterov g + keep*b;
 * w = w + rate*d. */
LST__ALWAYS_INLINE void momentum_body(const lst__rule_args *a, const int first, const int nesterov, const int decays)
{
    const float sign = a->k[LST__K_SIGN], l2 = a->k[LST__K_L2], rate = a->k[LST__K_RATE];
    const float keep = a->k[LST__K_KEEP], take = a->k[LST__K_TAKE];
    float *restrict w = a->w;
    float *restrict b = a->s[0];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        float x = sign * g[i];
        if (decays)
            x = x + l2 * w[i];
        const float buffer = first ? x : keep * b[i] + take * x;
        b[i] = buffer;
        w[i] = w[i] + rate * (nesterov ? x + keep * buffer : buffer);
    }
}

LST__ALWAYS_INLINE void momentum_either(const lst__rule_args *a, const int first, const int nesterov)
{
    if (a->k[LST__K_L2] == 0.0f)
        momentum_body(a, first, nesterov, 0);
    else
        momentum_body(a, first, nesterov, 1);
}

static void rule_momentum(const lst__rule_args *a)
{
    momentum_either(a, 0, 0);
}

static void rule_momentum_first(const lst__rule_args *a)
{
    momentum_either(a, 1, 0);
}

static void rule_nesterov(const lst__rule_args *a)
{
    momentum_either(a, 0, 1);
}

static void rule_nesterov_first(const lst__rule_args *a)
{
    momentum_either(a, 1, 1);
}

/* numerator / denominator, but 0 where the denominator is 0: with eps 0 an element that never saw a gradient (or
 * whose squares underflow) stays where it is instead of becoming NaN. A NaN denominator stays NaN. */
LST__ALWAYS_INLINE float quotient_or_zero(float numerator, float denominator)
{
    const float above = denominator == 0.0f ? 0.0f : numerator;   /* the division itself stays unconditional: */
    const float below = denominator == 0.0f ? 1.0f : denominator; /* the compiler vectorises no conditional one */
    return above / below;
}

/* adam: g = sign*g + l2*w.   adamw: w = decay*w; g = sign*g.
 * m = m + (1-beta1)*(g - m), a lerp; where 1-beta1 >= 0.5 (late) from the other end: g - beta1*(g - m), as torch.lerp.
 * v = beta2*v + ((1-beta2)*g)*g, in this order, so that squares overflow no earlier than torch's.
 * w = w + (rate*m) / (sqrt(v)*unbias2 + eps), with amsgrad the largest v so far instead of v. */
LST__ALWAYS_INLINE void adam_body(const lst__rule_args *a, const int decoupled, const int amsgrad, const int late)
{
    const float sign = a->k[LST__K_SIGN], l2 = a->k[LST__K_L2], rate = a->k[LST__K_RATE], decay = a->k[LST__K_DECAY];
    const float beta1c = a->k[LST__K_BETA1C], beta2 = a->k[LST__K_BETA2], beta2c = a->k[LST__K_BETA2C];
    const float unbias2 = a->k[LST__K_UNBIAS2], eps = a->k[LST__K_EPS];
    float *restrict w = a->w;
    float *restrict m = a->s[0];
    float *restrict v = a->s[1];
    float *restrict v_max = a->s[2];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        const float weight = decoupled ? w[i] * decay : w[i];
        const float x = decoupled ? sign * g[i] : sign * g[i] + l2 * w[i];
        const float first = late ? x - beta1c * (x - m[i]) : m[i] + beta1c * (x - m[i]);
        float second = beta2 * v[i] + beta2c * x * x;
        m[i] = first;
        v[i] = second;
        if (amsgrad) {
            second = v_max[i] >= second ? v_max[i] : second;
            v_max[i] = second;
        }
        w[i] = weight + quotient_or_zero(rate * first, __builtin_sqrtf(second) * unbias2 + eps);
    }
}

#define LST__ADAM(name, decoupled, amsgrad, late)                                                                      \
    static void rule_##name(const lst__rule_args *a)                                                                   \
    {                                                                                                                  \
        adam_body(a, decoupled, amsgrad, late);                                                                        \
    }
LST__ADAM(adam, 0, 0, 0)
LST__ADAM(adam_late, 0, 0, 1)
LST__ADAM(adam_amsgrad, 0, 1, 0)
LST__ADAM(adam_amsgrad_late, 0, 1, 1)
LST__ADAM(adamw, 1, 0, 0)
LST__ADAM(adamw_late, 1, 0, 1)
LST__ADAM(adamw_amsgrad, 1, 1, 0)
LST__ADAM(adamw_amsgrad_late, 1, 1, 1)
#undef LST__ADAM

/* w = decay*w; c = beta1*m + (1-beta1)*g; w = w + rate*sign(c), sign(0) = 0; m = beta2*m + (1-beta2)*g. */
static void rule_lion(const lst__rule_args *a)
{
    const float sign = a->k[LST__K_SIGN], rate = a->k[LST__K_RATE], decay = a->k[LST__K_DECAY];
    const float keep = a->k[LST__K_KEEP], take = a->k[LST__K_TAKE];
    const float beta2 = a->k[LST__K_BETA2], beta2c = a->k[LST__K_BETA2C];
    float *restrict w = a->w;
    float *restrict m = a->s[0];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        const float x = sign * g[i];
        const float c = keep * m[i] + take * x;
        const float up = c > 0.0f ? 1.0f : c; /* what is left of c is 0 or NaN */
        w[i] = w[i] * decay + rate * (c < 0.0f ? -1.0f : up);
        m[i] = beta2 * m[i] + beta2c * x;
    }
}

/* g = sign*g + l2*w; v = beta2*v + ((1-beta2)*g)*g (beta2 is alpha here); centered: e = e + (1-beta2)*(g - e), d =
 * sqrt(v - e*e), else d = sqrt(v); u = g / (d + eps); with momentum b = keep*b + u, u = b; w = w + rate*u. v - e*e
 * cannot be negative but by rounding: 0 then. State: v, e where centered, b where there is momentum. */
LST__ALWAYS_INLINE void rmsprop_body(const lst__rule_args *a, const int centered, const int momentum, const int decays)
{
    const float sign = a->k[LST__K_SIGN], l2 = a->k[LST__K_L2], rate = a->k[LST__K_RATE], keep = a->k[LST__K_KEEP];
    const float alpha = a->k[LST__K_BETA2], alphac = a->k[LST__K_BETA2C], eps = a->k[LST__K_EPS];
    float *restrict w = a->w;
    float *restrict v = a->s[0];
    float *restrict e = a->s[1];
    float *restrict b = a->s[1 + centered];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        float x = sign * g[i];
        if (decays)
            x = x + l2 * w[i];
        float second = alpha * v[i] + alphac * x * x;
        v[i] = second;
        if (centered) {
            const float mean = e[i] + alphac * (x - e[i]);
            e[i] = mean;
            second = second - mean * mean;
            second = second < 0.0f ? 0.0f : second;
        }
        float u = quotient_or_zero(x, __builtin_sqrtf(second) + eps);
        if (momentum) {
            u = keep * b[i] + u;
            b[i] = u;
        }
        w[i] = w[i] + rate * u;
    }
}

#define LST__RMSPROP(name, centered, momentum)                                                                         \
    static void rule_##name(const lst__rule_args *a)                                                                   \
    {                                                                                                                  \
        if (a->k[LST__K_L2] == 0.0f)                                                                                   \
            rmsprop_body(a, centered, momentum, 0);                                                                    \
        else                                                                                                           \
            rmsprop_body(a, centered, momentum, 1);                                                                    \
    }
LST__RMSPROP(rmsprop, 0, 0)
LST__RMSPROP(rmsprop_momentum, 0, 1)
LST__RMSPROP(rmsprop_centered, 1, 0)
LST__RMSPROP(rmsprop_centered_momentum, 1, 1)
#undef LST__RMSPROP

/* b = keep*b + (trust*(g + l2*w))*unit*unit; w = w - b. In steps, because the trust ratio of tiny weights under huge
 * gradients is below float32's range while its product with the gradient is not. */
static void rule_lars(const lst__rule_args *a)
{
    const float l2 = a->k[LST__K_L2], keep = a->k[LST__K_KEEP];
    const float trust = a->k[LST__K_TRUST], unit = a->k[LST__K_TRUST_UNIT];
    float *restrict w = a->w;
    float *restrict b = a->s[0];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        const float buffer = keep * b[i] + trust * (g[i] + l2 * w[i]) * unit * unit;
        b[i] = buffer;
        w[i] = w[i] - buffer;
    }
}

/* m = beta1*m + (1-beta1)*g; v = beta2*v + ((1-beta2)*g)*g; u = (m/bc1) / (sqrt(v)*unbias2 + eps) + l2*w. */
LST__ALWAYS_INLINE float lamb_one(const float *k, float w, float g, float *m, float *v)
{
    *m = k[LST__K_KEEP] * *m + k[LST__K_TAKE] * g;
    *v = k[LST__K_BETA2] * *v + k[LST__K_BETA2C] * g * g;
    return quotient_or_zero(*m * k[LST__K_INVERSE_BC1], __builtin_sqrtf(*v) * k[LST__K_UNBIAS2] + k[LST__K_EPS]) +
           k[LST__K_L2] * w;
}

/* u alone, into the fourth array: nothing else changes. */
static void rule_lamb_direction(const lst__rule_args *a)
{
    float k[LST__N_K];
    for (size_t i = 0; i < LST__N_K; i++)
        k[i] = a->k[i];
    const float *restrict w = a->w;
    const float *restrict g = a->g;
    const float *restrict m = a->s[0];
    const float *restrict v = a->s[1];
    float *restrict u = a->s[3];
    for (size_t i = 0; i < a->n; i++) {
        float first = m[i], second = v[i];
        u[i] = lamb_one(k, w[i], g[i], &first, &second);
    }
}

/* The step: w = w + rate*u, rate = -lr * trust ratio. */
static void rule_lamb(const lst__rule_args *a)
{
    float k[LST__N_K];
    for (size_t i = 0; i < LST__N_K; i++)
        k[i] = a->k[i];
    float *restrict w = a->w;
    float *restrict m = a->s[0];
    float *restrict v = a->s[1];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        float first = m[i], second = v[i];
        const float u = lamb_one(k, w[i], g[i], &first, &second);
        m[i] = first;
        v[i] = second;
        w[i] = w[i] + k[LST__K_RATE] * u;
    }
}

/* y is the weight: v = beta2*v + ((1-beta2)*g)*g; u = g / (sqrt(v)*unbias2 + eps) + l2*y; y = y + average*(z - y) +
 * rate_y*u; z = z + rate*u. The first time z is y. State: v, z. */
LST__ALWAYS_INLINE void schedule_free_body(const lst__rule_args *a, const int begins)
{
    const float l2 = a->k[LST__K_L2], rate = a->k[LST__K_RATE], rate_y = a->k[LST__K_RATE_Y];
    const float average = a->k[LST__K_AVERAGE], beta2 = a->k[LST__K_BETA2], beta2c = a->k[LST__K_BETA2C];
    const float unbias2 = a->k[LST__K_UNBIAS2], eps = a->k[LST__K_EPS];
    float *restrict y = a->w;
    float *restrict v = a->s[0];
    float *restrict z = a->s[1];
    const float *restrict g = a->g;
    for (size_t i = 0; i < a->n; i++) {
        const float from = begins ? y[i] : z[i];
        const float second = beta2 * v[i] + beta2c * g[i] * g[i];
        const float u = quotient_or_zero(g[i], __builtin_sqrtf(second) * unbias2 + eps) + l2 * y[i];
        v[i] = second;
        y[i] = y[i] + average * (from - y[i]) + rate_y * u;
        z[i] = from + rate * u;
    }
}

static void rule_schedule_free(const lst__rule_args *a)
{
    schedule_free_body(a, 0);
}

static void rule_schedule_free_first(const lst__rule_args *a)
{
    schedule_free_body(a, 1);
}

static void fill_rules(lst__kernels *k)
{
#define LST__X(name) k->rules[LST__LOOP_##name] = rule_##name;
    LST__RULE_LOOP_LIST(LST__X)
#undef LST__X
}
