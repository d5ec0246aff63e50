/* SPDX-License-Identifier: MIT
 *
 * The parameters of each family, in the order in which PyTorch lists them. Sums are not written down anywhere:
 * the totals of public models follow from these lists (tests/plan/test_models.c).
 */
#include "leanstep/models.h"

#include <stdio.h>
#include <string.h>

typedef struct walk {
    const lst_shape *shape;
    lst_shape_visit visit;
    void *user;
    int layer;
} walk;

static void emit(const walk *w, const char *name, lst_part part, size_t rows, size_t cols, bool transposed)
{
    const lst_shape_tensor tensor = {
        .name = name, .part = part, .layer = w->layer, .rows = rows, .cols = cols, .transposed = transposed};
    w->visit(w->user, &tensor);
}

static void table(const walk *w, const char *name, size_t rows, size_t cols)
{
    emit(w, name, LST_PART_EMBEDDING, rows, cols, false);
}

static void linear(const walk *w, const char *name, size_t out, size_t in, bool bias)
{
    emit(w, name, LST_PART_LINEAR, out, in, false);
    if (bias)
        emit(w, name, LST_PART_BIAS, out, 0, false);
}

/* GPT-2's Conv1D. */
static void conv1d(const walk *w, const char *name, size_t in, size_t out)
{
    emit(w, name, LST_PART_LINEAR, in, out, true);
    emit(w, name, LST_PART_BIAS, out, 0, false);
}

static void rms_norm(const walk *w, const char *name, size_t n)
{
    emit(w, name, LST_PART_NORM, n, 0, false);
}

static void layer_norm(const walk *w, const char *name, size_t n)
{
    emit(w, name, LST_PART_NORM, n, 0, false);
    emit(w, name, LST_PART_NORM, n, 0, false);
}

static void head(const walk *w, const char *name, bool bias)
{
    const lst_shape *s = w->shape;
    if (s->tied)
        return;
    emit(w, name, LST_PART_HEAD, s->vocab, s->hidden, false);
    if (bias)
        emit(w, name, LST_PART_BIAS, s->vocab, 0, false);
}

/* ---- the Llama line: Llama, Mistral, Qwen2, Qwen3, Phi-3, Gemma 1 to 3, Mixtral, DeepSeek-V2 ---- */

static void llama_attention(const walk *w)
{
    const lst_shape *s = w->shape;
    const size_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    if (s->family == LST_SHAPE_PHI3) {
        linear(w, "o_proj", s->hidden, q, false);
        linear(w, "qkv_proj", q + 2 * kv, s->hidden, false);
        return;
    }
    linear(w, "q_proj", q, s->hidden, s->qkv_bias);
    linear(w, "k_proj", kv, s->hidden, s->qkv_bias);
    linear(w, "v_proj", kv, s->hidden, s->qkv_bias);
    linear(w, "o_proj", s->hidden, q, s->o_bias);
    if (s->family == LST_SHAPE_QWEN3 || s->family == LST_SHAPE_GEMMA3) {
        rms_norm(w, "q_norm", s->head_dim);
        rms_norm(w, "k_norm", s->head_dim);
    }
}

static void latent_attention(const walk *w)
{
    const lst_shape *s = w->shape;
    linear(w, "q_proj", s->heads * (s->mla.nope + s->mla.rope), s->hidden, false);
    linear(w, "kv_a_proj_with_mqa", s->mla.rank + s->mla.rope, s->hidden, false);
    rms_norm(w, "kv_a_layernorm", s->mla.rank);
    linear(w, "kv_b_proj", s->heads * (s->mla.nope + s->mla.value), s->mla.rank, false);
    linear(w, "o_proj", s->hidden, s->heads * s->mla.value, false);
}

static void gated_mlp(const walk *w, size_t ffn)
{
    const lst_shape *s = w->shape;
    if (s->family == LST_SHAPE_PHI3) {
        linear(w, "gate_up_proj", 2 * ffn, s->hidden, false);
    } else {
        linear(w, "gate_proj", ffn, s->hidden, s->mlp_bias);
        linear(w, "up_proj", ffn, s->hidden, s->mlp_bias);
    }
    linear(w, "down_proj", s->hidden, ffn, s->mlp_bias);
}

static void llama_mlp(const walk *w)
{
    const lst_shape *s = w->shape;
    if (s->moe.experts == 0 || (size_t)w->layer < s->moe.dense_layers) {
        gated_mlp(w, s->ffn);
        return;
    }
    linear(w, "gate", s->moe.experts, s->hidden, false);
    for (size_t e = 0; e < s->moe.experts; e++)
        gated_mlp(w, s->moe.ffn ? s->moe.ffn : s->ffn);
    if (s->moe.shared)
        gated_mlp(w, s->moe.shared * s->moe.ffn);
}

static void llama_norms(const walk *w)
{
    rms_norm(w, "input_layernorm", w->shape->hidden);
    rms_norm(w, "post_attention_layernorm", w->shape->hidden);
    if (w->shape->family == LST_SHAPE_GEMMA2 || w->shape->family == LST_SHAPE_GEMMA3) {
        rms_norm(w, "pre_feedforward_layernorm", w->shape->hidden);
        rms_norm(w, "post_feedforward_layernorm", w->shape->hidden);
    }
}

static void llama(walk *w)
{
    const lst_shape *s = w->shape;
    table(w, "embed_tokens", s->vocab, s->hidden);
    for (w->layer = 0; w->layer < (int)s->layers; w->layer++) {
        if (s->mla.rank)
            latent_attention(w);
        else
            llama_attention(w);
        llama_mlp(w);
        llama_norms(w);
    }
    w->layer = -1;
    rms_norm(w, "norm", s->hidden);
    head(w, "lm_head", false);
}

/* ---- GPT-2 and its neighbours: LayerNorm, biases, one MLP input matrix ---- */

static void gpt2(walk *w)
{
    const lst_shape *s = w->shape;
    table(w, "wte", s->vocab, s->hidden);
    table(w, "wpe", s->positions, s->hidden);
    for (w->layer = 0; w->layer < (int)s->layers; w->layer++) {
        layer_norm(w, "ln_1", s->hidden);
        conv1d(w, "c_attn", s->hidden, 3 * s->hidden);
        conv1d(w, "c_proj", s->hidden, s->hidden);
        layer_norm(w, "ln_2", s->hidden);
        conv1d(w, "c_fc", s->hidden, s->ffn);
        conv1d(w, "mlp.c_proj", s->ffn, s->hidden);
    }
    w->layer = -1;
    layer_norm(w, "ln_f", s->hidden);
    head(w, "lm_head", false);
}

static void opt(walk *w)
{
    const lst_shape *s = w->shape;
    const bool projected = s->embed_dim != s->hidden;
    table(w, "embed_tokens", s->vocab, s->embed_dim);
    table(w, "embed_positions", s->positions + 2, s->hidden); /* two rows for padding, as fairseq counted */
    if (projected) {
        linear(w, "project_out", s->embed_dim, s->hidden, false);
        linear(w, "project_in", s->hidden, s->embed_dim, false);
    } else {
        layer_norm(w, "final_layer_norm", s->hidden);
    }
    for (w->layer = 0; w->layer < (int)s->layers; w->layer++) {
        linear(w, "k_proj", s->hidden, s->hidden, true);
        linear(w, "v_proj", s->hidden, s->hidden, true);
        linear(w, "q_proj", s->hidden, s->hidden, true);
        linear(w, "out_proj", s->hidden, s->hidden, true);
        layer_norm(w, "self_attn_layer_norm", s->hidden);
        linear(w, "fc1", s->ffn, s->hidden, true);
        linear(w, "fc2", s->hidden, s->ffn, true);
        layer_norm(w, "final_layer_norm", s->hidden);
    }
    w->layer = -1;
    head(w, "lm_head", false);
}

static void gpt_neox(walk *w)
{
    const lst_shape *s = w->shape;
    table(w, "embed_in", s->vocab, s->hidden);
    for (w->layer = 0; w->layer < (int)s->layers; w->layer++) {
        layer_norm(w, "input_layernorm", s->hidden);
        layer_norm(w, "post_attention_layernorm", s->hidden);
        linear(w, "query_key_value", 3 * s->hidden, s->hidden, true);
        linear(w, "dense", s->hidden, s->hidden, true);
        linear(w, "dense_h_to_4h", s->ffn, s->hidden, true);
        linear(w, "dense_4h_to_h", s->hidden, s->ffn, true);
    }
    w->layer = -1;
    layer_norm(w, "final_layer_norm", s->hidden);
    head(w, "embed_out", false);
}

/* Phi-2: attention and MLP side by side behind one LayerNorm; even the head has a bias. */
static void phi(walk *w)
{
    const lst_shape *s = w->shape;
    table(w, "embed_tokens", s->vocab, s->hidden);
    for (w->layer = 0; w->layer < (int)s->layers; w->layer++) {
        linear(w, "q_proj", s->hidden, s->hidden, true);
        linear(w, "k_proj", s->hidden, s->hidden, true);
        linear(w, "v_proj", s->hidden, s->hidden, true);
        linear(w, "dense", s->hidden, s->hidden, true);
        linear(w, "fc1", s->ffn, s->hidden, true);
        linear(w, "fc2", s->hidden, s->ffn, true);
        layer_norm(w, "input_layernorm", s->hidden);
    }
    w->layer = -1;
    layer_norm(w, "final_layernorm", s->hidden);
    head(w, "lm_head", true);
}

/* BertModel: the encoder with its pooler, without pre-training heads. */
static void bert(walk *w)
{
    const lst_shape *s = w->shape;
    table(w, "word_embeddings", s->vocab, s->hidden);
    table(w, "position_embeddings", s->positions, s->hidden);
    table(w, "token_type_embeddings", s->types, s->hidden);
    layer_norm(w, "LayerNorm", s->hidden);
    for (w->layer = 0; w->layer < (int)s->layers; w->layer++) {
        linear(w, "query", s->hidden, s->hidden, true);
        linear(w, "key", s->hidden, s->hidden, true);
        linear(w, "value", s->hidden, s->hidden, true);
        linear(w, "attention.output.dense", s->hidden, s->hidden, true);
        layer_norm(w, "attention.output.LayerNorm", s->hidden);
        linear(w, "intermediate.dense", s->ffn, s->hidden, true);
        linear(w, "output.dense", s->hidden, s->ffn, true);
        layer_norm(w, "output.LayerNorm", s->hidden);
    }
    w->layer = -1;
    linear(w, "pooler.dense", s->hidden, s->hidden, true);
}

static void t5_attention(const walk *w, bool positions)
{
    const lst_shape *s = w->shape;
    const size_t inner = s->heads * s->head_dim;
    linear(w, "q", inner, s->hidden, false);
    linear(w, "k", inner, s->hidden, false);
    linear(w, "v", inner, s->hidden, false);
    linear(w, "o", s->hidden, inner, false);
    if (positions)
        table(w, "relative_attention_bias", s->buckets, s->heads);
    rms_norm(w, "layer_norm", s->hidden);
}

static void t5_stack(walk *w, size_t layers, bool decoder)
{
    const lst_shape *s = w->shape;
    for (w->layer = 0; w->layer < (int)layers; w->layer++) {
        t5_attention(w, w->layer == 0); /* the table stands in the first layer of each stack only */
        if (decoder)
            t5_attention(w, false);
        linear(w, "wi", s->ffn, s->hidden, false);
        if (s->gated)
            linear(w, "wi_1", s->ffn, s->hidden, false);
        linear(w, "wo", s->hidden, s->ffn, false);
        rms_norm(w, "layer_norm", s->hidden);
    }
    w->layer = -1;
    rms_norm(w, "final_layer_norm", s->hidden);
}

static void t5(walk *w)
{
    table(w, "shared", w->shape->vocab, w->shape->hidden);
    t5_stack(w, w->shape->layers, false);
    t5_stack(w, w->shape->decoder_layers, true);
    head(w, "lm_head", false);
}

void lst_shape_each(const lst_shape *shape, lst_shape_visit visit, void *user)
{
    walk w = {.shape = shape, .visit = visit, .user = user, .layer = -1};
    switch (shape->family) {
    case LST_SHAPE_GPT2:
        gpt2(&w);
        break;
    case LST_SHAPE_OPT:
        opt(&w);
        break;
    case LST_SHAPE_GPT_NEOX:
        gpt_neox(&w);
        break;
    case LST_SHAPE_PHI:
        phi(&w);
        break;
    case LST_SHAPE_BERT:
        bert(&w);
        break;
    case LST_SHAPE_T5:
        t5(&w);
        break;
    default:
        llama(&w);
    }
}

typedef struct totals {
    uint64_t params;
    size_t tensors;
} totals;

static void add_tensor(void *user, const lst_shape_tensor *tensor)
{
    totals *sum = user;
    sum->params += lst_shape_tensor_elems(tensor);
    sum->tensors++;
}

uint64_t lst_shape_params(const lst_shape *shape)
{
    totals sum = {0};
    lst_shape_each(shape, add_tensor, &sum);
    return sum.params;
}

size_t lst_shape_tensors(const lst_shape *shape)
{
    totals sum = {0};
    lst_shape_each(shape, add_tensor, &sum);
    return sum.tensors;
}

const char *lst_shape_family_name(lst_shape_family family)
{
    static const char *const names[] = {
#define LST_X(id, name, tied) name,
        LST_SHAPE_FAMILY_LIST(LST_X)
#undef LST_X
    };
    return (unsigned)family < LST_N_SHAPE_FAMILIES ? names[family] : "unknown";
}

static const lst_shape_family from_arch[] = {
    [LST_FAMILY_GPT2] = LST_SHAPE_GPT2,       [LST_FAMILY_LLAMA] = LST_SHAPE_LLAMA,
    [LST_FAMILY_MISTRAL] = LST_SHAPE_MISTRAL, [LST_FAMILY_QWEN2] = LST_SHAPE_QWEN2,
    [LST_FAMILY_QWEN3] = LST_SHAPE_QWEN3,
};

void lst_shape_from_arch(const lst_arch *arch, lst_shape *out)
{
    memset(out, 0, sizeof *out);
    out->family = from_arch[arch->family];
    snprintf(out->name, sizeof out->name, "%s", lst_shape_family_name(out->family));
    out->vocab = arch->vocab;
    out->hidden = arch->hidden;
    out->ffn = arch->ffn;
    out->layers = arch->layers;
    out->heads = arch->heads;
    out->kv_heads = arch->kv_heads;
    out->head_dim = arch->head_dim;
    out->positions = arch->learned_positions ? arch->max_positions : 0;
    out->tied = arch->tied;
    out->qkv_bias = arch->qkv_bias;
    out->o_bias = arch->o_bias;
    out->mlp_bias = arch->mlp_bias;
}
