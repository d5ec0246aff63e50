/* SPDX-License-Identifier: MIT
 *
 * Generation with a key/value cache: a few tokens at a time go through all layers, keys and values stay.
 */
#include "model/parts.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/random.h"
#include "model/mlp.h"
#include "model/rope.h"

typedef struct generator {
    model *m;
    const lst_arch *arch;
    float *part[LST__N_GENERATION_PARTS];
    int32_t *context; /* the tokens in the cache */
    size_t n_context;
    size_t q_cols, kv_cols;
} generator;

static generator generator_of(model *m)
{
    generator g = {.m = m, .arch = m->arch};
    size_t begin[LST__N_GENERATION_PARTS];
    lst__generation_elems(m->arch, m->positions, begin);
    for (size_t i = 0; i < LST__N_GENERATION_PARTS; i++)
        g.part[i] = m->scratch[LST__SCRATCH_GENERATION] + begin[i];
    g.context = (int32_t *)(void *)g.part[LST__GENERATION_CONTEXT];
    g.q_cols = m->arch->heads * m->arch->head_dim;
    g.kv_cols = m->arch->kv_heads * m->arch->head_dim;
    return g;
}

static model_rows rows_of(const generator *g, lst__generation_part part, size_t stride)
{
    return (model_rows){g->part[part], stride};
}

/* ---- attention to the cache ---- */

typedef struct cache_job {
    const generator *g;
    const float *cache; /* of this layer: [positions, kv_cols keys then kv_cols values] */
    size_t n;           /* rows in flight, at positions first.. */
    size_t first;
} cache_job;

/* One head: its rows against all keys up to their own. */
static void cache_task(void *context, size_t head, size_t worker)
{
    const cache_job *j = context;
    const generator *g = j->g;
    const model_loops *loops = g->m->work.loops;
    size_t d = g->arch->head_dim, kv = head / (g->arch->heads / g->arch->kv_heads) * d, stride = 2 * g->kv_cols;
    float *score = model_scratch(&g->m->work, worker), scale = (float)(1.0 / sqrt((double)d));
    for (size_t r = 0; r < j->n; r++) {
        const float *q = g->part[LST__GENERATION_QKV] + r * (g->q_cols + stride) + head * d;
        float *out = g->part[LST__GENERATION_ATTENTION] + r * g->q_cols + head * d;
        size_t keys = j->first + r + 1;
        for (size_t t = 0; t < keys; t++)
            score[t] = loops->dot(q, j->cache + t * stride + kv, d);
        loops->softmax(score, keys, keys, scale);
        memset(out, 0, d * sizeof *out);
        for (size_t t = 0; t < keys; t++) {
            const float *v = j->cache + t * stride + g->kv_cols + kv;
            for (size_t i = 0; i < d; i++)
                out[i] += score[t] * v[i];
        }
    }
}

static void attend(const generator *g, const model_block *block, size_t layer, size_t n, size_t first)
{
    const lst_arch *a = g->arch;
    size_t stride = g->q_cols + 2 * g->kv_cols, kv = 2 * g->kv_cols;
    model_rows qkv = rows_of(g, LST__GENERATION_QKV, stride), q = qkv, k = {qkv.data + g->q_cols, stride};
    if (a->qk_norm) {
        model_rows raw = rows_of(g, LST__GENERATION_QK_RAW, g->q_cols + g->kv_cols);
        model_norm q_norm = model_block_head_norm(block, LST_ROLE_Q_NORM),
                   k_norm = model_block_head_norm(block, LST_ROLE_K_NORM);
        model_head_norm_forward(&g->m->work, &q_norm, q, raw, n, a->heads);
        model_head_norm_forward(&g->m->work, &k_norm, k, (model_rows){raw.data + g->q_cols, raw.stride}, n,
                                a->kv_heads);
    }
    model_rope_shape turning = {
        .rows = n, .seq = n, .first = first, .heads = a->heads + a->kv_heads, .head_dim = a->head_dim};
    if (block->rotation)
        model_rope(&g->m->work, block->rotation, q, &turning, 1.0f);
    float *cache = g->part[LST__GENERATION_CACHE] + layer * g->m->positions * kv;
    for (size_t r = 0; r < n; r++)
        memcpy(cache + (first + r) * kv, k.data + r * stride, kv * sizeof *cache);
    cache_job j = {.g = g, .cache = cache, .n = n, .first = first};
    lst_pool_run(g->m->work.pool, a->heads, cache_task, &j);
}

/* ---- one layer, then all ---- */

static void norm(const generator *g, const model_norm *n, lst__generation_part y, lst__generation_part x, size_t rows)
{
    model_norm_forward(&g->m->work, n, rows_of(g, y, n->n), g->part[LST__GENERATION_STAT], rows_of(g, x, n->n),
                       (model_norm_rows){rows, NULL});
}

static void linear(const generator *g, const model_linear *l, model_rows y, lst__generation_part x, size_t rows,
                   float *residual)
{
    model_linear_forward(&g->m->work, l, y, rows_of(g, x, l->in), rows, (model_rows){residual, l->out});
}

static void feed_layer(const generator *g, size_t layer, size_t n, size_t first)
{
    const lst_arch *a = g->arch;
    model_block block = model_block_of(g->m, layer);
    model_norm norm1 = model_block_norm(&block, LST_ROLE_NORM1_W, LST_ROLE_NORM1_B);
    model_norm norm2 = model_block_norm(&block, LST_ROLE_NORM2_W, LST_ROLE_NORM2_B);
    model_linear o = model_block_linear(&block, LST_ROLE_O_W, LST_ROLE_O_B, g->q_cols, a->hidden);
    model_linear gate = model_block_linear(&block, LST_ROLE_GATE_W, LST_ROLE_GATE_B, a->hidden, a->ffn);
    model_linear up = model_block_linear(&block, LST_ROLE_UP_W, LST_ROLE_UP_B, a->hidden, a->ffn);
    model_linear down = model_block_linear(&block, LST_ROLE_DOWN_W, LST_ROLE_DOWN_B, a->ffn, a->hidden);
    model_qkv_part part[3];
    size_t n_parts = model_block_qkv(&block, part);
    norm(g, &norm1, LST__GENERATION_NORM, LST__GENERATION_INPUT, n);
    for (size_t i = 0; i < n_parts; i++)
        linear(g, &part[i].linear,
               (model_rows){g->part[LST__GENERATION_QKV] + part[i].column, g->q_cols + 2 * g->kv_cols},
               LST__GENERATION_NORM, n, NULL);
    attend(g, &block, layer, n, first);
    linear(g, &o, rows_of(g, LST__GENERATION_MIDDLE, a->hidden), LST__GENERATION_ATTENTION, n,
           g->part[LST__GENERATION_INPUT]);
    norm(g, &norm2, LST__GENERATION_NORM, LST__GENERATION_MIDDLE, n);
    linear(g, &up, rows_of(g, LST__GENERATION_UP, a->ffn), LST__GENERATION_NORM, n, NULL);
    if (!a->gelu_mlp)
        linear(g, &gate, rows_of(g, LST__GENERATION_GATE, a->ffn), LST__GENERATION_NORM, n, NULL);
    model_mlp_forward(&g->m->work, g->part[LST__GENERATION_PRODUCT], a->gelu_mlp ? NULL : g->part[LST__GENERATION_GATE],
                      g->part[LST__GENERATION_UP], n * a->ffn);
    linear(g, &down, rows_of(g, LST__GENERATION_INPUT, a->hidden), LST__GENERATION_PRODUCT, n,
           g->part[LST__GENERATION_MIDDLE]);
}

/* Feeds n tokens (at most LST__GENERATION_ROWS) at the end of the context. */
static void feed(generator *g, const int32_t *ids, size_t n)
{
    size_t first = g->n_context;
    model_embedding e = model_embedding_of(g->m);
    memmove(g->context + first, ids, n * sizeof *ids);
    model_embed_forward(&g->m->work, &e, g->part[LST__GENERATION_INPUT], g->context + first, n, n, first);
    for (size_t layer = 0; layer < g->arch->layers; layer++)
        feed_layer(g, layer, n, first);
    g->n_context += n;
}

/* Logits after the last of the n tokens fed last. */
static float *logits(const generator *g, size_t n)
{
    model_norm final = model_final_norm(g->m);
    model_linear head = model_head(g->m);
    size_t hidden = g->arch->hidden;
    model_rows last = {g->part[LST__GENERATION_INPUT] + (n - 1) * hidden, hidden},
               normed = rows_of(g, LST__GENERATION_NORM, hidden);
    model_norm_forward(&g->m->work, &final, normed, g->part[LST__GENERATION_STAT], last, (model_norm_rows){1, NULL});
    model_linear_forward(&g->m->work, &head, rows_of(g, LST__GENERATION_LOGITS, g->arch->vocab), normed, 1,
                         (model_rows){NULL, 0});
    return g->part[LST__GENERATION_LOGITS];
}

/* Feeds any number of tokens that fit, in blocks; returns how many the last block had. */
static size_t feed_all(generator *g, const int32_t *ids, size_t n)
{
    size_t block = 0;
    for (size_t i = 0; i < n; i += block) {
        block = n - i < LST__GENERATION_ROWS ? n - i : LST__GENERATION_ROWS;
        feed(g, ids + i, block);
    }
    return block;
}

/* ---- choosing a token ---- */

static int32_t largest(const float *z, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (z[i] > z[best])
            best = i;
    return (int32_t)best;
}

/* The k-th largest of x (k >= 1), by selection; x is reordered. */
static float kth_largest(float *x, size_t n, size_t k)
{
    size_t low = 0, high = n - 1, want = k - 1;
    while (low < high) {
        float pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (x[i] > pivot)
                i++;
            while (x[j] < pivot)
                j--;
            if (i > j)
                break;
            float swap = x[i];
            x[i++] = x[j];
            x[j] = swap;
            if (j-- == 0)
                break;
        }
        if (want <= j && j < high)
            high = j;
        else if (want >= i)
            low = i;
        else
            break;
    }
    return x[want];
}

/* Softmax sampling in double, in the order of ids: the same for any thread count. */
static int32_t sample(const generator *g, const float *z, const model_sampling *s, uint64_t counter)
{
    size_t vocab = g->arch->vocab;
    int32_t best = largest(z, vocab);
    if (s->temperature == 0.0)
        return best;
    float least = -INFINITY;
    if (s->top_k > 0 && s->top_k < vocab) {
        memcpy(g->part[LST__GENERATION_SORTED], z, vocab * sizeof *z);
        least = kth_largest(g->part[LST__GENERATION_SORTED], vocab, s->top_k);
    }
    double sum = 0.0, max = (double)z[best];
    for (size_t i = 0; i < vocab; i++)
        if (z[i] >= least)
            sum += exp(((double)z[i] - max) / s->temperature);
    double left = lst__random_unit(s->seed, 0, counter) * sum;
    int32_t chosen = best;
    for (size_t i = 0; i < vocab; i++) {
        if (!(z[i] >= least))
            continue;
        double p = exp(((double)z[i] - max) / s->temperature);
        if (p > 0.0)
            chosen = (int32_t)i;
        if ((left -= p) < 0.0)
            break;
    }
    return chosen;
}

/* ---- the loop ---- */

static lst_status check(const model *m, const int32_t *prompt, size_t n, const model_sampling *s, lst_error *err)
{
    if (n == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "an empty prompt: generation needs at least one token to begin with");
    if (!(s->temperature >= 0.0) || isinf(s->temperature))
        return lst__fail(err, LST_ERR_ARGUMENT, "temperature %g: expected 0 (greedy) or a positive number",
                         s->temperature);
    if (s->temperature == 0.0 && s->top_k > 1)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "top-k %zu has no effect at temperature 0, which always takes the largest logit; set a temperature",
            s->top_k);
    if (m->positions < 2)
        return lst__fail(err, LST_ERR_ARGUMENT, "generation needs a cache of at least 2 positions, this one has %zu",
                         m->positions);
    if (m->purpose == LST__EVALUATES)
        return lst__fail(err, LST_ERR_STATE, "this model was made from a plan for evaluation: it cannot generate");
    for (size_t i = 0; i < n; i++)
        if (prompt[i] < 0 || (size_t)prompt[i] >= m->arch->vocab)
            return lst__fail(err, LST_ERR_ARGUMENT, "prompt token %zu is %d: the vocabulary has ids 0 to %zu", i,
                             (int)prompt[i], m->arch->vocab - 1);
    return LST_OK;
}

/* Forgets the older half of a full cache: positions shift, so the rest is read again. */
static void make_room(generator *g)
{
    size_t keep = g->m->positions / 2;
    memmove(g->context, g->context + g->n_context - keep, keep * sizeof *g->context);
    g->n_context = 0;
    feed_all(g, g->context, keep);
}

lst_status model_generate(model *m, const int32_t *prompt, size_t n, const model_sampling *sampling,
                          lst_status (*on_token)(void *user, int32_t id, lst_error *err), void *user, lst_error *err)
{
    lst_status status = check(m, prompt, n, sampling, err);
    if (status != LST_OK)
        return status;
    model_enter(m, m->purpose == LST__TRAINS ? lst_phase_save(m->arch->layers) : lst_phase_load());
    generator g = generator_of(m);
    size_t skip = n > m->positions ? n - m->positions : 0;
    size_t block = feed_all(&g, prompt + skip, n - skip);
    for (size_t i = 0; i < sampling->max_tokens; i++) {
        float *z = logits(&g, block);
        int32_t id = sample(&g, z, sampling, i);
        if (!isfinite(z[id]))
            return lst__fail(err, LST_ERR_NONFINITE,
                             "the model's logits are not finite after %zu tokens: its weights are damaged", i);
        if (sampling->stop >= 0 && id == sampling->stop)
            return LST_OK;
        status = on_token(user, id, err);
        if (status != LST_OK)
            return status;
        if (i + 1 == sampling->max_tokens)
            break;
        if (g.n_context == m->positions)
            make_room(&g);
        feed(&g, &id, 1);
        block = 1;
    }
    return LST_OK;
}
