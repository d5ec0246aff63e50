/* SPDX-License-Identifier: MIT
 *
 * Public models by name. The fields are those of their config.json; totals are counted from the shapes.
 */
#include "leanstep/models.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

/* X(name, family, hidden, ffn, layers, heads, kv_heads, head_dim, vocab, learned positions, tied) */
#define MODELS(X)                                                                                                      \
    X("gpt2", GPT2, 768, 3072, 12, 12, 12, 64, 50257, 1024, 1)                                                         \
    X("gpt2-medium", GPT2, 1024, 4096, 24, 16, 16, 64, 50257, 1024, 1)                                                 \
    X("gpt2-large", GPT2, 1280, 5120, 36, 20, 20, 64, 50257, 1024, 1)                                                  \
    X("gpt2-xl", GPT2, 1600, 6400, 48, 25, 25, 64, 50257, 1024, 1)                                                     \
    X("Qwen2.5-0.5B", QWEN2, 896, 4864, 24, 14, 2, 64, 151936, 0, 1)                                                   \
    X("Qwen2.5-1.5B", QWEN2, 1536, 8960, 28, 12, 2, 128, 151936, 0, 1)                                                 \
    X("Qwen2.5-3B", QWEN2, 2048, 11008, 36, 16, 2, 128, 151936, 0, 1)                                                  \
    X("Qwen2.5-7B", QWEN2, 3584, 18944, 28, 28, 4, 128, 152064, 0, 0)                                                  \
    X("Llama-2-7b-hf", LLAMA, 4096, 11008, 32, 32, 32, 128, 32000, 0, 0)                                               \
    X("Llama-3.1-8B", LLAMA, 4096, 14336, 32, 32, 8, 128, 128256, 0, 0)                                                \
    X("Llama-3.2-1B", LLAMA, 2048, 8192, 16, 32, 8, 64, 128256, 0, 1)                                                  \
    X("Llama-3.2-3B", LLAMA, 3072, 8192, 28, 24, 8, 128, 128256, 0, 1)                                                 \
    X("Mistral-7B-v0.1", MISTRAL, 4096, 14336, 32, 32, 8, 128, 32000, 0, 0)                                            \
    X("Mixtral-8x7B-v0.1", MIXTRAL, 4096, 14336, 32, 32, 8, 128, 32000, 0, 0)                                          \
    X("gemma-2b", GEMMA, 2048, 16384, 18, 8, 1, 256, 256000, 0, 1)                                                     \
    X("gemma-3-270m", GEMMA3, 640, 2048, 18, 4, 1, 256, 262144, 0, 1)                                                  \
    X("SmolLM2-135M", LLAMA, 576, 1536, 30, 9, 3, 64, 49152, 0, 1)                                                     \
    X("phi-2", PHI, 2560, 10240, 32, 32, 32, 80, 51200, 0, 0)                                                          \
    X("Phi-3-mini-4k", PHI3, 3072, 8192, 32, 32, 32, 96, 32064, 0, 0)                                                  \
    X("opt-125m", OPT, 768, 3072, 12, 12, 12, 64, 50272, 2048, 1)                                                      \
    X("pythia-160m", GPT_NEOX, 768, 3072, 12, 12, 12, 64, 50304, 0, 0)                                                 \
    X("bert-base-uncased", BERT, 768, 3072, 12, 12, 12, 64, 30522, 512, 1)                                             \
    X("t5-small", T5, 512, 2048, 6, 8, 8, 64, 32128, 0, 1)                                                             \
    X("DeepSeek-R1-Distill-Qwen-1.5B", QWEN2, 1536, 8960, 28, 12, 2, 128, 151936, 0, 0)                                \
    X("distilgpt2", GPT2, 768, 3072, 6, 12, 12, 64, 50257, 1024, 1)                                                    \
    X("TinyLlama-1.1B", LLAMA, 2048, 5632, 22, 32, 4, 64, 32000, 0, 0)                                                 \
    X("SmolLM2-360M", LLAMA, 960, 2560, 32, 15, 5, 64, 49152, 0, 1)                                                    \
    X("SmolLM2-1.7B", LLAMA, 2048, 8192, 24, 32, 32, 64, 49152, 0, 1)                                                  \
    X("Llama-2-13b-hf", LLAMA, 5120, 13824, 40, 40, 40, 128, 32000, 0, 0)                                              \
    X("Llama-3.1-70B", LLAMA, 8192, 28672, 80, 64, 8, 128, 128256, 0, 0)                                               \
    X("Qwen3-0.6B", QWEN3, 1024, 3072, 28, 16, 8, 128, 151936, 0, 1)                                                   \
    X("Qwen3-1.7B", QWEN3, 2048, 6144, 28, 16, 8, 128, 151936, 0, 1)                                                   \
    X("Qwen3-4B", QWEN3, 2560, 9728, 36, 32, 8, 128, 151936, 0, 1)                                                     \
    X("Qwen3-8B", QWEN3, 4096, 12288, 36, 32, 8, 128, 151936, 0, 0)                                                    \
    X("Qwen2.5-72B", QWEN2, 8192, 29568, 80, 64, 8, 128, 152064, 0, 0)                                                 \
    X("gemma-2-2b", GEMMA2, 2304, 9216, 26, 8, 4, 256, 256000, 0, 1)                                                   \
    X("gemma-3-1b", GEMMA3, 1152, 6912, 26, 4, 1, 256, 262144, 0, 1)                                                   \
    X("pythia-70m", GPT_NEOX, 512, 2048, 6, 8, 8, 64, 50304, 0, 0)                                                     \
    X("pythia-410m", GPT_NEOX, 1024, 4096, 24, 16, 16, 64, 50304, 0, 0)                                                \
    X("pythia-1.4b", GPT_NEOX, 2048, 8192, 24, 16, 16, 128, 50304, 0, 0)                                               \
    X("pythia-2.8b", GPT_NEOX, 2560, 10240, 32, 32, 32, 80, 50304, 0, 0)                                               \
    X("opt-350m", OPT, 1024, 4096, 24, 16, 16, 64, 50272, 2048, 1)                                                     \
    X("opt-1.3b", OPT, 2048, 8192, 24, 32, 32, 64, 50272, 2048, 1)                                                     \
    X("bert-large-uncased", BERT, 1024, 4096, 24, 16, 16, 64, 30522, 512, 1)                                           \
    X("DeepSeek-V2-Lite", DEEPSEEK_V2, 2048, 10944, 27, 16, 0, 0, 102400, 0, 0)

typedef struct entry {
    const char *name;
    lst_shape_family family;
    size_t hidden, ffn, layers, heads, kv_heads, head_dim, vocab, positions;
    bool tied;
} entry;

static const entry entries[] = {
#define X(name, family, h, i, l, a, g, d, v, pos, tied) {name, LST_SHAPE_##family, h, i, l, a, g, d, v, pos, tied},
    MODELS(X)
#undef X
};
#define N_ENTRIES (sizeof entries / sizeof *entries)

const char *lst_shape_builtin(size_t index)
{
    return index < N_ENTRIES ? entries[index].name : NULL;
}

/* What only one model or family of the table has. */
static void add_family_fields(lst_shape *s)
{
    switch (s->family) {
    case LST_SHAPE_QWEN2:
        s->qkv_bias = true;
        break;
    case LST_SHAPE_MIXTRAL:
        s->moe.experts = 8;
        s->moe.per_token = 2;
        break;
    case LST_SHAPE_DEEPSEEK_V2:
        s->moe.experts = 64;
        s->moe.per_token = 6;
        s->moe.shared = 2;
        s->moe.ffn = 1408;
        s->moe.dense_layers = 1;
        s->mla.rank = 512;
        s->mla.nope = 128;
        s->mla.rope = 64;
        s->mla.value = 128;
        break;
    case LST_SHAPE_OPT:
        s->embed_dim = s->hidden == 1024 ? 512 : s->hidden; /* opt-350m */
        break;
    case LST_SHAPE_BERT:
        s->types = 2;
        break;
    case LST_SHAPE_T5:
        s->decoder_layers = s->layers;
        s->buckets = 32;
        break;
    default:
        break;
    }
    if (s->family == LST_SHAPE_GPT2 || s->family == LST_SHAPE_OPT || s->family == LST_SHAPE_GPT_NEOX ||
        s->family == LST_SHAPE_PHI || s->family == LST_SHAPE_BERT)
        s->qkv_bias = s->o_bias = s->mlp_bias = true;
}

static void fill(const entry *e, lst_shape *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", e->name);
    out->family = e->family;
    out->hidden = e->hidden;
    out->ffn = e->ffn;
    out->layers = e->layers;
    out->heads = e->heads;
    out->kv_heads = e->kv_heads;
    out->head_dim = e->head_dim;
    out->vocab = e->vocab;
    out->positions = e->positions;
    out->tied = e->tied;
    add_family_fields(out);
}

lst_status lst_shape_by_name(const char *name, lst_shape *out, lst_error *err)
{
    const char *slash = strrchr(name, '/');
    const char *bare = slash ? slash + 1 : name;
    for (size_t i = 0; i < N_ENTRIES; i++) {
        if (strcasecmp(entries[i].name, bare) == 0) {
            fill(&entries[i], out);
            return LST_OK;
        }
    }
    return lst__fail(
        err, LST_ERR_ARGUMENT,
        "\"%.80s\" is not among the %zu built-in models (\"gpt2\", \"Qwen2.5-0.5B\", \"Llama-3.1-8B\", ...); "
        "give its config.json, a .safetensors or .gguf file, or --params N",
        name, N_ENTRIES);
}
