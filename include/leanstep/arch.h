/* SPDX-License-Identifier: MIT
 *
 * Architectures: the shape of a decoder-only transformer, as data, and the tensors it is made of.
 */
#ifndef LEANSTEP_ARCH_H
#define LEANSTEP_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, config.json's model_type) */
#define LST_FAMILY_LIST(X)                                                                                             \
    X(GPT2, "gpt2")                                                                                                    \
    X(LLAMA, "llama")                                                                                                  \
    X(MISTRAL, "mistral")                                                                                              \
    X(QWEN2, "qwen2")                                                                                                  \
    X(QWEN3, "qwen3")

typedef enum lst_family {
#define LST_X(id, name) LST_FAMILY_##id,
    LST_FAMILY_LIST(LST_X)
#undef LST_X
        LST_N_FAMILIES
} lst_family;

LST_API const char *lst_family_name(lst_family family);

/* Symbols in comments: V vocab, C hidden, L layers, H heads, KV kv_heads, D head_dim, F ffn, P max_positions. */
typedef struct lst_arch {
    lst_family family;
    size_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, max_positions;
    double norm_eps;
    double init_range; /* standard deviation of random initial weights */
    double rope_theta;
    struct {
        bool llama3; /* Llama-3's frequency scaling; the fields below mean nothing without it */
        double factor, low_freq_factor, high_freq_factor;
        size_t original_positions;
    } rope_scaling;
    bool layer_norm;        /* LayerNorm with bias (GPT-2); otherwise RMSNorm */
    bool learned_positions; /* GPT-2; otherwise rotary */
    bool gelu_mlp;          /* fc, GELU-tanh, proj (GPT-2); otherwise SwiGLU: gate, up, down */
    bool fused_qkv;         /* one c_attn tensor; otherwise q, k, v apart */
    bool conv1d;            /* matrices stored [in, out] (GPT-2's Conv1D); otherwise [out, in] */
    bool qkv_bias, o_bias, mlp_bias, qk_norm;
    bool tied; /* head shares the embedding */
} lst_arch;

/* What a tensor is for. The model finds its weights by (role, layer). */
/* clang-format off */
#define LST_ROLE_LIST(X)                                                                                   \
    X(EMBED) X(POSITIONS) X(NORM1_W) X(NORM1_B) X(QKV_W) X(QKV_B) X(Q_W) X(Q_B) X(K_W) X(K_B) X(V_W)       \
    X(V_B) X(Q_NORM) X(K_NORM) X(O_W) X(O_B) X(NORM2_W) X(NORM2_B) X(GATE_W) X(GATE_B) X(UP_W) X(UP_B)     \
    X(DOWN_W) X(DOWN_B) X(NORMF_W) X(NORMF_B) X(HEAD_W)
/* clang-format on */
/* GPT-2's mlp.c_fc is UP, its mlp.c_proj is DOWN, its attn.c_attn is QKV and its attn.c_proj is O. */

typedef enum lst_role {
#define LST_X(id) LST_ROLE_##id,
    LST_ROLE_LIST(LST_X)
#undef LST_X
        LST_N_ROLES
} lst_role;

typedef struct lst_arch_tensor {
    char name[96]; /* Hugging Face's name */
    lst_role role;
    int layer; /* 0..L-1; -1 for embeddings; L for the final norm and head */
    size_t n_dims;
    size_t dims[2];
    size_t n_elems;
} lst_arch_tensor;

/* Checks every field; LST_ERR_ARGUMENT names the first that is wrong and why. */
LST_API LST_MUST_USE lst_status lst_arch_check(const lst_arch *arch, lst_error *err);
/* The family's defaults (what transformers assumes for keys a config leaves out). */
LST_API void lst_arch_default(lst_family family, lst_arch *out);

/* Reads a config.json's text (old and new field names). What is not implemented is refused by name, never
 * approximated. `source` is the file's name for messages. */
LST_API LST_MUST_USE lst_status lst_arch_from_config(const char *json, size_t n_bytes, const char *source,
                                                     lst_arch *out, lst_error *err);
/* Writes config.json text that transformers loads (caller frees with free()). `dtype` is "float32", "bfloat16" or
 * "float16". */
LST_API LST_MUST_USE lst_status lst_arch_to_config(const lst_arch *arch, const char *dtype, char **json,
                                                   lst_error *err);

/* Number of tensors, and the i-th, in storage order: embeddings, layers 0..L-1, final norm, head (if not tied). */
LST_API size_t lst_arch_tensor_count(const lst_arch *arch);
LST_API void lst_arch_tensor_at(const lst_arch *arch, size_t index, lst_arch_tensor *out);
/* Index of (role, layer), or SIZE_MAX if this architecture has no such tensor. */
LST_API size_t lst_arch_tensor_find(const lst_arch *arch, lst_role role, int layer);
LST_API uint64_t lst_arch_params(const lst_arch *arch); /* exact; a tied head counts once */
/* Norms and biases (every tensor of fewer than two dimensions) take no weight decay. */
LST_API bool lst_arch_tensor_decays(const lst_arch_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
