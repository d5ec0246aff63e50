/* SPDX-License-Identifier: MIT */
#include "reference.h"

#include <math.h>
#include <stdlib.h>

#include "model/attention.h"

void ref_linear_forward(const void *shape, double *const *in, double *out)
{
    const ref_linear *s = shape;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t o = 0; o < s->out; o++) {
            double sum = in[2][o] + in[3][r * s->out + o];
            for (size_t i = 0; i < s->in; i++)
                sum += in[0][r * s->in + i] * in[1][s->conv1d ? i * s->out + o : o * s->in + i];
            out[r * s->out + o] = sum;
        }
}

static void norm_row(const ref_norm *s, const double *x, double *const *in, double *y)
{
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; s->layer_norm && i < s->n; i++)
        mean += x[i] / (double)s->n;
    for (size_t i = 0; i < s->n; i++)
        squares += (x[i] - mean) * (x[i] - mean) / (double)s->n;
    for (size_t i = 0; i < s->n; i++)
        y[i] = (x[i] - mean) / sqrt(squares + s->eps) * in[1][i] + (s->layer_norm ? in[2][i] : 0.0);
}

void ref_norm_forward(const void *shape, double *const *in, double *out)
{
    const ref_norm *s = shape;
    for (size_t r = 0; r < s->rows; r++)
        norm_row(s, in[0] + r * s->n, in, out + r * s->n);
}

/* Llama 3's rule as it is written down: three bands by wavelength. */
static double ref_frequency(const lst_arch *a, size_t i)
{
    double f = 1.0 / pow(a->rope_theta, (double)(2 * i) / (double)a->head_dim), wave = 2.0 * acos(-1.0) / f;
    double old = (double)a->rope_scaling.original_positions;
    if (!a->rope_scaling.llama3 || wave < old / a->rope_scaling.high_freq_factor)
        return f;
    if (wave > old / a->rope_scaling.low_freq_factor)
        return f / a->rope_scaling.factor;
    double s = (old / wave - a->rope_scaling.low_freq_factor) /
               (a->rope_scaling.high_freq_factor - a->rope_scaling.low_freq_factor);
    return (1.0 - s) * f / a->rope_scaling.factor + s * f;
}

void ref_rope_forward(const void *shape, double *const *in, double *out)
{
    const ref_rope *s = shape;
    size_t d = s->arch->head_dim, half = d / 2;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t h = 0; h < s->heads; h++)
            for (size_t i = 0; i < half; i++) {
                size_t at = (r * s->heads + h) * d + i;
                double angle = (double)(r % s->seq) * ref_frequency(s->arch, i);
                out[at] = in[0][at] * cos(angle) - in[0][at + half] * sin(angle);
                out[at + half] = in[0][at + half] * cos(angle) + in[0][at] * sin(angle);
            }
}

static double score(const model_attention *s, const double *q, const double *k)
{
    double sum = 0.0;
    for (size_t i = 0; i < s->head_dim; i++)
        sum += q[i] * k[i];
    return exp(sum / sqrt((double)s->head_dim));
}

void ref_attention_forward(const void *shape, double *const *in, double *out)
{
    const model_attention *s = shape;
    size_t d = s->head_dim, stride = (s->heads + 2 * s->kv_heads) * d;
    for (size_t b = 0; b < s->batch; b++)
        for (size_t h = 0; h < s->heads; h++)
            for (size_t t = 0; t < s->seq; t++) {
                const double *rows = in[0] + b * s->seq * stride, *q = rows + t * stride + h * d;
                const double *k = rows + (s->heads + h / (s->heads / s->kv_heads)) * d, *v = k + s->kv_heads * d;
                double *o = out + ((b * s->seq + t) * s->heads + h) * d, total = 0.0;
                for (size_t u = 0; u <= t; u++)
                    total += score(s, q, k + u * stride);
                for (size_t i = 0; i < d; i++) {
                    o[i] = 0.0;
                    for (size_t u = 0; u <= t; u++)
                        o[i] += score(s, q, k + u * stride) / total * v[u * stride + i];
                }
            }
}

void ref_gelu_forward(const void *shape, double *const *in, double *out)
{
    for (size_t i = 0; i < *(const size_t *)shape; i++) {
        double x = in[0][i];
        out[i] = 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    }
}

void ref_swiglu_forward(const void *shape, double *const *in, double *out)
{
    for (size_t i = 0; i < *(const size_t *)shape; i++)
        out[i] = in[0][i] / (1.0 + exp(-in[0][i])) * in[1][i];
}

void ref_embed_forward(const void *shape, double *const *in, double *out)
{
    const ref_embed *s = shape;
    for (size_t r = 0; r < s->rows; r++)
        for (size_t i = 0; i < s->hidden; i++)
            out[r * s->hidden + i] = in[0][(size_t)s->ids[r] * s->hidden + i] + in[1][r % s->seq * s->hidden + i];
}

void ref_loss_forward(const void *shape, double *const *in, double *out)
{
    const ref_loss *s = shape;
    ref_norm norm = {.rows = 1, .n = s->hidden, .eps = s->eps, .layer_norm = s->layer_norm};
    double *y = calloc(s->hidden, sizeof *y);
    out[0] = 0.0;
    for (size_t r = 0; r < s->rows; r++) {
        double total = 0.0, target = 0.0;
        norm_row(&norm, in[0] + r * s->hidden, in, y);
        for (size_t v = 0; v < s->vocab; v++) {
            double z = 0.0;
            for (size_t i = 0; i < s->hidden; i++)
                z += y[i] * in[3][v * s->hidden + i];
            total += exp(z);
            target = (int32_t)v == s->targets[r] ? z : target;
        }
        if (s->targets[r] != s->ignore)
            out[0] += log(total) - target;
    }
    free(y);
}
