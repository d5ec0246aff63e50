/* SPDX-License-Identifier: MIT */
#include "model/attention.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "plan/activations.h"

typedef struct attention_job {
    const model_work *work;
    const model_attention *shape;
    const float *qkv, *out_in, *d_out, *lse_in;
    float *out, *lse, *d_qkv;
} attention_job;

/* One block of query rows of one head: rows [row, row + n) of the sequence see keys [0, keys). */
typedef struct block {
    size_t row, n, keys;
    size_t q_col, k_col, v_col, out_col; /* columns of this head in qkv and out */
    size_t qkv_stride, out_stride;
    size_t first;  /* row of the whole batch where the sequence begins */
    size_t lse_at; /* index of the block's first row in lse */
    float scale;
} block;

static block block_of(const model_attention *s, size_t sequence, size_t head, size_t row)
{
    size_t d = s->head_dim, kv_head = head / (s->heads / s->kv_heads);
    size_t n = s->seq - row < LST__QUERY_ROWS ? s->seq - row : LST__QUERY_ROWS;
    return (block){.row = row,
                   .n = n,
                   .keys = row + n,
                   .q_col = head * d,
                   .k_col = (s->heads + kv_head) * d,
                   .v_col = (s->heads + s->kv_heads + kv_head) * d,
                   .out_col = head * d,
                   .qkv_stride = (s->heads + 2 * s->kv_heads) * d,
                   .out_stride = s->heads * d,
                   .first = sequence * s->seq,
                   .lse_at = (sequence * s->heads + head) * s->seq + row,
                   .scale = (float)(1.0 / sqrt((double)d))};
}

/* s[n, keys] = a[n rows from a_row] b[keys rows]^T over d columns. */
static void scores(const block *b, float *s, const float *a, size_t a_stride, const float *keys, size_t d)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)b->n, (int)b->keys, (int)d, 1.0f, a, (int)a_stride, keys,
                (int)b->qkv_stride, 0.0f, s, (int)b->keys);
}

/* ---- forward ---- */

static void forward_block(const attention_job *j, const block *b, float *s)
{
    size_t d = j->shape->head_dim;
    const float *q = j->qkv + (b->first + b->row) * b->qkv_stride + b->q_col;
    const float *k = j->qkv + b->first * b->qkv_stride + b->k_col;
    const float *v = j->qkv + b->first * b->qkv_stride + b->v_col;
    scores(b, s, q, b->qkv_stride, k, d);
    for (size_t r = 0; r < b->n; r++)
        j->lse[b->lse_at + r] = j->work->loops->softmax(s + r * b->keys, b->row + r + 1, b->keys, b->scale);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->n, (int)d, (int)b->keys, 1.0f, s, (int)b->keys, v,
                (int)b->qkv_stride, 0.0f, j->out + (b->first + b->row) * b->out_stride + b->out_col,
                (int)b->out_stride);
}

static void forward_task(void *context, size_t index, size_t worker)
{
    const attention_job *j = context;
    const model_attention *shape = j->shape;
    for (size_t row = 0; row < shape->seq; row += LST__QUERY_ROWS) {
        block b = block_of(shape, index / shape->heads, index % shape->heads, row);
        forward_block(j, &b, model_scratch(j->work, worker));
    }
}

void model_attention_forward(const model_work *work, const model_attention *shape, float *out, float *lse,
                             const float *qkv)
{
    attention_job j = {.work = work, .shape = shape, .qkv = qkv, .out = out, .lse = lse};
    lst_pool_run(work->pool, shape->batch * shape->heads, forward_task, &j);
}

/* ---- backward ---- */

/* dK += dS^T Q and dV += P^T dO. */
static void add_keys(const block *b, float *dk, const float *s, const float *rows, size_t stride, size_t d)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)b->keys, (int)d, (int)b->n, 1.0f, s, (int)b->keys, rows,
                (int)stride, 1.0f, dk, (int)b->qkv_stride);
}

static void backward_block(const attention_job *j, const block *b, float *p, float *ds)
{
    size_t d = j->shape->head_dim;
    size_t at = (b->first + b->row) * b->qkv_stride, keys_at = b->first * b->qkv_stride;
    size_t out_at = (b->first + b->row) * b->out_stride + b->out_col;
    const float *q = j->qkv + at + b->q_col, *k = j->qkv + keys_at + b->k_col, *v = j->qkv + keys_at + b->v_col;
    scores(b, p, q, b->qkv_stride, k, d);
    scores(b, ds, j->d_out + out_at, b->out_stride, v, d);
    for (size_t r = 0; r < b->n; r++) {
        const float *out = j->out_in + out_at + r * b->out_stride, *d_out = j->d_out + out_at + r * b->out_stride;
        float inner = j->work->loops->dot(d_out, out, d);
        j->work->loops->softmax_again(p + r * b->keys, b->row + r + 1, b->keys, b->scale, j->lse_in[b->lse_at + r]);
        j->work->loops->softmax_backward(ds + r * b->keys, p + r * b->keys, b->keys, inner, b->scale);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->n, (int)d, (int)b->keys, 1.0f, ds, (int)b->keys, k,
                (int)b->qkv_stride, 0.0f, j->d_qkv + at + b->q_col, (int)b->qkv_stride);
    add_keys(b, j->d_qkv + keys_at + b->v_col, p, j->d_out + out_at, b->out_stride, d);
    add_keys(b, j->d_qkv + keys_at + b->k_col, ds, q, b->qkv_stride, d);
}

/* One key head with all query heads that read it, so that dK and dV are summed in one order. */
static void backward_task(void *context, size_t index, size_t worker)
{
    const attention_job *j = context;
    const model_attention *s = j->shape;
    size_t sequence = index / s->kv_heads, group = s->heads / s->kv_heads, head = index % s->kv_heads * group;
    float *p = model_scratch(j->work, worker), *ds = p + LST__QUERY_ROWS * s->seq;
    block b = block_of(s, sequence, head, 0);
    for (size_t t = 0; t < s->seq; t++) {
        memset(j->d_qkv + (b.first + t) * b.qkv_stride + b.k_col, 0, s->head_dim * sizeof *p);
        memset(j->d_qkv + (b.first + t) * b.qkv_stride + b.v_col, 0, s->head_dim * sizeof *p);
    }
    for (size_t h = head; h < head + group; h++)
        for (size_t row = 0; row < s->seq; row += LST__QUERY_ROWS) {
            b = block_of(s, sequence, h, row);
            backward_block(j, &b, p, ds);
        }
}

void model_attention_backward(const model_work *work, const model_attention *shape, float *d_qkv, const float *d_out,
                              const float *out, const float *lse, const float *qkv)
{
    attention_job j = {
        .work = work, .shape = shape, .qkv = qkv, .out_in = out, .d_out = d_out, .lse_in = lse, .d_qkv = d_qkv};
    lst_pool_run(work->pool, shape->batch * shape->kv_heads, backward_task, &j);
}
