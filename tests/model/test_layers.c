/* SPDX-License-Identifier: MIT
 *
 * Each layer's forward against the formula in double, and its backward against finite differences of that formula, also
 * in double: for y = layer(x) and random weights r, the derivative of sum(r * y) by every input and every parameter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "model/attention.h"
#include "model/embed.h"
#include "model/loss.h"
#include "model/mlp.h"
#include "model/model.h"
#include "model/norm.h"
#include "model/rope.h"
#include "numeric/bf16.h"
#include "plan/activations.h"
#include "reference.h"

#define MAX_INPUTS 4

/* A layer in double: inputs (x and parameters) to output. `shape` is the layer's own. */
typedef struct probe {
    const char *what;
    const void *shape;
    void (*forward)(const void *shape, double *const *in, double *out);
    size_t n_inputs, size[MAX_INPUTS], out_size;
    double *in[MAX_INPUTS];
    float *in_f32[MAX_INPUTS], *grad[MAX_INPUTS]; /* what the layer under test computed */
    float *out_f32, *r;
} probe;

static lst_pool *pool;
static float scratch[4 * 65536];
static model_work work;

static int set_up(void **state)
{
    lst_error err;
    (void)state;
    if (lst_pool_create(&pool, 2, &err) != LST_OK)
        return 1;
    work = (model_work){.pool = pool, .loops = model_loops_get(), .scratch = scratch, .scratch_elems = 2 * 65536};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lst_pool_destroy(pool);
    return 0;
}

static void open_probe(probe *p)
{
    for (size_t k = 0; k < p->n_inputs; k++) {
        p->in[k] = calloc(p->size[k], sizeof(double));
        p->in_f32[k] = calloc(p->size[k], sizeof(float));
        p->grad[k] = calloc(p->size[k], sizeof(float));
        for (size_t i = 0; i < p->size[k]; i++) {
            p->in_f32[k][i] = (float)(lst__random_normal(11, k, i) * (k ? 0.4 : 1.0) + (k ? 0.2 : 0.0));
            p->in[k][i] = (double)p->in_f32[k][i];
        }
    }
    p->out_f32 = calloc(p->out_size, sizeof(float));
    p->r = calloc(p->out_size, sizeof(float));
    for (size_t i = 0; i < p->out_size; i++)
        p->r[i] = (float)lst__random_normal(11, 99, i);
}

static void close_probe(probe *p)
{
    for (size_t k = 0; k < p->n_inputs; k++) {
        free(p->in[k]);
        free(p->in_f32[k]);
        free(p->grad[k]);
    }
    free(p->out_f32);
    free(p->r);
}

static double weighted(const probe *p, double *out)
{
    double sum = 0.0;
    p->forward(p->shape, p->in, out);
    for (size_t i = 0; i < p->out_size; i++)
        sum += (double)p->r[i] * out[i];
    return sum;
}

static void check_forward(const probe *p, double *out)
{
    double worst = 0.0, largest = 0.0;
    p->forward(p->shape, p->in, out);
    for (size_t i = 0; i < p->out_size; i++) {
        double d = fabs(out[i] - (double)p->out_f32[i]);
        worst = d > worst || isnan(d) ? d : worst;
        largest = fmax(largest, fabs(out[i]));
    }
    if (!(worst <= 2e-6 * largest))
        fail_msg("%s: forward differs by %g of %g", p->what, worst, largest);
}

static void check_input(probe *p, size_t k, double *out)
{
    double worst = 0.0, largest = 0.0;
    for (size_t i = 0; i < p->size[k]; i++) {
        double x = p->in[k][i], h = 1e-5;
        p->in[k][i] = x + h;
        double up = weighted(p, out);
        p->in[k][i] = x - h;
        double rate = (up - weighted(p, out)) / (2.0 * h);
        p->in[k][i] = x;
        double d = fabs(rate - (double)p->grad[k][i]);
        worst = d > worst || isnan(d) ? d : worst;
        largest = fmax(largest, fabs(rate));
    }
    if (!(worst <= 4e-6 * largest))
        fail_msg("%s: gradient of input %zu differs by %g of %g", p->what, k, worst, largest);
}

/* Compares, then closes. */
static void check_probe(probe *p)
{
    double *out = calloc(p->out_size, sizeof *out);
    check_forward(p, out);
    for (size_t k = 0; k < p->n_inputs; k++)
        check_input(p, k, out);
    free(out);
    close_probe(p);
}

/* ---- linear ---- */

static void check_linear(int conv1d)
{
    ref_linear shape = {.rows = 5, .in = 7, .out = 9, .conv1d = conv1d};
    probe p = {.what = conv1d ? "Conv1D" : "linear",
               .shape = &shape,
               .forward = ref_linear_forward,
               .n_inputs = 4,
               .size = {35, 63, 9, 45},
               .out_size = 45};
    open_probe(&p);
    model_linear l = {
        .weight = p.in_f32[1], .bias = p.in_f32[2], .codec = LST_CODEC_F32, .conv1d = conv1d, .in = 7, .out = 9};
    model_rows x = {p.in_f32[0], 7}, y = {p.out_f32, 9}, dy = {p.r, 9}, dx = {p.grad[0], 7};
    model_linear_forward(&work, &l, y, x, 5, (model_rows){p.in_f32[3], 9});
    model_linear_backward_input(&work, &l, dx, dy, 5, false);
    model_linear_backward_weight(&work, &l, p.grad[1], p.grad[2], dy, x, 5, false);
    memcpy(p.grad[3], p.r, 45 * sizeof(float)); /* the residual's gradient is dy itself */
    check_probe(&p);
}

static void linear(void **state)
{
    (void)state;
    check_linear(0);
    check_linear(1);
}

static void put(void *weights, lst_codec codec, size_t i, float x)
{
    uint16_t half = lst__bf16_from_f32(x);
    size_t size = lst_codec_bytes(codec, 1);
    memcpy((unsigned char *)weights + i * size, codec == LST_CODEC_F32 ? (void *)&x : (void *)&half, size);
}

/* The long sum in parts, for weights of each codec, against the plain one. */
static void check_deep(lst_codec codec, size_t out)
{
    enum { ROWS = 5, IN = 1030, MOST = 600 };
    static double weight[MOST * IN / 2];
    static float dy[ROWS * MOST], want[ROWS * IN], got[ROWS * IN], parts[LST__HEAD_PARTS * ROWS * IN];
    static float panels[2 * LST__PANEL_ELEMS];
    model_work wide = work;
    wide.scratch = panels;
    wide.scratch_elems = LST__PANEL_ELEMS;
    for (size_t i = 0; i < out * IN; i++)
        put(weight, codec, i, (float)lst__random_normal(1, 0, i));
    for (size_t i = 0; i < ROWS * out; i++)
        dy[i] = (float)lst__random_normal(1, 1, i);
    model_linear l = {.weight = weight, .codec = codec, .in = IN, .out = out};
    model_linear_backward_input(&wide, &l, (model_rows){want, IN}, (model_rows){dy, out}, ROWS, false);
    model_linear_backward_input_deep(&wide, &l, (model_rows){got, IN}, (model_rows){dy, out}, ROWS, parts);
    for (size_t i = 0; i < ROWS * IN; i++)
        assert_true(fabsf(got[i] - want[i]) <= 2e-5f * sqrtf((float)out));
}

static void long_sums_in_parts(void **state)
{
    (void)state;
    for (size_t out = 1; out <= 600; out = out * 3 + 2) {
        check_deep(LST_CODEC_F32, out);
        check_deep(LST_CODEC_BF16, out);
    }
    check_deep(LST_CODEC_F32, 600);
    check_deep(LST_CODEC_BF16, 600);
}

/* ---- norms ---- */

static void check_norm(int layer_norm, size_t n)
{
    ref_norm shape = {.rows = 4, .n = n, .eps = 1e-3, .layer_norm = layer_norm};
    probe p = {.what = layer_norm ? "LayerNorm" : "RMSNorm",
               .shape = &shape,
               .forward = ref_norm_forward,
               .n_inputs = layer_norm ? 3 : 2,
               .size = {4 * n, n, n},
               .out_size = 4 * n};
    float stat[8];
    open_probe(&p);
    model_norm norm = {
        .weight = p.in_f32[1], .bias = layer_norm ? p.in_f32[2] : NULL, .codec = LST_CODEC_F32, .n = n, .eps = 1e-3};
    model_rows x = {p.in_f32[0], n};
    model_norm_forward(&work, &norm, (model_rows){p.out_f32, n}, stat, x, (model_norm_rows){4, NULL});
    model_norm_grads g = {.dx = {p.grad[0], n}, .dw = p.grad[1], .db = layer_norm ? p.grad[2] : NULL};
    model_norm_backward(&work, &norm, &g, (model_rows){p.r, n}, x, stat, (model_norm_rows){4, NULL});
    check_probe(&p);
}

static void norms(void **state)
{
    (void)state;
    for (size_t n = 3; n < 200; n = n * 3 + 1) {
        check_norm(0, n);
        check_norm(1, n);
    }
}

static void head_norm(void **state)
{
    (void)state;
    ref_norm shape = {.rows = 5 * 3, .n = 6, .eps = 1e-3};
    probe p = {.what = "norm of heads",
               .shape = &shape,
               .forward = ref_norm_forward,
               .n_inputs = 2,
               .size = {90, 6},
               .out_size = 90};
    float raw[90], dx[90];
    open_probe(&p);
    model_norm norm = {.weight = p.in_f32[1], .codec = LST_CODEC_F32, .n = 6, .eps = 1e-3};
    memcpy(p.out_f32, p.in_f32[0], sizeof raw);
    model_head_norm_forward(&work, &norm, (model_rows){p.out_f32, 18}, (model_rows){raw, 18}, 5, 3);
    memcpy(dx, p.r, sizeof dx);
    model_head_norm_backward(&work, &norm, (model_rows){dx, 18}, (model_rows){raw, 18}, p.grad[1], 5, 3, false);
    memcpy(p.grad[0], dx, sizeof dx);
    check_probe(&p);
}

/* ---- rotation ---- */

static void check_rope(int llama3)
{
    lst_arch arch;
    lst_arch_default(LST_FAMILY_LLAMA, &arch);
    arch.head_dim = 8;
    arch.rope_theta = 1000.0;
    arch.rope_scaling.llama3 = llama3 != 0;
    arch.rope_scaling.factor = 8.0;
    arch.rope_scaling.low_freq_factor = 1.0;
    arch.rope_scaling.high_freq_factor = 4.0;
    arch.rope_scaling.original_positions = 32;
    ref_rope shape = {.arch = &arch, .rows = 10, .seq = 5, .heads = 2};
    probe p = {.what = "rotation",
               .shape = &shape,
               .forward = ref_rope_forward,
               .n_inputs = 1,
               .size = {160},
               .out_size = 160};
    float table[40];
    open_probe(&p);
    model_rope_table(&arch, table, 5);
    memcpy(p.out_f32, p.in_f32[0], 160 * sizeof(float));
    const model_rope_shape turning = {.rows = 10, .seq = 5, .heads = 2, .head_dim = 8};
    model_rope(&work, table, (model_rows){p.out_f32, 16}, &turning, 1.0f);
    memcpy(p.grad[0], p.r, 160 * sizeof(float));
    model_rope(&work, table, (model_rows){p.grad[0], 16}, &turning, -1.0f);
    check_probe(&p);
}

static void rotation(void **state)
{
    (void)state;
    check_rope(0);
    check_rope(1);
}

/* ---- attention ---- */

static void check_attention(size_t batch, size_t seq, size_t heads, size_t kv_heads)
{
    model_attention shape = {.batch = batch, .seq = seq, .heads = heads, .kv_heads = kv_heads, .head_dim = 4};
    size_t rows = batch * seq, cols = (heads + 2 * kv_heads) * 4;
    probe p = {.what = "attention",
               .shape = &shape,
               .forward = ref_attention_forward,
               .n_inputs = 1,
               .size = {rows * cols},
               .out_size = rows * heads * 4};
    float *lse = calloc(rows * heads, sizeof *lse);
    open_probe(&p);
    model_attention_forward(&work, &shape, p.out_f32, lse, p.in_f32[0]);
    model_attention_backward(&work, &shape, p.grad[0], p.r, p.out_f32, lse, p.in_f32[0]);
    check_probe(&p);
    free(lse);
}

static void attention(void **state)
{
    (void)state;
    check_attention(2, 7, 4, 4);
    check_attention(2, 5, 6, 2);
    check_attention(1, 9, 4, 1);
    check_attention(1, 1, 2, 1);
    check_attention(1, 67, 2, 1); /* two blocks of query rows */
}

/* ---- MLP ---- */

static void gelu(void **state)
{
    (void)state;
    size_t n = 77;
    probe p = {.what = "GELU", .shape = &n, .forward = ref_gelu_forward, .n_inputs = 1, .size = {n}, .out_size = n};
    open_probe(&p);
    for (size_t i = 0; i < n; i++)
        p.in[0][i] = (double)(p.in_f32[0][i] = (float)((double)i - 38.0) * 0.25f);
    model_mlp_forward(&work, p.out_f32, NULL, p.in_f32[0], n);
    memcpy(p.grad[0], p.in_f32[0], n * sizeof(float));
    model_mlp_backward(&work, NULL, p.grad[0], p.r, n);
    check_probe(&p);
}

static void swiglu(void **state)
{
    (void)state;
    size_t n = 20001; /* two tasks */
    probe p = {
        .what = "SwiGLU", .shape = &n, .forward = ref_swiglu_forward, .n_inputs = 2, .size = {n, n}, .out_size = n};
    open_probe(&p);
    model_mlp_forward(&work, p.out_f32, p.in_f32[0], p.in_f32[1], n);
    memcpy(p.grad[0], p.in_f32[0], n * sizeof(float));
    memcpy(p.grad[1], p.in_f32[1], n * sizeof(float));
    model_mlp_backward(&work, p.grad[0], p.grad[1], p.r, n);
    /* Elementwise: all at once would cost n^2; the derivative of every 97th element says as much. */
    for (size_t i = 0; i < n; i += 97)
        for (size_t k = 0; k < 2; k++) {
            double *x = &p.in[k][i], at = *x, h = 1e-5, up, down, in2[2], *const one[2] = {&in2[0], &in2[1]};
            size_t single = 1;
            *x = at + h;
            in2[0] = p.in[0][i];
            in2[1] = p.in[1][i];
            ref_swiglu_forward(&single, one, &up);
            *x = at - h;
            in2[k] = *x;
            ref_swiglu_forward(&single, one, &down);
            *x = at;
            double rate = (double)p.r[i] * (up - down) / (2.0 * h);
            assert_true(fabs(rate - (double)p.grad[k][i]) <= 4e-6 * fmax(1.0, fabs(rate)));
        }
    close_probe(&p);
}

/* ---- embedding ---- */

static const int32_t embed_ids[] = {3, 1, 3, 0, 3, 2, 1, 3};

static void embedding(void **state)
{
    (void)state;
    ref_embed shape = {.ids = embed_ids, .rows = 8, .seq = 4, .hidden = 5};
    probe p = {.what = "embedding",
               .shape = &shape,
               .forward = ref_embed_forward,
               .n_inputs = 2,
               .size = {20, 30},
               .out_size = 40};
    open_probe(&p);
    model_embedding e = {
        .tokens = p.in_f32[0], .positions = p.in_f32[1], .codec = LST_CODEC_F32, .vocab = 4, .hidden = 5};
    model_embed_forward(&work, &e, p.out_f32, embed_ids, 8, 4, 0);
    model_embed_backward(&work, &e, p.grad[0], p.grad[1], p.r, embed_ids, 8, 4);
    check_probe(&p);
}

/* ---- loss ---- */

static const int32_t loss_targets[] = {2, MODEL_IGNORE, 0, 6, MODEL_IGNORE, 3, 1, MODEL_IGNORE, 5};

static void check_loss(size_t chunk, int layer_norm)
{
    enum { ROWS = 9, HIDDEN = 6, VOCAB = 7 };
    ref_loss shape = {.rows = ROWS,
                      .hidden = HIDDEN,
                      .vocab = VOCAB,
                      .eps = 1e-3,
                      .layer_norm = layer_norm,
                      .targets = loss_targets,
                      .ignore = MODEL_IGNORE};
    probe p = {.what = "loss",
               .shape = &shape,
               .forward = ref_loss_forward,
               .n_inputs = 4,
               .size = {ROWS * HIDDEN, HIDDEN, HIDDEN, VOCAB * HIDDEN},
               .out_size = 1};
    float logits[ROWS * VOCAB], in[ROWS * HIDDEN], in_grad[ROWS * HIDDEN], stat[ROWS * 2];
    int32_t rows[ROWS];
    double row_loss[ROWS];
    open_probe(&p);
    model_loss loss = {.work = &work,
                       .norm = {.weight = p.in_f32[1],
                                .bias = layer_norm ? p.in_f32[2] : NULL,
                                .codec = LST_CODEC_F32,
                                .n = HIDDEN,
                                .eps = 1e-3},
                       .head = {.weight = p.in_f32[3], .codec = LST_CODEC_F32, .in = HIDDEN, .out = VOCAB},
                       .chunk = chunk,
                       .logits = logits,
                       .in = in,
                       .in_grad = in_grad,
                       .stat = stat,
                       .rows = rows,
                       .row_loss = row_loss};
    model_loss_grads g = {
        .scale = p.r[0], .d_norm = p.grad[1], .d_norm_bias = layer_norm ? p.grad[2] : NULL, .d_head = p.grad[3]};
    p.out_f32[0] = (float)model_loss_run(&loss, p.in_f32[0], loss_targets, ROWS, p.grad[0], &g);
    check_probe(&p);
}

static void loss_in_chunks(void **state)
{
    (void)state;
    for (size_t chunk = 1; chunk <= 9; chunk += 2) {
        check_loss(chunk, 0);
        check_loss(chunk, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear),         cmocka_unit_test(norms),
        cmocka_unit_test(head_norm),      cmocka_unit_test(rotation),
        cmocka_unit_test(attention),      cmocka_unit_test(gelu),
        cmocka_unit_test(swiglu),         cmocka_unit_test(embedding),
        cmocka_unit_test(loss_in_chunks), cmocka_unit_test(long_sums_in_parts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
