/* SPDX-License-Identifier: MIT */
#include "model/block.h"

#include "model/attention.h"
#include "model/mlp.h"
#include "model/rope.h"

static size_t q_cols(const lst_arch *a)
{
    return a->heads * a->head_dim;
}

static size_t kv_cols(const lst_arch *a)
{
    return a->kv_heads * a->head_dim;
}

static model_rows rows_of(float *data, size_t stride)
{
    return (model_rows){data, stride};
}

static const model_rows no_rows = {NULL, 0};

model_norm model_block_norm(const model_block *block, lst_role weight, lst_role bias)
{
    return (model_norm){.weight = block->weight[weight],
                        .bias = block->arch->layer_norm ? block->weight[bias] : NULL,
                        .codec = block->codec,
                        .n = block->arch->hidden,
                        .eps = block->arch->norm_eps};
}

model_norm model_block_head_norm(const model_block *block, lst_role weight)
{
    return (model_norm){.weight = block->weight[weight],
                        .codec = block->codec,
                        .n = block->arch->head_dim,
                        .eps = block->arch->norm_eps};
}

model_linear model_block_linear(const model_block *block, lst_role weight, lst_role bias, size_t in, size_t out)
{
    return (model_linear){.weight = block->weight[weight],
                          .bias = block->weight[bias],
                          .codec = block->codec,
                          .conv1d = block->arch->conv1d,
                          .in = in,
                          .out = out};
}

size_t model_block_qkv(const model_block *block, model_qkv_part parts[3])
{
    const lst_arch *a = block->arch;
    const size_t q = q_cols(a), kv = kv_cols(a);
    const struct {
        lst_role weight, bias;
        size_t column, out;
    } fused[] = {{LST_ROLE_QKV_W, LST_ROLE_QKV_B, 0, q + 2 * kv}},
      apart[] = {{LST_ROLE_Q_W, LST_ROLE_Q_B, 0, q},
                 {LST_ROLE_K_W, LST_ROLE_K_B, q, kv},
                 {LST_ROLE_V_W, LST_ROLE_V_B, q + kv, kv}},
      *from = a->fused_qkv ? fused : apart;
    size_t n = a->fused_qkv ? 1 : 3;
    for (size_t i = 0; i < n; i++)
        parts[i] =
            (model_qkv_part){.weight = from[i].weight,
                             .bias = from[i].bias,
                             .column = from[i].column,
                             .linear = model_block_linear(block, from[i].weight, from[i].bias, a->hidden, from[i].out)};
    return n;
}

unsigned model_stages_again(lst_act_policy policy)
{
    if (policy == LST_ACT_INPUTS)
        return MODEL_STAGES_ALL & ~(unsigned)MODEL_STAGE_OUTPUT;
    if (policy == LST_ACT_POINTWISE)
        return MODEL_STAGE_NORM1 | MODEL_STAGE_NORM2 | MODEL_STAGE_PRODUCT;
    return 0;
}

/* q and k heads turn alike: one run of columns. */
static model_rope_shape rope_of(const lst_arch *a, size_t rows, size_t seq)
{
    return (model_rope_shape){.rows = rows, .seq = seq, .heads = a->heads + a->kv_heads, .head_dim = a->head_dim};
}

/* ---- forward ---- */

static void qkv_forward(const model_work *work, const model_block *block, model_block_shape shape, float *const *act)
{
    const lst_arch *a = block->arch;
    size_t rows = shape.batch * shape.seq, stride = q_cols(a) + 2 * kv_cols(a);
    model_qkv_part part[3];
    size_t n = model_block_qkv(block, part);
    for (size_t i = 0; i < n; i++)
        model_linear_forward(work, &part[i].linear, rows_of(act[LST__ACT_QKV] + part[i].column, stride),
                             rows_of(act[LST__ACT_NORM1], a->hidden), rows, no_rows);
    model_rows q = rows_of(act[LST__ACT_QKV], stride), k = rows_of(act[LST__ACT_QKV] + q_cols(a), stride);
    if (a->qk_norm) {
        size_t raw_stride = q_cols(a) + kv_cols(a);
        model_norm q_norm = model_block_head_norm(block, LST_ROLE_Q_NORM),
                   k_norm = model_block_head_norm(block, LST_ROLE_K_NORM);
        model_head_norm_forward(work, &q_norm, q, rows_of(act[LST__ACT_QK_RAW], raw_stride), rows, a->heads);
        model_head_norm_forward(work, &k_norm, k, rows_of(act[LST__ACT_QK_RAW] + q_cols(a), raw_stride), rows,
                                a->kv_heads);
    }
    model_rope_shape turning = rope_of(a, rows, shape.seq);
    if (block->rotation)
        model_rope(work, block->rotation, q, &turning, 1.0f);
}

static model_attention attention_of(const lst_arch *a, model_block_shape shape)
{
    return (model_attention){
        .batch = shape.batch, .seq = shape.seq, .heads = a->heads, .kv_heads = a->kv_heads, .head_dim = a->head_dim};
}

static void attention_stage(const model_work *work, const model_block *block, model_block_shape shape,
                            float *const *act)
{
    const lst_arch *a = block->arch;
    size_t rows = shape.batch * shape.seq;
    qkv_forward(work, block, shape, act);
    model_attention attention = attention_of(a, shape);
    model_attention_forward(work, &attention, act[LST__ACT_ATTENTION], act[LST__ACT_LSE], act[LST__ACT_QKV]);
    model_linear o = model_block_linear(block, LST_ROLE_O_W, LST_ROLE_O_B, q_cols(a), a->hidden);
    model_linear_forward(work, &o, rows_of(act[LST__ACT_MIDDLE], a->hidden),
                         rows_of(act[LST__ACT_ATTENTION], q_cols(a)), rows, rows_of(act[LST__ACT_INPUT], a->hidden));
}

static void norm_stage(const model_work *work, const model_norm *norm, size_t rows, float *y, float *stat, float *x)
{
    model_norm_forward(work, norm, rows_of(y, norm->n), stat, rows_of(x, norm->n), (model_norm_rows){rows, NULL});
}

static void mlp_stage(const model_work *work, const model_block *block, size_t rows, float *const *act)
{
    const lst_arch *a = block->arch;
    model_rows x = rows_of(act[LST__ACT_NORM2], a->hidden);
    model_linear up = model_block_linear(block, LST_ROLE_UP_W, LST_ROLE_UP_B, a->hidden, a->ffn);
    model_linear_forward(work, &up, rows_of(act[LST__ACT_UP], a->ffn), x, rows, no_rows);
    if (a->gelu_mlp)
        return;
    model_linear gate = model_block_linear(block, LST_ROLE_GATE_W, LST_ROLE_GATE_B, a->hidden, a->ffn);
    model_linear_forward(work, &gate, rows_of(act[LST__ACT_GATE], a->ffn), x, rows, no_rows);
}

void model_block_forward(const model_work *work, const model_block *block, model_block_shape shape, float *const *act,
                         float *output, unsigned stages)
{
    const lst_arch *a = block->arch;
    size_t rows = shape.batch * shape.seq;
    model_norm norm1 = model_block_norm(block, LST_ROLE_NORM1_W, LST_ROLE_NORM1_B);
    model_norm norm2 = model_block_norm(block, LST_ROLE_NORM2_W, LST_ROLE_NORM2_B);
    if (stages & MODEL_STAGE_NORM1)
        norm_stage(work, &norm1, rows, act[LST__ACT_NORM1], act[LST__ACT_STAT1], act[LST__ACT_INPUT]);
    if (stages & MODEL_STAGE_ATTENTION)
        attention_stage(work, block, shape, act);
    if (stages & MODEL_STAGE_NORM2)
        norm_stage(work, &norm2, rows, act[LST__ACT_NORM2], act[LST__ACT_STAT2], act[LST__ACT_MIDDLE]);
    if (stages & MODEL_STAGE_MLP)
        mlp_stage(work, block, rows, act);
    if (stages & MODEL_STAGE_PRODUCT)
        model_mlp_forward(work, act[LST__ACT_PRODUCT], a->gelu_mlp ? NULL : act[LST__ACT_GATE], act[LST__ACT_UP],
                          rows * a->ffn);
    if (stages & MODEL_STAGE_OUTPUT) {
        model_linear down = model_block_linear(block, LST_ROLE_DOWN_W, LST_ROLE_DOWN_B, a->ffn, a->hidden);
        model_linear_forward(work, &down, rows_of(output, a->hidden), rows_of(act[LST__ACT_PRODUCT], a->ffn), rows,
                             rows_of(act[LST__ACT_MIDDLE], a->hidden));
    }
}

/* ---- backward ---- */

typedef struct backward {
    const model_work *work;
    const model_block *block;
    const lst_arch *arch;
    model_block_shape shape;
    size_t rows;
    float *const *act;
    const model_block_grads *grads;
} backward;

/* Input's gradient into dx (+= with add_dx), then the weights'. */
static void linear_backward(const backward *b, const model_linear *linear, lst_role weight, lst_role bias,
                            model_rows dx, bool add_dx, model_rows dy, model_rows x)
{
    model_linear_backward_input(b->work, linear, dx, dy, b->rows, add_dx);
    model_linear_backward_weight(b->work, linear, b->grads->weight[weight],
                                 linear->bias ? b->grads->weight[bias] : NULL, dy, x, b->rows, b->grads->add);
}

static void norm_backward(const backward *b, lst_role weight, lst_role bias, float *stat, float *x)
{
    size_t hidden = b->arch->hidden;
    model_norm norm = model_block_norm(b->block, weight, bias);
    model_norm_grads grads = {.dx = rows_of(b->grads->dx, hidden),
                              .dw = b->grads->weight[weight],
                              .db = norm.bias ? b->grads->weight[bias] : NULL,
                              .add = b->grads->add};
    model_norm_backward(b->work, &norm, &grads, rows_of(b->grads->norm, hidden), rows_of(x, hidden), stat,
                        (model_norm_rows){b->rows, NULL});
}

static void mlp_backward(const backward *b)
{
    const lst_arch *a = b->arch;
    model_rows dx = rows_of(b->grads->dx, a->hidden), d_norm = rows_of(b->grads->norm, a->hidden);
    model_rows x = rows_of(b->act[LST__ACT_NORM2], a->hidden), wide = rows_of(b->grads->wide, a->ffn);
    model_rows gate = rows_of(b->act[LST__ACT_GATE], a->ffn), up = rows_of(b->act[LST__ACT_UP], a->ffn);
    model_linear down = model_block_linear(b->block, LST_ROLE_DOWN_W, LST_ROLE_DOWN_B, a->ffn, a->hidden);
    linear_backward(b, &down, LST_ROLE_DOWN_W, LST_ROLE_DOWN_B, wide, false, dx,
                    rows_of(b->act[LST__ACT_PRODUCT], a->ffn));
    model_mlp_backward(b->work, a->gelu_mlp ? NULL : gate.data, up.data, wide.data, b->rows * a->ffn);
    model_linear up_linear = model_block_linear(b->block, LST_ROLE_UP_W, LST_ROLE_UP_B, a->hidden, a->ffn);
    linear_backward(b, &up_linear, LST_ROLE_UP_W, LST_ROLE_UP_B, d_norm, false, up, x);
    if (!a->gelu_mlp) {
        model_linear gate_linear = model_block_linear(b->block, LST_ROLE_GATE_W, LST_ROLE_GATE_B, a->hidden, a->ffn);
        linear_backward(b, &gate_linear, LST_ROLE_GATE_W, LST_ROLE_GATE_B, d_norm, true, gate, x);
    }
    norm_backward(b, LST_ROLE_NORM2_W, LST_ROLE_NORM2_B, b->act[LST__ACT_STAT2], b->act[LST__ACT_MIDDLE]);
}

/* From the gradient of rotated (and normed) q and k to that of the linear layers' output. */
static void qk_backward(const backward *b, model_rows d_qkv)
{
    const lst_arch *a = b->arch;
    model_rows dk = rows_of(d_qkv.data + q_cols(a), d_qkv.stride);
    model_rope_shape turning = rope_of(a, b->rows, b->shape.seq);
    if (b->block->rotation)
        model_rope(b->work, b->block->rotation, d_qkv, &turning, -1.0f);
    if (!a->qk_norm)
        return;
    model_rows raw = rows_of(b->act[LST__ACT_QK_RAW], q_cols(a) + kv_cols(a));
    model_norm q_norm = model_block_head_norm(b->block, LST_ROLE_Q_NORM),
               k_norm = model_block_head_norm(b->block, LST_ROLE_K_NORM);
    model_head_norm_backward(b->work, &q_norm, d_qkv, raw, b->grads->weight[LST_ROLE_Q_NORM], b->rows, a->heads,
                             b->grads->add);
    raw.data += q_cols(a);
    model_head_norm_backward(b->work, &k_norm, dk, raw, b->grads->weight[LST_ROLE_K_NORM], b->rows, a->kv_heads,
                             b->grads->add);
}

static void attention_backward(const backward *b)
{
    const lst_arch *a = b->arch;
    model_rows d_out = rows_of(b->grads->wide, q_cols(a)), dx = rows_of(b->grads->dx, a->hidden);
    model_rows d_qkv = rows_of(b->grads->wide + b->rows * q_cols(a), q_cols(a) + 2 * kv_cols(a));
    model_linear o = model_block_linear(b->block, LST_ROLE_O_W, LST_ROLE_O_B, q_cols(a), a->hidden);
    linear_backward(b, &o, LST_ROLE_O_W, LST_ROLE_O_B, d_out, false, dx,
                    rows_of(b->act[LST__ACT_ATTENTION], q_cols(a)));
    model_attention attention = attention_of(a, b->shape);
    model_attention_backward(b->work, &attention, d_qkv.data, d_out.data, b->act[LST__ACT_ATTENTION],
                             b->act[LST__ACT_LSE], b->act[LST__ACT_QKV]);
    qk_backward(b, d_qkv);
    model_qkv_part part[3];
    size_t n = model_block_qkv(b->block, part);
    for (size_t i = 0; i < n; i++)
        linear_backward(b, &part[i].linear, part[i].weight, part[i].bias, rows_of(b->grads->norm, a->hidden), i > 0,
                        rows_of(d_qkv.data + part[i].column, d_qkv.stride), rows_of(b->act[LST__ACT_NORM1], a->hidden));
    norm_backward(b, LST_ROLE_NORM1_W, LST_ROLE_NORM1_B, b->act[LST__ACT_STAT1], b->act[LST__ACT_INPUT]);
}

void model_block_backward(const model_work *work, const model_block *block, model_block_shape shape, float *const *act,
                          const model_block_grads *grads)
{
    backward b = {.work = work,
                  .block = block,
                  .arch = block->arch,
                  .shape = shape,
                  .rows = shape.batch * shape.seq,
                  .act = act,
                  .grads = grads};
    mlp_backward(&b);
    attention_backward(&b);
}
