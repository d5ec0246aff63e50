/* SPDX-License-Identifier: MIT
 *
 * config.json to an architecture. Keys are of three kinds: those that decide something here, those that decide
 * nothing (token ids, bookkeeping), and all others, which are refused unless null or false: a key that nobody knows
 * may change the arithmetic. Old files keep rotary settings in rope_theta and rope_scaling, new ones in
 * rope_parameters; both are read, and must agree.
 */
#include <string.h>

#include "base/fail.h"
#include "io/json.h"
#include "plan/config.h"

/* Reading goes on through the first failure only: every getter does nothing once status is not OK. */
typedef struct reader {
    const json_t *root;
    const char *source;
    lst_status status;
    lst_error *err;
} reader;

static void get_size(reader *r, const char *key, size_t *out)
{
    if (r->status == LST_OK && lst__json_has(r->root, key))
        r->status = lst__json_get_size(r->root, r->source, key, out, r->err);
}

static void get_real(reader *r, const char *key, double *out)
{
    if (r->status == LST_OK && lst__json_has(r->root, key))
        r->status = lst__json_get_real(r->root, r->source, key, out, r->err);
}

static void get_bool(reader *r, const char *key, bool *out)
{
    if (r->status == LST_OK && lst__json_has(r->root, key))
        r->status = lst__json_get_bool(r->root, r->source, key, out, r->err);
}

static void refuse(reader *r, const char *key, const char *found, const char *expected)
{
    if (r->status == LST_OK)
        r->status = lst__fail(r->err, LST_ERR_UNSUPPORTED, "%s: %s is %s, which is not implemented; expected %s",
                              r->source, key, found, expected);
}

/* ---- keys whose only implemented value is one ---- */

static void expect_bool(reader *r, const char *key, bool expected)
{
    bool found = expected;
    get_bool(r, key, &found);
    if (found != expected)
        refuse(r, key, found ? "true" : "false", expected ? "true" : "false");
}

static void expect_real(reader *r, const char *key, double expected)
{
    double found = expected;
    char text[32], wanted[32];
    get_real(r, key, &found);
    snprintf(text, sizeof text, "%g", found);
    snprintf(wanted, sizeof wanted, "%g", expected);
    if (found != expected)
        refuse(r, key, text, wanted);
}

static void expect_activation(reader *r, const char *key, const char *first, const char *second)
{
    const char *found = first;
    if (r->status == LST_OK && lst__json_has(r->root, key))
        r->status = lst__json_get_string(r->root, r->source, key, &found, r->err);
    if (r->status == LST_OK && strcmp(found, first) != 0 && strcmp(found, second) != 0)
        refuse(r, key, found, first);
}

/* ---- family, classes, keys ---- */

static const char *const class_names[LST_N_FAMILIES] = {"GPT2LMHeadModel", "LlamaForCausalLM", "MistralForCausalLM",
                                                        "Qwen2ForCausalLM", "Qwen3ForCausalLM"};

const char *lst__family_class(lst_family family)
{
    return class_names[family];
}

static void read_family(reader *r, lst_family *out)
{
    const char *type = NULL;
    if (r->status == LST_OK)
        r->status = lst__json_get_string(r->root, r->source, "model_type", &type, r->err);
    if (r->status != LST_OK)
        return;
    for (int f = 0; f < LST_N_FAMILIES; f++)
        if (!strcmp(type, lst_family_name((lst_family)f))) {
            *out = (lst_family)f;
            return;
        }
    r->status =
        lst__fail(r->err, LST_ERR_UNSUPPORTED,
                  "%s: model_type is \"%.60s\"; implemented are gpt2, llama, mistral, qwen2, qwen3", r->source, type);
}

static void check_class(reader *r, lst_family family)
{
    json_t *classes = NULL;
    if (r->status != LST_OK || !lst__json_has(r->root, "architectures"))
        return;
    r->status = lst__json_get_array(r->root, r->source, "architectures", &classes, r->err);
    for (size_t i = 0; r->status == LST_OK && i < json_array_size(classes); i++) {
        const char *name = json_string_value(json_array_get(classes, i));
        if (!name || strcmp(name, class_names[family]) != 0)
            refuse(r, "architectures", name ? name : "no string", class_names[family]);
    }
}

/* Decide something here; families differ in which, which get_* sorts out. */
static const char *const known_keys[] = {"model_type",
                                         "architectures",
                                         "vocab_size",
                                         "hidden_size",
                                         "intermediate_size",
                                         "num_hidden_layers",
                                         "num_attention_heads",
                                         "num_key_value_heads",
                                         "head_dim",
                                         "max_position_embeddings",
                                         "rms_norm_eps",
                                         "initializer_range",
                                         "rope_theta",
                                         "rope_scaling",
                                         "rope_parameters",
                                         "tie_word_embeddings",
                                         "attention_bias",
                                         "mlp_bias",
                                         "hidden_act",
                                         "attention_dropout",
                                         "sliding_window",
                                         "use_sliding_window",
                                         "max_window_layers",
                                         "layer_types",
                                         "quantization_config",
                                         "pretraining_tp",
                                         "partial_rotary_factor",
                                         "n_positions",
                                         "n_embd",
                                         "n_layer",
                                         "n_head",
                                         "n_inner",
                                         "n_ctx",
                                         "activation_function",
                                         "layer_norm_epsilon",
                                         "scale_attn_weights",
                                         "scale_attn_by_inverse_layer_idx",
                                         "reorder_and_upcast_attn",
                                         "add_cross_attention",
                                         "resid_pdrop",
                                         "embd_pdrop",
                                         "attn_pdrop",
                                         "is_decoder",
                                         "is_encoder_decoder"};

/* Token ids, file bookkeeping, text generation, heads for other tasks: nothing that changes a language model's
 * arithmetic. Dropout of GPT-2 is among the known keys and not applied. */
static const char *const harmless_keys[] = {"torch_dtype",
                                            "dtype",
                                            "transformers_version",
                                            "bos_token_id",
                                            "eos_token_id",
                                            "pad_token_id",
                                            "unk_token_id",
                                            "sep_token_id",
                                            "cls_token_id",
                                            "decoder_start_token_id",
                                            "use_cache",
                                            "task_specific_params",
                                            "name_or_path",
                                            "auto_map",
                                            "return_dict",
                                            "output_hidden_states",
                                            "output_attentions",
                                            "summary_activation",
                                            "summary_first_dropout",
                                            "summary_proj_to_labels",
                                            "summary_type",
                                            "summary_use_proj",
                                            "problem_type",
                                            "finetuning_task",
                                            "id2label",
                                            "label2id",
                                            "num_labels",
                                            "tokenizer_class",
                                            "prefix",
                                            "gradient_checkpointing",
                                            "chunk_size_feed_forward",
                                            "max_length",
                                            "min_length",
                                            "do_sample",
                                            "temperature",
                                            "top_k",
                                            "top_p",
                                            "typical_p",
                                            "num_beams",
                                            "num_beam_groups",
                                            "num_return_sequences",
                                            "length_penalty",
                                            "repetition_penalty",
                                            "early_stopping",
                                            "use_bfloat16",
                                            "torchscript",
                                            "tie_encoder_decoder",
                                            "bad_words_ids",
                                            "suppress_tokens",
                                            "begin_suppress_tokens",
                                            "forced_bos_token_id",
                                            "forced_eos_token_id",
                                            "no_repeat_ngram_size",
                                            "encoder_no_repeat_ngram_size",
                                            "diversity_penalty",
                                            "exponential_decay_length_penalty",
                                            "remove_invalid_values",
                                            "return_dict_in_generate",
                                            "output_scores",
                                            "pruned_heads",
                                            "cross_attention_hidden_size",
                                            "tf_legacy_loss",
                                            "is_llama_config",
                                            "rope_interleaved",
                                            "use_mrope",
                                            "transformers.js_config",
                                            "n_special",
                                            "predict_special_tokens",
                                            "afn"};

static bool listed(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(key, list[i]))
            return true;
    return false;
}

#define LISTED(key, list) listed(key, list, sizeof list / sizeof list[0])

/* Whether two words differ by one letter (more, less, or another): what a slip of the hand does to a key. */
static bool one_letter_apart(const char *a, const char *b)
{
    size_t n_a = strlen(a), n_b = strlen(b), same = 0;
    if (n_a > n_b + 1 || n_b > n_a + 1)
        return false;
    while (a[same] && a[same] == b[same])
        same++;
    const char *rest_a = a + same + (n_a >= n_b && a[same]), *rest_b = b + same + (n_b >= n_a && b[same]);
    return !strcmp(rest_a, rest_b);
}

static void check_keys(reader *r)
{
    const char *key;
    json_t *value;
    if (r->status != LST_OK)
        return;
    json_object_foreach((json_t *)r->root, key, value)
    {
        if (key[0] == '_' || LISTED(key, known_keys) || LISTED(key, harmless_keys))
            continue;
        for (size_t i = 0; i < sizeof known_keys / sizeof known_keys[0]; i++)
            if (one_letter_apart(key, known_keys[i])) {
                r->status = lst__fail(r->err, LST_ERR_FORMAT, "%s: there is no key \"%.60s\"; did you mean \"%s\"?",
                                      r->source, key, known_keys[i]);
                return;
            }
        if (json_is_null(value) || json_is_false(value))
            continue;
        r->status = lst__fail(r->err, LST_ERR_UNSUPPORTED,
                              "%s: the key \"%.60s\" is not known here and may change the model; remove it if it does "
                              "not",
                              r->source, key);
        return;
    }
}

/* ---- rotary positions ---- */

static void read_scaling(reader *r, const json_t *object, const char *key, lst_arch *out)
{
    const char *type = "default";
    reader inner = {.root = object, .source = key, .status = r->status, .err = r->err};
    const char *name = lst__json_has(object, "rope_type") ? "rope_type" : "type";
    if (inner.status == LST_OK && lst__json_has(object, name))
        inner.status = lst__json_get_string(object, key, name, &type, r->err);
    expect_real(&inner, "partial_rotary_factor", 1);
    if (inner.status == LST_OK && !strcmp(type, "llama3")) {
        out->rope_scaling.llama3 = true;
        get_real(&inner, "factor", &out->rope_scaling.factor);
        get_real(&inner, "low_freq_factor", &out->rope_scaling.low_freq_factor);
        get_real(&inner, "high_freq_factor", &out->rope_scaling.high_freq_factor);
        get_size(&inner, "original_max_position_embeddings", &out->rope_scaling.original_positions);
    } else if (inner.status == LST_OK && strcmp(type, "default") != 0) {
        r->status = inner.status;
        refuse(r, key, type, "default or llama3");
        return;
    }
    r->status = inner.status;
}

static json_t *rope_object(reader *r, const char *key)
{
    json_t *object = NULL;
    if (r->status == LST_OK && lst__json_has(r->root, key))
        r->status = lst__json_get_object(r->root, r->source, key, &object, r->err);
    return r->status == LST_OK ? object : NULL;
}

static void read_rope(reader *r, lst_arch *out)
{
    json_t *scaling = rope_object(r, "rope_scaling"), *parameters = rope_object(r, "rope_parameters");
    lst_arch old = *out, new = *out;
    get_real(r, "rope_theta", &old.rope_theta);
    if (scaling)
        read_scaling(r, scaling, "rope_scaling", &old);
    if (!parameters || r->status != LST_OK) {
        *out = old;
        return;
    }
    reader inner = {.root = parameters, .source = "rope_parameters", .status = LST_OK, .err = r->err};
    get_real(&inner, "rope_theta", &new.rope_theta);
    r->status = inner.status;
    read_scaling(r, parameters, "rope_parameters", &new);
    bool theta_twice = lst__json_has(r->root, "rope_theta") && lst__json_has(parameters, "rope_theta");
    if (r->status == LST_OK && theta_twice && old.rope_theta != new.rope_theta)
        r->status = lst__fail(r->err, LST_ERR_FORMAT,
                              "%s: rope_theta is %g, but rope_parameters.rope_theta is %g; remove the wrong one",
                              r->source, old.rope_theta, new.rope_theta);
    if (r->status == LST_OK && scaling &&
        (old.rope_scaling.llama3 != new.rope_scaling.llama3 || old.rope_scaling.factor != new.rope_scaling.factor))
        r->status =
            lst__fail(r->err, LST_ERR_FORMAT,
                      "%s: rope_scaling and rope_parameters contradict each other; remove the wrong one", r->source);
    if (!lst__json_has(parameters, "rope_theta"))
        new.rope_theta = old.rope_theta;
    *out = new;
}

/* ---- attention windows ---- */

/* A window that is no shorter than the context changes nothing. */
static void check_window(reader *r, const lst_arch *arch)
{
    bool use = arch->family == LST_FAMILY_MISTRAL;
    size_t window = arch->family == LST_FAMILY_MISTRAL ? 4096 : SIZE_MAX; /* what transformers assumes for Mistral */
    get_bool(r, "use_sliding_window", &use);
    if (json_is_null(json_object_get(r->root, "sliding_window")))
        window = SIZE_MAX;
    get_size(r, "sliding_window", &window);
    if (r->status == LST_OK && use && window < arch->max_positions)
        r->status = lst__fail(
            r->err, LST_ERR_UNSUPPORTED,
            "%s: sliding_window is %zu%s for a context of %zu, which is not implemented; expected null, "
            "or a window as long as the context",
            r->source, window, lst__json_has(r->root, "sliding_window") ? "" : " by default", arch->max_positions);
    json_t *types = NULL;
    if (r->status == LST_OK && lst__json_has(r->root, "layer_types"))
        r->status = lst__json_get_array(r->root, r->source, "layer_types", &types, r->err);
    for (size_t i = 0; r->status == LST_OK && i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (!type || strcmp(type, "full_attention") != 0)
            refuse(r, "layer_types", type ? type : "no string", "full_attention everywhere");
    }
}

/* ---- the two dialects ---- */

static void read_gpt2(reader *r, lst_arch *out)
{
    get_size(r, "n_embd", &out->hidden);
    get_size(r, "n_layer", &out->layers);
    get_size(r, "n_head", &out->heads);
    get_size(r, "n_positions", &out->max_positions);
    out->ffn = out->hidden <= SIZE_MAX / 4 ? 4 * out->hidden : 0;
    get_size(r, "n_inner", &out->ffn);
    get_real(r, "layer_norm_epsilon", &out->norm_eps);
    expect_activation(r, "activation_function", "gelu_new", "gelu_pytorch_tanh");
    expect_bool(r, "scale_attn_weights", true);
    expect_bool(r, "scale_attn_by_inverse_layer_idx", false);
    expect_bool(r, "reorder_and_upcast_attn", false);
    expect_bool(r, "add_cross_attention", false);
    if (r->status == LST_OK && (!out->heads || out->hidden % out->heads))
        r->status = lst__fail(r->err, LST_ERR_FORMAT, "%s: n_embd %zu is no multiple of n_head %zu", r->source,
                              out->hidden, out->heads);
    if (r->status == LST_OK) {
        out->head_dim = out->hidden / out->heads;
        out->kv_heads = out->heads;
    }
}

static void read_heads(reader *r, lst_arch *out)
{
    size_t kv_default = out->kv_heads;
    get_size(r, "num_attention_heads", &out->heads);
    /* Llama's default is "as many as heads"; the other families' is a number, but null means the same for all. */
    json_t *kv = json_object_get(r->root, "num_key_value_heads");
    out->kv_heads = out->family == LST_FAMILY_LLAMA || json_is_null(kv) ? out->heads : kv_default;
    get_size(r, "num_key_value_heads", &out->kv_heads);
    if (r->status != LST_OK)
        return;
    bool written = lst__json_has(r->root, "head_dim");
    /* Qwen3's head_dim is 128 when left out, whatever the width. */
    if (written || (out->family == LST_FAMILY_QWEN3 && !json_object_get(r->root, "head_dim"))) {
        out->head_dim = 128;
        get_size(r, "head_dim", &out->head_dim);
    } else if (!out->heads || out->hidden % out->heads) {
        r->status =
            lst__fail(r->err, LST_ERR_FORMAT,
                      "%s: hidden_size %zu is no multiple of num_attention_heads %zu, and head_dim is not given",
                      r->source, out->hidden, out->heads);
    } else {
        out->head_dim = out->hidden / out->heads;
    }
}

static void read_llama(reader *r, lst_arch *out)
{
    get_size(r, "hidden_size", &out->hidden);
    get_size(r, "intermediate_size", &out->ffn);
    get_size(r, "num_hidden_layers", &out->layers);
    get_size(r, "max_position_embeddings", &out->max_positions);
    get_real(r, "rms_norm_eps", &out->norm_eps);
    read_heads(r, out);
    read_rope(r, out);
    expect_activation(r, "hidden_act", "silu", "swish");
    expect_real(r, "attention_dropout", 0);
    expect_real(r, "pretraining_tp", 1);
    expect_real(r, "partial_rotary_factor", 1);
    bool bias = false, mlp_bias = false;
    get_bool(r, "attention_bias", &bias);
    get_bool(r, "mlp_bias", &mlp_bias);
    bool may_bias = out->family == LST_FAMILY_LLAMA || out->family == LST_FAMILY_QWEN3;
    if (bias && !may_bias)
        refuse(r, "attention_bias", "true", "false for this family");
    if (mlp_bias && out->family != LST_FAMILY_LLAMA)
        refuse(r, "mlp_bias", "true", "false for this family");
    out->qkv_bias |= bias;
    out->o_bias = bias;
    out->mlp_bias = mlp_bias;
    check_window(r, out);
}

/* The size check's messages speak of "architecture"; put the file in front. */
static lst_status check_in_file(const lst_arch *arch, const char *source, lst_error *err)
{
    lst_error inner;
    lst_status status = lst_arch_check(arch, &inner);
    return status == LST_OK ? status : lst__fail(err, LST_ERR_FORMAT, "%s: %s", source, inner.message);
}

lst_status lst_arch_from_config(const char *json, size_t n_bytes, const char *source, lst_arch *out, lst_error *err)
{
    json_t *root = NULL;
    lst_arch arch;
    lst_family family = LST_FAMILY_LLAMA;
    reader r = {.source = source, .err = err};
    r.status = lst__json_parse(&root, source, json, n_bytes, err);
    if (r.status != LST_OK)
        return r.status;
    r.root = root;
    if (!json_is_object(root))
        r.status = lst__fail(err, LST_ERR_FORMAT, "%s: found %s; expected an object with model_type and sizes", source,
                             lst__json_kind(root));
    read_family(&r, &family);
    check_class(&r, family);
    if (r.status == LST_OK && lst__json_has(root, "quantization_config"))
        refuse(&r, "quantization_config", "present (weights in another tool's packed format)",
               "float32, bfloat16 or float16 weights");
    check_keys(&r);
    lst_arch_default(family, &arch);
    get_size(&r, "vocab_size", &arch.vocab);
    get_real(&r, "initializer_range", &arch.init_range);
    get_bool(&r, "tie_word_embeddings", &arch.tied);
    if (family == LST_FAMILY_GPT2)
        read_gpt2(&r, &arch);
    else
        read_llama(&r, &arch);
    if (r.status == LST_OK)
        r.status = check_in_file(&arch, source, err);
    json_decref(root);
    if (r.status == LST_OK)
        *out = arch;
    return r.status;
}
