/* SPDX-License-Identifier: MIT
 *
 * Families as data: which tensors an architecture has, their names and shapes, in storage order.
 */
#include "leanstep/arch.h"

#include <stdio.h>
#include <string.h>

/* Lengths a dimension may have; the letters of leanstep/arch.h. */
typedef enum length { NONE, V, C, P, A, G, A2G, F, D } length;

/* When a tensor exists. */
typedef enum condition {
    ALWAYS,
    IF_LAYER_NORM,
    IF_POSITIONS,
    IF_FUSED,
    IF_FUSED_BIAS,
    IF_APART,
    IF_APART_BIAS,
    IF_QK_NORM,
    IF_O_BIAS,
    IF_GATED,
    IF_GATED_BIAS,
    IF_MLP_BIAS,
    IF_UNTIED
} condition;

typedef enum place { FRONT, LAYER, END } place;

typedef struct tensor_row {
    place where;
    condition when;
    length out, in;    /* in NONE: a vector. Layer matrices are [in, out] under conv1d */
    const char *gpt2;  /* Hugging Face's name; of a layer's tensor the part after "transformer.h.N." */
    const char *other; /* the same for the Llama-like families, after "model.layers.N." */
} tensor_row;

/* In storage order, which is the order of lst_role. */
static const tensor_row rows[LST_N_ROLES] = {
    [LST_ROLE_EMBED] = {FRONT, ALWAYS, V, C, "transformer.wte.weight", "model.embed_tokens.weight"},
    [LST_ROLE_POSITIONS] = {FRONT, IF_POSITIONS, P, C, "transformer.wpe.weight", ""},
    [LST_ROLE_NORM1_W] = {LAYER, ALWAYS, C, NONE, "ln_1.weight", "input_layernorm.weight"},
    [LST_ROLE_NORM1_B] = {LAYER, IF_LAYER_NORM, C, NONE, "ln_1.bias", ""},
    [LST_ROLE_QKV_W] = {LAYER, IF_FUSED, A2G, C, "attn.c_attn.weight", ""},
    [LST_ROLE_QKV_B] = {LAYER, IF_FUSED_BIAS, A2G, NONE, "attn.c_attn.bias", ""},
    [LST_ROLE_Q_W] = {LAYER, IF_APART, A, C, "", "self_attn.q_proj.weight"},
    [LST_ROLE_Q_B] = {LAYER, IF_APART_BIAS, A, NONE, "", "self_attn.q_proj.bias"},
    [LST_ROLE_K_W] = {LAYER, IF_APART, G, C, "", "self_attn.k_proj.weight"},
    [LST_ROLE_K_B] = {LAYER, IF_APART_BIAS, G, NONE, "", "self_attn.k_proj.bias"},
    [LST_ROLE_V_W] = {LAYER, IF_APART, G, C, "", "self_attn.v_proj.weight"},
    [LST_ROLE_V_B] = {LAYER, IF_APART_BIAS, G, NONE, "", "self_attn.v_proj.bias"},
    [LST_ROLE_Q_NORM] = {LAYER, IF_QK_NORM, D, NONE, "", "self_attn.q_norm.weight"},
    [LST_ROLE_K_NORM] = {LAYER, IF_QK_NORM, D, NONE, "", "self_attn.k_norm.weight"},
    [LST_ROLE_O_W] = {LAYER, ALWAYS, C, A, "attn.c_proj.weight", "self_attn.o_proj.weight"},
    [LST_ROLE_O_B] = {LAYER, IF_O_BIAS, C, NONE, "attn.c_proj.bias", "self_attn.o_proj.bias"},
    [LST_ROLE_NORM2_W] = {LAYER, ALWAYS, C, NONE, "ln_2.weight", "post_attention_layernorm.weight"},
    [LST_ROLE_NORM2_B] = {LAYER, IF_LAYER_NORM, C, NONE, "ln_2.bias", ""},
    [LST_ROLE_GATE_W] = {LAYER, IF_GATED, F, C, "", "mlp.gate_proj.weight"},
    [LST_ROLE_GATE_B] = {LAYER, IF_GATED_BIAS, F, NONE, "", "mlp.gate_proj.bias"},
    [LST_ROLE_UP_W] = {LAYER, ALWAYS, F, C, "mlp.c_fc.weight", "mlp.up_proj.weight"},
    [LST_ROLE_UP_B] = {LAYER, IF_MLP_BIAS, F, NONE, "mlp.c_fc.bias", "mlp.up_proj.bias"},
    [LST_ROLE_DOWN_W] = {LAYER, ALWAYS, C, F, "mlp.c_proj.weight", "mlp.down_proj.weight"},
    [LST_ROLE_DOWN_B] = {LAYER, IF_MLP_BIAS, C, NONE, "mlp.c_proj.bias", "mlp.down_proj.bias"},
    [LST_ROLE_NORMF_W] = {END, ALWAYS, C, NONE, "transformer.ln_f.weight", "model.norm.weight"},
    [LST_ROLE_NORMF_B] = {END, IF_LAYER_NORM, C, NONE, "transformer.ln_f.bias", ""},
    [LST_ROLE_HEAD_W] = {END, IF_UNTIED, V, C, "lm_head.weight", "lm_head.weight"},
};

static const char *const family_names[LST_N_FAMILIES] = {
#define LST_X(id, name) name,
    LST_FAMILY_LIST(LST_X)
#undef LST_X
};

const char *lst_family_name(lst_family family)
{
    return (unsigned)family < LST_N_FAMILIES ? family_names[family] : "unknown";
}

static bool exists(const lst_arch *arch, condition when)
{
    switch (when) {
    case ALWAYS:
        return true;
    case IF_LAYER_NORM:
        return arch->layer_norm;
    case IF_POSITIONS:
        return arch->learned_positions;
    case IF_FUSED:
        return arch->fused_qkv;
    case IF_FUSED_BIAS:
        return arch->fused_qkv && arch->qkv_bias;
    case IF_APART:
        return !arch->fused_qkv;
    case IF_APART_BIAS:
        return !arch->fused_qkv && arch->qkv_bias;
    case IF_QK_NORM:
        return arch->qk_norm;
    case IF_O_BIAS:
        return arch->o_bias;
    case IF_GATED:
        return !arch->gelu_mlp;
    case IF_GATED_BIAS:
        return !arch->gelu_mlp && arch->mlp_bias;
    case IF_MLP_BIAS:
        return arch->mlp_bias;
    case IF_UNTIED:
        return !arch->tied;
    }
    return false;
}

static size_t length_of(const lst_arch *arch, length which)
{
    switch (which) {
    case NONE:
        return 1;
    case V:
        return arch->vocab;
    case C:
        return arch->hidden;
    case P:
        return arch->max_positions;
    case A:
        return arch->heads * arch->head_dim;
    case G:
        return arch->kv_heads * arch->head_dim;
    case A2G:
        return (arch->heads + 2 * arch->kv_heads) * arch->head_dim;
    case F:
        return arch->ffn;
    case D:
        return arch->head_dim;
    }
    return 0;
}

static void fill_tensor(const lst_arch *arch, lst_role role, size_t layer, lst_arch_tensor *out)
{
    const tensor_row *row = &rows[role];
    const char *name = arch->family == LST_FAMILY_GPT2 ? row->gpt2 : row->other;
    const char *prefix = arch->family == LST_FAMILY_GPT2 ? "transformer.h" : "model.layers";
    memset(out, 0, sizeof *out);
    out->role = role;
    out->layer = row->where == FRONT ? -1 : row->where == LAYER ? (int)layer : (int)arch->layers;
    if (row->where == LAYER)
        snprintf(out->name, sizeof out->name, "%s.%zu.%s", prefix, layer, name);
    else
        snprintf(out->name, sizeof out->name, "%s", name);
    size_t rows_out = length_of(arch, row->out), cols_in = length_of(arch, row->in);
    bool transposed = arch->conv1d && row->where == LAYER && row->in != NONE;
    out->n_dims = row->in == NONE ? 1 : 2;
    out->dims[0] = transposed ? cols_in : rows_out;
    out->dims[1] = row->in == NONE ? 0 : transposed ? rows_out : cols_in;
    out->n_elems = rows_out * cols_in;
}

/* How many tensors of one place an architecture has. */
static size_t count_at(const lst_arch *arch, place where)
{
    size_t n = 0;
    for (int r = 0; r < LST_N_ROLES; r++)
        n += rows[r].where == where && exists(arch, rows[r].when);
    return n;
}

/* The n-th existing role of a place. */
static lst_role role_at(const lst_arch *arch, place where, size_t n)
{
    int r = 0;
    for (;; r++)
        if (rows[r].where == where && exists(arch, rows[r].when) && n-- == 0)
            return (lst_role)r;
}

size_t lst_arch_tensor_count(const lst_arch *arch)
{
    return count_at(arch, FRONT) + arch->layers * count_at(arch, LAYER) + count_at(arch, END);
}

void lst_arch_tensor_at(const lst_arch *arch, size_t index, lst_arch_tensor *out)
{
    size_t front = count_at(arch, FRONT), layer = count_at(arch, LAYER);
    if (index < front) {
        fill_tensor(arch, role_at(arch, FRONT, index), 0, out);
        return;
    }
    index -= front;
    if (index < layer * arch->layers)
        fill_tensor(arch, role_at(arch, LAYER, index % layer), index / layer, out);
    else
        fill_tensor(arch, role_at(arch, END, index - layer * arch->layers), 0, out);
}

size_t lst_arch_tensor_find(const lst_arch *arch, lst_role role, int layer)
{
    if ((unsigned)role >= LST_N_ROLES || !exists(arch, rows[role].when))
        return SIZE_MAX;
    place where = rows[role].where;
    size_t before = 0;
    for (int r = 0; r < (int)role; r++)
        before += rows[r].where == where && exists(arch, rows[r].when);
    size_t front = count_at(arch, FRONT), per_layer = count_at(arch, LAYER);
    if (where == FRONT)
        return layer == -1 ? before : SIZE_MAX;
    if (where == END)
        return layer == (int)arch->layers ? front + per_layer * arch->layers + before : SIZE_MAX;
    return layer >= 0 && (size_t)layer < arch->layers ? front + per_layer * (size_t)layer + before : SIZE_MAX;
}

uint64_t lst_arch_params(const lst_arch *arch)
{
    uint64_t total = 0;
    for (int r = 0; r < LST_N_ROLES; r++)
        if (exists(arch, rows[r].when)) {
            uint64_t n = (uint64_t)length_of(arch, rows[r].out) * length_of(arch, rows[r].in);
            total += rows[r].where == LAYER ? n * arch->layers : n;
        }
    return total;
}

bool lst_arch_tensor_decays(const lst_arch_tensor *tensor)
{
    return tensor->n_dims >= 2;
}
