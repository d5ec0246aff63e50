/* SPDX-License-Identifier: MIT
 *
 * The bodies of loops.h. Included once by each loops_<isa>.c, which names the instruction set first and then fills its
 * table with MODEL_LOOPS_TABLE. No header guard on purpose: every file gets its own static copies.
 */
#include <math.h>
#include <string.h>

#include "model/loops.h"
#include "numeric/bits.h"

#define LANES 16   /* two AVX, four SSE or one AVX-512 register */
#define BLOCK 1024 /* elements whose sum stays in float32 lanes: 64 additions a lane */

/* exp(x) = 2^n * e^r, n = nearest(x / ln 2), |r| <= ln2 / 2. The Taylor polynomial of degree 7 errs by r^8 / 8! <
 * 5.2e-9. n comes out of the low mantissa bits after adding 1.5 * 2^23. ln2 is cut in two, so that n * 355/512 is
 * exact. Clamped to [-87.3, 88.3], where the result is normal; NaN stays NaN. */
static inline float exp_f32(float x)
{
    x = x < -87.3f ? -87.3f : x;
    x = x > 88.3f ? 88.3f : x;
    float t = x * 1.44269504f + 12582912.0f;
    float n = t - 12582912.0f;
    float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * lst__f32_of_bits((lst__bits_of_f32(t) << 23) + 0x3f800000u);
}

/* exp(x) as a share of a sum of at least 1: below e^-64 (1.6e-28), far below what such a sum can show, it is 0. Left as
 * it is, its products fall below float32's normal range, where a CPU multiplies many times slower: training at too
 * high a rate took four times as long a step. */
static inline float share_f32(float x)
{
    float y = exp_f32(x);
    return x < -64.0f ? 0.0f : y;
}

static inline double add_lanes(const float *lane)
{
    double sum = 0.0;
    for (size_t j = 0; j < LANES; j++)
        sum += (double)lane[j];
    return sum;
}

/* Adds up EXPR over i in [0, n): float32 lanes within a block, double across blocks. */
#define LANE_SUM(result, n, EXPR)                                                                                      \
    do {                                                                                                               \
        result = 0.0;                                                                                                  \
        for (size_t begin_ = 0; begin_ < (n); begin_ += BLOCK) {                                                       \
            size_t end_ = (n)-begin_ < BLOCK ? (n) : begin_ + BLOCK, i_ = begin_;                                      \
            float lane_[LANES] = {0};                                                                                  \
            for (; i_ + LANES <= end_; i_ += LANES)                                                                    \
                for (size_t j_ = 0; j_ < LANES; j_++) {                                                                \
                    size_t i = i_ + j_;                                                                                \
                    lane_[j_] += (EXPR);                                                                               \
                }                                                                                                      \
            for (size_t i = i_; i < end_; i++)                                                                         \
                lane_[i - i_] += (EXPR);                                                                               \
            result += add_lanes(lane_);                                                                                \
        }                                                                                                              \
    } while (0)

/* ---- norms ---- */

static void rms_norm(const float *restrict x, const float *restrict w, float *restrict y, float *stat, size_t n,
                     double eps)
{
    double sum;
    LANE_SUM(sum, n, x[i] * x[i]);
    float scale = (float)(1.0 / sqrt(sum / (double)n + eps));
    stat[0] = 0.0f;
    stat[1] = scale;
    for (size_t i = 0; i < n; i++)
        y[i] = w[i] * (x[i] * scale);
}

static void layer_norm(const float *restrict x, const float *restrict w, const float *restrict b, float *restrict y,
                       float *stat, size_t n, double eps)
{
    double sum, squares;
    LANE_SUM(sum, n, x[i]);
    float mean = (float)(sum / (double)n);
    LANE_SUM(squares, n, (x[i] - mean) * (x[i] - mean));
    float scale = (float)(1.0 / sqrt(squares / (double)n + eps));
    stat[0] = mean;
    stat[1] = scale;
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

/* With h = x / deviation and g = dy * w: dx = (g - h * mean(g * h)) / deviation. */
static void rms_norm_backward(float *restrict dx, const float *restrict dy, const float *restrict x,
                              const float *restrict w, const float *stat, size_t n)
{
    float scale = stat[1];
    double along;
    LANE_SUM(along, n, (dy[i] * w[i]) * (x[i] * scale));
    float mean_along = (float)(along / (double)n);
    for (size_t i = 0; i < n; i++)
        dx[i] += (dy[i] * w[i] - x[i] * scale * mean_along) * scale;
}

/* With h = (x - mean) / deviation and g = dy * w: dx = (g - mean(g) - h * mean(g * h)) / deviation. */
static void layer_norm_backward(float *restrict dx, const float *restrict dy, const float *restrict x,
                                const float *restrict w, const float *stat, size_t n)
{
    float mean = stat[0], scale = stat[1];
    double sum, along;
    LANE_SUM(sum, n, dy[i] * w[i]);
    LANE_SUM(along, n, (dy[i] * w[i]) * ((x[i] - mean) * scale));
    float mean_g = (float)(sum / (double)n), mean_along = (float)(along / (double)n);
    for (size_t i = 0; i < n; i++)
        dx[i] += (dy[i] * w[i] - mean_g - (x[i] - mean) * scale * mean_along) * scale;
}

static void norm_weights_backward(double *restrict dw_sum, double *restrict db_sum, const float *restrict dy,
                                  const float *restrict x, const float *stat, size_t n)
{
    float mean = stat[0], scale = stat[1];
    for (size_t i = 0; i < n; i++)
        dw_sum[i] += (double)(dy[i] * ((x[i] - mean) * scale));
    if (db_sum)
        for (size_t i = 0; i < n; i++)
            db_sum[i] += (double)dy[i];
}

/* ---- attention ---- */

static inline float largest(const float *x, size_t n)
{
    float lane[LANES];
    size_t i = 0;
    for (size_t j = 0; j < LANES; j++)
        lane[j] = x[0];
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (size_t j = 0; i + j < n; j++)
        lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    float max = lane[0];
    for (size_t j = 1; j < LANES; j++)
        max = lane[j] > max ? lane[j] : max;
    return max;
}

static float softmax(float *s, size_t n, size_t n_total, float scale)
{
    float max = largest(s, n) * scale;
    for (size_t i = 0; i < n; i++)
        s[i] = share_f32(s[i] * scale - max);
    double sum;
    LANE_SUM(sum, n, s[i]);
    float inverse = (float)(1.0 / sum);
    for (size_t i = 0; i < n; i++)
        s[i] *= inverse;
    if (n < n_total)
        memset(s + n, 0, (n_total - n) * sizeof *s);
    return (float)((double)max + log(sum));
}

static void softmax_again(float *s, size_t n, size_t n_total, float scale, float lse)
{
    for (size_t i = 0; i < n; i++)
        s[i] = share_f32(s[i] * scale - lse);
    if (n < n_total)
        memset(s + n, 0, (n_total - n) * sizeof *s);
}

static void softmax_backward(float *restrict dp, const float *restrict p, size_t n, float inner, float scale)
{
    for (size_t i = 0; i < n; i++)
        dp[i] = p[i] * (dp[i] - inner) * scale;
}

static float dot(const float *restrict x, const float *restrict y, size_t n)
{
    double sum;
    LANE_SUM(sum, n, x[i] * y[i]);
    return (float)sum;
}

static void rotate(float *restrict x, const float *restrict table, size_t d, float sign)
{
    size_t half = d / 2;
    for (size_t i = 0; i < half; i++) {
        float a = x[i], b = x[i + half], cosine = table[i], sine = sign * table[i + half];
        x[i] = a * cosine - b * sine;
        x[i + half] = b * cosine + a * sine;
    }
}

/* ---- MLP ---- */

/* GELU by tanh: x/2 * (1 + tanh(u)) = x * sigmoid(2u), u = sqrt(2/pi) * (x + 0.044715 x^3): no cancellation near 0. */
static inline float gelu_sigmoid(float x)
{
    float u2 = 1.59576912f * (x + 0.044715f * (x * x * x));
    return 1.0f / (1.0f + exp_f32(-u2));
}

static void gelu(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * gelu_sigmoid(x[i]);
}

/* d/dx x s(2u) = s + x s (1 - s) * 2u', 2u' = 2 sqrt(2/pi) * (1 + 3 * 0.044715 x^2). */
static void gelu_backward(float *restrict x, const float *restrict dy, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float s = gelu_sigmoid(x[i]);
        float slope = 1.59576912f * (1.0f + 0.134145f * (x[i] * x[i]));
        x[i] = dy[i] * (s + x[i] * (s * (1.0f - s)) * slope);
    }
}

static void swiglu(float *restrict y, const float *restrict gate, const float *restrict up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = gate[i] / (1.0f + exp_f32(-gate[i])) * up[i];
}

static void swiglu_backward(float *restrict gate, float *restrict up, const float *restrict dy, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float g = gate[i], s = 1.0f / (1.0f + exp_f32(-g));
        float d_gate = dy[i] * up[i] * (s + g * (s * (1.0f - s)));
        up[i] = dy[i] * (g * s);
        gate[i] = d_gate;
    }
}

/* ---- loss ---- */

static double log_sum_exp(const float *z, size_t n)
{
    float max = largest(z, n);
    double sum;
    LANE_SUM(sum, n, exp_f32(z[i] - max));
    return (double)max + log(sum);
}

static void cross_entropy_backward(float *z, size_t n, double lse, float scale)
{
    /* The float32 rounding of lse would cost up to 1e-6 of every probability at lse ~ 10: split it. */
    float high = (float)lse, low = (float)(lse - (double)high);
    for (size_t i = 0; i < n; i++)
        z[i] = share_f32((z[i] - high) - low) * scale;
}

static void add(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void sum_columns(double *restrict sum, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += (double)x[i];
}

#define MODEL_LOOPS_TABLE(isa)                                                                                         \
    {                                                                                                                  \
        .name = isa, .rms_norm = rms_norm, .layer_norm = layer_norm, .rms_norm_backward = rms_norm_backward,           \
        .layer_norm_backward = layer_norm_backward, .norm_weights_backward = norm_weights_backward,                    \
        .softmax = softmax, .softmax_again = softmax_again, .softmax_backward = softmax_backward, .dot = dot,          \
        .rotate = rotate, .gelu = gelu, .gelu_backward = gelu_backward, .swiglu = swiglu,                              \
        .swiglu_backward = swiglu_backward, .log_sum_exp = log_sum_exp,                                                \
        .cross_entropy_backward = cross_entropy_backward, .add = add, .sum_columns = sum_columns                       \
    }
