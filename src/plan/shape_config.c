/* SPDX-License-Identifier: MIT
 *
 * config.json of every family whose parameters can be counted. Keys that decide the count and are missing are an
 * error unless transformers has one value for them that all published models of the family share.
 */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "io/json.h"
#include "leanstep/models.h"

/* No published model comes near: wrong numbers end here, before products overflow. */
#define MAX_SIZE ((size_t)1 << 24)

typedef struct config {
    const json_t *json;
    const char *where;
    lst_error *err;
    lst_status status; /* the first failure */
} config;

static void fail_if(config *c, lst_status status)
{
    if (c->status == LST_OK)
        c->status = status;
}

static size_t required(config *c, const char *key)
{
    size_t value = 0;
    if (c->status != LST_OK)
        return 0;
    fail_if(c, lst__json_get_size(c->json, c->where, key, &value, c->err));
    if (c->status == LST_OK && (value == 0 || value > MAX_SIZE))
        fail_if(c, lst__fail(c->err, LST_ERR_FORMAT, "%s: \"%s\" is %zu; 1 to %zu was expected", c->where, key, value,
                             MAX_SIZE));
    return c->status == LST_OK ? value : 0;
}

static size_t optional(config *c, const char *key, size_t fallback)
{
    return lst__json_has(c->json, key) ? required(c, key) : fallback;
}

static bool flag(config *c, const char *key, bool fallback)
{
    bool value = fallback;
    if (c->status == LST_OK && lst__json_has(c->json, key))
        fail_if(c, lst__json_get_bool(c->json, c->where, key, &value, c->err));
    return value;
}

/* heads, kv_heads and head_dim: head_dim is read, and divided only if it is absent or null. */
static void read_heads(config *c, lst_shape *s, size_t default_dim)
{
    s->heads = required(c, "num_attention_heads");
    s->kv_heads = optional(c, "num_key_value_heads", s->heads);
    s->head_dim = optional(c, "head_dim", default_dim);
    if (c->status != LST_OK || s->head_dim)
        return;
    if (s->hidden % s->heads)
        fail_if(c,
                lst__fail(c->err, LST_ERR_FORMAT, "%s: %zu heads do not divide a width of %zu, and head_dim is absent",
                          c->where, s->heads, s->hidden));
    else
        s->head_dim = s->hidden / s->heads;
}

static void read_basic(config *c, lst_shape *s, const char *ffn)
{
    s->hidden = required(c, "hidden_size");
    s->ffn = required(c, ffn);
    s->layers = required(c, "num_hidden_layers");
    s->vocab = required(c, "vocab_size");
}

static void read_moe(config *c, lst_shape *s)
{
    if (s->family == LST_SHAPE_MIXTRAL) {
        s->moe.experts = required(c, "num_local_experts");
        s->moe.per_token = required(c, "num_experts_per_tok");
        return;
    }
    s->moe.experts = required(c, "n_routed_experts");
    s->moe.per_token = optional(c, "num_experts_per_tok", 0);
    s->moe.shared = optional(c, "n_shared_experts", 0);
    s->moe.ffn = required(c, "moe_intermediate_size");
    s->moe.dense_layers = optional(c, "first_k_dense_replace", 0);
    s->mla.rank = required(c, "kv_lora_rank");
    s->mla.nope = required(c, "qk_nope_head_dim");
    s->mla.rope = required(c, "qk_rope_head_dim");
    s->mla.value = required(c, "v_head_dim");
    if (lst__json_has(c->json, "q_lora_rank"))
        fail_if(c, lst__fail(c->err, LST_ERR_UNSUPPORTED, "%s: \"q_lora_rank\": compressed queries are not counted",
                             c->where));
}

static void read_llama_line(config *c, lst_shape *s)
{
    const bool gemma = s->family == LST_SHAPE_GEMMA || s->family == LST_SHAPE_GEMMA2 || s->family == LST_SHAPE_GEMMA3;
    read_basic(c, s, "intermediate_size");
    if (s->family == LST_SHAPE_DEEPSEEK_V2)
        s->heads = required(c, "num_attention_heads"); /* num_key_value_heads is there and means nothing */
    else
        read_heads(c, s, gemma ? 256 : s->family == LST_SHAPE_QWEN3 ? 128 : 0);
    if (s->family == LST_SHAPE_MIXTRAL || s->family == LST_SHAPE_DEEPSEEK_V2)
        read_moe(c, s);
    const bool bias = flag(c, "attention_bias", false);
    s->qkv_bias = bias || s->family == LST_SHAPE_QWEN2;
    s->o_bias = bias;
    s->mlp_bias = flag(c, "mlp_bias", false);
}

static void read_gpt2(config *c, lst_shape *s)
{
    s->hidden = optional(c, "n_embd", 768);
    s->ffn = optional(c, "n_inner", 4 * s->hidden);
    s->layers = optional(c, "n_layer", 12);
    s->heads = s->kv_heads = optional(c, "n_head", 12);
    s->vocab = optional(c, "vocab_size", 50257);
    s->positions = optional(c, "n_positions", 1024);
    s->head_dim = s->heads ? s->hidden / s->heads : 0;
    s->qkv_bias = s->o_bias = s->mlp_bias = true;
}

/* OPT, GPT-NeoX, Phi, BERT: LayerNorm, biases everywhere. */
static void read_biased(config *c, lst_shape *s)
{
    const bool opt = s->family == LST_SHAPE_OPT;
    read_basic(c, s, opt ? "ffn_dim" : "intermediate_size");
    read_heads(c, s, 0);
    s->qkv_bias = s->o_bias = s->mlp_bias = true;
    if (opt || s->family == LST_SHAPE_BERT)
        s->positions = required(c, "max_position_embeddings");
    if (s->family == LST_SHAPE_BERT)
        s->types = optional(c, "type_vocab_size", 2);
    if (!opt)
        return;
    s->embed_dim = optional(c, "word_embed_proj_dim", s->hidden);
    if (flag(c, "do_layer_norm_before", true) != (s->embed_dim == s->hidden))
        fail_if(c, lst__fail(c->err, LST_ERR_UNSUPPORTED,
                             "%s: \"do_layer_norm_before\" and \"word_embed_proj_dim\" combine as in no published OPT; "
                             "whether there is a final norm is not known",
                             c->where));
}

static void read_t5(config *c, lst_shape *s)
{
    const char *activation = "relu";
    s->hidden = required(c, "d_model");
    s->ffn = required(c, "d_ff");
    s->head_dim = required(c, "d_kv");
    s->heads = s->kv_heads = required(c, "num_heads");
    s->layers = required(c, "num_layers");
    s->decoder_layers = optional(c, "num_decoder_layers", s->layers);
    s->vocab = required(c, "vocab_size");
    s->buckets = optional(c, "relative_attention_num_buckets", 32);
    if (c->status == LST_OK && lst__json_has(c->json, "feed_forward_proj"))
        fail_if(c, lst__json_get_string(c->json, c->where, "feed_forward_proj", &activation, c->err));
    s->gated = strncmp(activation, "gated", 5) == 0;
}

static lst_status find_family(const json_t *json, const char *where, lst_shape *out, bool *tied, lst_error *err)
{
    static const struct {
        const char *name;
        bool tied;
    } families[] = {
#define LST_X(id, name, tied) {name, tied},
        LST_SHAPE_FAMILY_LIST(LST_X)
#undef LST_X
    };
    static const char *const nested[] = {"text_config", "llm_config", "language_config", "thinker_config"};
    char list[300] = "";
    const char *type = NULL;
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        if (lst__json_has(json, nested[i]))
            return lst__fail(
                err, LST_ERR_UNSUPPORTED,
                "%s: the language model's config is nested in \"%s\", beside towers that hold parameters of "
                "their own and are not counted; give the inner object as a file if only it is trained",
                where, nested[i]);
    }
    const lst_status status = lst__json_get_string(json, where, "model_type", &type, err);
    if (status != LST_OK)
        return status;
    for (size_t i = 0; i < LST_N_SHAPE_FAMILIES; i++) {
        if (strcmp(families[i].name, type) == 0) {
            out->family = (lst_shape_family)i;
            *tied = families[i].tied;
            return LST_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", families[i].name);
    }
    return lst__fail(
        err, LST_ERR_UNSUPPORTED,
        "%s: model_type \"%.60s\": what tensors it has is not known here; known are %s. A .safetensors file "
        "of it can be counted",
        where, type, list);
}

lst_status lst_shape_from_config(const char *json, size_t n_bytes, const char *source, lst_shape *out, lst_error *err)
{
    json_t *root = NULL;
    bool tied = false;
    lst_shape shape = {0};
    lst_status status = lst__json_parse(&root, source, json, n_bytes, err);
    if (status != LST_OK)
        return status;
    if (!json_is_object(root)) {
        status = lst__fail(err, LST_ERR_FORMAT, "%s holds %s; an object was expected", source, lst__json_kind(root));
        json_decref(root);
        return status;
    }
    config c = {.json = root, .where = source, .err = err};
    c.status = find_family(root, source, &shape, &tied, err);
    if (c.status == LST_OK && shape.family == LST_SHAPE_GPT2)
        read_gpt2(&c, &shape);
    else if (c.status == LST_OK && shape.family == LST_SHAPE_T5)
        read_t5(&c, &shape);
    else if (c.status == LST_OK && shape.family >= LST_SHAPE_OPT)
        read_biased(&c, &shape);
    else if (c.status == LST_OK)
        read_llama_line(&c, &shape);
    shape.tied = flag(&c, "tie_word_embeddings", tied);
    json_decref(root);
    if (c.status != LST_OK)
        return c.status;
    snprintf(shape.name, sizeof shape.name, "%s", lst_shape_family_name(shape.family));
    *out = shape;
    return LST_OK;
}
