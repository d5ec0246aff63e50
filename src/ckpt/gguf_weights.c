/* SPDX-License-Identifier: MIT */
#include "ckpt/gguf_weights.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "numeric/bf16.h"
#include "numeric/f16.h"
#include "store/ggml.h"

static const char *const names[LST_N_ROLES] = {
    [LST_ROLE_EMBED] = "token_embd.weight",    [LST_ROLE_POSITIONS] = "position_embd.weight",
    [LST_ROLE_NORM1_W] = "attn_norm.weight",   [LST_ROLE_NORM1_B] = "attn_norm.bias",
    [LST_ROLE_QKV_W] = "attn_qkv.weight",      [LST_ROLE_QKV_B] = "attn_qkv.bias",
    [LST_ROLE_Q_W] = "attn_q.weight",          [LST_ROLE_Q_B] = "attn_q.bias",
    [LST_ROLE_K_W] = "attn_k.weight",          [LST_ROLE_K_B] = "attn_k.bias",
    [LST_ROLE_V_W] = "attn_v.weight",          [LST_ROLE_V_B] = "attn_v.bias",
    [LST_ROLE_Q_NORM] = "attn_q_norm.weight",  [LST_ROLE_K_NORM] = "attn_k_norm.weight",
    [LST_ROLE_O_W] = "attn_output.weight",     [LST_ROLE_O_B] = "attn_output.bias",
    [LST_ROLE_NORM2_W] = "ffn_norm.weight",    [LST_ROLE_NORM2_B] = "ffn_norm.bias",
    [LST_ROLE_GATE_W] = "ffn_gate.weight",     [LST_ROLE_GATE_B] = "ffn_gate.bias",
    [LST_ROLE_UP_W] = "ffn_up.weight",         [LST_ROLE_UP_B] = "ffn_up.bias",
    [LST_ROLE_DOWN_W] = "ffn_down.weight",     [LST_ROLE_DOWN_B] = "ffn_down.bias",
    [LST_ROLE_NORMF_W] = "output_norm.weight", [LST_ROLE_NORMF_B] = "output_norm.bias",
    [LST_ROLE_HEAD_W] = "output.weight",
};

static void file_name(const lst_arch *arch, const lst_arch_tensor *t, char *out, size_t n)
{
    if (t->layer >= 0 && (size_t)t->layer < arch->layers)
        snprintf(out, n, "blk.%d.%s", t->layer, names[t->role]);
    else
        snprintf(out, n, "%s", names[t->role]);
}

static const lst__ggml_format *blocks_of(lst_gguf_type type)
{
    for (size_t i = 0; i < LST__N_GGML; i++)
        if (lst__ggml_formats[i].number == (unsigned)type)
            return &lst__ggml_formats[i];
    return NULL;
}

static bool is_float(lst_gguf_type type)
{
    return type == LST_GGUF_F32 || type == LST_GGUF_F16 || type == LST_GGUF_BF16;
}

/* Conv1D's matrices are [in, out] in the model, [out, in] in the file; tables are the same in both. */
static bool is_transposed(const lst_arch *arch, const lst_arch_tensor *t)
{
    return arch->conv1d && t->n_dims == 2 && t->role != LST_ROLE_EMBED && t->role != LST_ROLE_POSITIONS &&
           t->role != LST_ROLE_HEAD_W;
}

static lst_status check_tensor(const lst_gguf *g, const lst_arch *arch, const lst_arch_tensor *t, lst_error *err)
{
    char name[96];
    file_name(arch, t, name, sizeof name);
    const lst_gguf_tensor *found = lst__gguf_find_tensor(g, name);
    if (!found)
        return lst__fail(err, LST_ERR_STATE, "%s has no tensor \"%s\", which a %s of %zu layers has", g->path, name,
                         lst_family_name(arch->family), arch->layers);
    if (!is_float(found->type) && !blocks_of(found->type))
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: tensor \"%s\" is of type %s, which is not decoded here",
                         g->path, name, lst__gguf_type_name(found->type));
    const bool turned = is_transposed(arch, t);
    bool same = found->n_dims == t->n_dims && found->n_elems == t->n_elems;
    for (size_t i = 0; same && i < t->n_dims; i++)
        same = found->dims[i] == t->dims[turned ? i : t->n_dims - 1 - i];
    if (!same)
        return lst__fail(err, LST_ERR_STATE,
                         "%s: tensor \"%s\" has %zu elements in another shape than the metadata "
                         "say (%zu elements)",
                         g->path, name, found->n_elems, t->n_elems);
    return LST_OK;
}

/* Whether the architecture has a tensor of this name. */
static bool is_known(const lst_arch *arch, size_t n, const char *name)
{
    lst_arch_tensor t;
    char known[96];
    int layer = -1, end = 0;
    const char *bare = name;
    if (sscanf(name, "blk.%d.%n", &layer, &end) == 1 && end > 0)
        bare = name + end;
    for (int role = 0; role < LST_N_ROLES; role++) {
        if (strcmp(bare, names[role]) != 0)
            continue;
        const int places[] = {layer, -1, (int)arch->layers};
        for (size_t i = 0; i < 3; i++) {
            size_t index = lst_arch_tensor_find(arch, (lst_role)role, places[i]);
            if (index >= n)
                continue;
            lst_arch_tensor_at(arch, index, &t);
            file_name(arch, &t, known, sizeof known);
            if (strcmp(known, name) == 0)
                return true;
        }
    }
    return false;
}

lst_status lst__gguf_check_weights(const lst_gguf *g, const lst_arch *arch, lst_error *err)
{
    const size_t n = lst_arch_tensor_count(arch);
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < n; i++) {
        lst_arch_tensor t;
        lst_arch_tensor_at(arch, i, &t);
        status = check_tensor(g, arch, &t, err);
    }
    for (size_t i = 0; status == LST_OK && i < g->n_tensors; i++)
        if (!is_known(arch, n, g->tensor[i].name) && strcmp(g->tensor[i].name, "rope_freqs.weight") != 0)
            status = lst__fail(err, LST_ERR_STATE, "%s: tensor \"%s\" is no part of a %s of %zu layers", g->path,
                               g->tensor[i].name, lst_family_name(arch->family), arch->layers);
    return status;
}

/* ---- values ---- */

static void decode_floats(const lst_gguf_tensor *t, size_t first, size_t n, float *out)
{
    if (t->type == LST_GGUF_F32) {
        memcpy(out, t->data + 4 * first, 4 * n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, t->data + 2 * (first + i), 2);
        out[i] = t->type == LST_GGUF_BF16 ? lst__bf16_to_f32(half) : lst__f16_to_f32(half);
    }
}

/* n values in the file's own order. */
static void decode(const lst_gguf_tensor *t, size_t first, size_t n, float *out)
{
    const lst__ggml_format *format = blocks_of(t->type);
    float block[256];
    if (!format) {
        decode_floats(t, first, n, out);
        return;
    }
    while (n > 0) {
        const size_t skip = first % format->values, left = format->values - skip, take = left < n ? left : n;
        format->decode(t->data + first / format->values * format->bytes, block);
        memcpy(out, block + skip, take * sizeof *out);
        first += take;
        out += take;
        n -= take;
    }
}

/* Where llama's converter put a row of q or k: its rotary positions turn neighbours, the model's turn halves. */
static size_t permuted_row(const lst_arch *arch, size_t row)
{
    const size_t d = arch->head_dim, in_head = row % d;
    return row - in_head + 2 * (in_head % (d / 2)) + in_head / (d / 2);
}

static bool is_permuted(const lst_arch *arch, lst_role role)
{
    return arch->family == LST_FAMILY_LLAMA &&
           (role == LST_ROLE_Q_W || role == LST_ROLE_Q_B || role == LST_ROLE_K_W || role == LST_ROLE_K_B);
}

void lst__gguf_values(const lst_gguf *g, const lst_arch *arch, size_t tensor, size_t first, size_t n, float *out)
{
    lst_arch_tensor t;
    char name[96];
    lst_arch_tensor_at(arch, tensor, &t);
    file_name(arch, &t, name, sizeof name);
    const lst_gguf_tensor *from = lst__gguf_find_tensor(g, name);
    if (is_transposed(arch, &t)) {
        for (size_t i = 0; i < n; i++)
            decode(from, (first + i) % t.dims[1] * t.dims[0] + (first + i) / t.dims[1], 1, out + i);
    } else if (is_permuted(arch, t.role)) {
        const size_t width = t.n_dims == 2 ? t.dims[1] : 1;
        while (n > 0) {
            const size_t column = first % width, take = width - column < n ? width - column : n;
            decode(from, permuted_row(arch, first / width) * width + column, take, out);
            first += take;
            out += take;
            n -= take;
        }
    } else {
        decode(from, first, n, out);
    }
}
