/* SPDX-License-Identifier: MIT
 *
 * Shapes of public models: what is needed to count a model's parameters exactly and to price a training run of it
 * by another trainer. Wider than lst_arch (arch.h), which holds what leanstep itself trains.
 *
 *     lst_shape shape;
 *     if (lst_shape_by_name("Qwen2.5-0.5B", &shape, &err) == LST_OK)
 *         printf("%" PRIu64 "\n", lst_shape_params(&shape)); // 494032768
 */
#ifndef LEANSTEP_MODELS_H
#define LEANSTEP_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/arch.h"
#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, config.json's model_type, whether the class ties the head to the embedding by default) */
#define LST_SHAPE_FAMILY_LIST(X)                                                                                       \
    X(GPT2, "gpt2", true)                                                                                              \
    X(LLAMA, "llama", false)                                                                                           \
    X(MISTRAL, "mistral", false)                                                                                       \
    X(QWEN2, "qwen2", false)                                                                                           \
    X(QWEN3, "qwen3", false)                                                                                           \
    X(PHI3, "phi3", false)                                                                                             \
    X(GEMMA, "gemma", true)                                                                                            \
    X(GEMMA2, "gemma2", true)                                                                                          \
    X(GEMMA3, "gemma3_text", true)                                                                                     \
    X(MIXTRAL, "mixtral", false)                                                                                       \
    X(DEEPSEEK_V2, "deepseek_v2", false)                                                                               \
    X(OPT, "opt", true)                                                                                                \
    X(GPT_NEOX, "gpt_neox", false)                                                                                     \
    X(PHI, "phi", false)                                                                                               \
    X(BERT, "bert", true)                                                                                              \
    X(T5, "t5", true)

typedef enum lst_shape_family {
#define LST_X(id, name, tied) LST_SHAPE_##id,
    LST_SHAPE_FAMILY_LIST(LST_X)
#undef LST_X
        LST_N_SHAPE_FAMILIES
} lst_shape_family;

LST_API const char *lst_shape_family_name(lst_shape_family family);

/* Fields that a family does not have are 0. */
typedef struct lst_shape {
    char name[96];
    lst_shape_family family;
    size_t vocab; /* rows of the embedding, padding included: not the number of tokens */
    size_t hidden, ffn, layers, heads, kv_heads, head_dim;
    size_t positions; /* rows of a learned position table (OPT: without its 2 extra rows) */
    bool tied;        /* the head is the embedding */
    bool qkv_bias, o_bias, mlp_bias;
    struct {                                                  /* mixture of experts */
        size_t experts, per_token, shared, ffn, dense_layers; /* dense_layers: first layers without experts */
    } moe;
    struct { /* multi-head latent attention, no compression of q */
        size_t rank, nope, rope, value;
    } mla;
    size_t embed_dim;      /* OPT: width of the embedding; a projection in and out where it is not hidden */
    size_t types;          /* BERT: rows of the token type table */
    size_t decoder_layers; /* T5 */
    size_t buckets;        /* T5: relative positions */
    bool gated;            /* T5 v1.1: two input matrices in the MLP */
} lst_shape;

typedef enum lst_part {                     /* what a tensor is, as far as optimizers, adapters and sharding care */
                        LST_PART_EMBEDDING, /* token, position and type tables */
                        LST_PART_LINEAR,
                        LST_PART_HEAD, /* the untied head's matrix */
                        LST_PART_NORM,
                        LST_PART_BIAS
} lst_part;

typedef struct lst_shape_tensor {
    const char *name; /* the module's last name: "q_proj", "input_layernorm"; the same for its weight and bias */
    lst_part part;
    int layer;         /* -1 outside the layers */
    size_t rows, cols; /* as stored; cols 0 for a vector */
    bool transposed;   /* stored [in, out] (GPT-2) */
} lst_shape_tensor;

/* Calls visit for every parameter in the order of the model's parameters(): registration order of its modules. */
typedef void (*lst_shape_visit)(void *user, const lst_shape_tensor *tensor);
LST_API void lst_shape_each(const lst_shape *shape, lst_shape_visit visit, void *user);
/* Exact number of parameters (a tied head counts once), and of tensors. */
LST_API uint64_t lst_shape_params(const lst_shape *shape);
LST_API size_t lst_shape_tensors(const lst_shape *shape);

LST_API void lst_shape_from_arch(const lst_arch *arch, lst_shape *out);
/* config.json of any family of the list; another is refused by name, with what would be needed. */
LST_API LST_MUST_USE lst_status lst_shape_from_config(const char *json, size_t n_bytes, const char *source,
                                                      lst_shape *out, lst_error *err);
/* A public model by its name ("gpt2", "Llama-3.1-8B"; case and an "owner/" before it do not matter). */
LST_API LST_MUST_USE lst_status lst_shape_by_name(const char *name, lst_shape *out, lst_error *err);
/* What a user has, in order of trust: a folder or file of safetensors (config.json beside it), a GGUF file, a
 * config.json, a name. Only headers are read. A header is counted by name (masks, rotary tables and other buffers are
 * no parameters) and held against the config: LST_ERR_STATE has both numbers and the tensor that explains the
 * difference. */
LST_API LST_MUST_USE lst_status lst_shape_open(const char *model, lst_shape *out, lst_error *err);
/* The built-in names; NULL past the end. */
LST_API const char *lst_shape_builtin(size_t index);

/* Elements of a tensor. */
static inline uint64_t lst_shape_tensor_elems(const lst_shape_tensor *tensor)
{
    return (uint64_t)tensor->rows * (tensor->cols ? tensor->cols : 1);
}

#ifdef __cplusplus
}
#endif
#endif
