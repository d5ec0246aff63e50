/* SPDX-License-Identifier: MIT
 *
 * An architecture to config.json. Rotary settings are written under their old names, which every version of
 * transformers reads (4.x ignores rope_parameters without a word and takes theta 10000).
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "io/json.h"
#include "plan/config.h"

typedef struct writer {
    json_t *object;
    bool failed;
} writer;

static void put(writer *w, const char *key, json_t *value)
{
    if (json_object_set_new(w->object, key, value) != 0)
        w->failed = true;
}

static void put_size(writer *w, const char *key, size_t value)
{
    put(w, key, json_integer((json_int_t)value));
}

static void put_gpt2(writer *w, const lst_arch *a)
{
    put_size(w, "n_embd", a->hidden);
    put_size(w, "n_layer", a->layers);
    put_size(w, "n_head", a->heads);
    put_size(w, "n_inner", a->ffn);
    put_size(w, "n_positions", a->max_positions);
    put(w, "layer_norm_epsilon", json_real(a->norm_eps));
    put(w, "activation_function", json_string("gelu_new"));
    /* What transformers assumes is 0.1; nothing here was trained with dropout. */
    put(w, "resid_pdrop", json_real(0));
    put(w, "embd_pdrop", json_real(0));
    put(w, "attn_pdrop", json_real(0));
}

static json_t *scaling_object(const lst_arch *a)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", a->rope_scaling.factor,
                     "low_freq_factor", a->rope_scaling.low_freq_factor, "high_freq_factor",
                     a->rope_scaling.high_freq_factor, "original_max_position_embeddings",
                     (json_int_t)a->rope_scaling.original_positions);
}

static void put_llama(writer *w, const lst_arch *a)
{
    put_size(w, "hidden_size", a->hidden);
    put_size(w, "intermediate_size", a->ffn);
    put_size(w, "num_hidden_layers", a->layers);
    put_size(w, "num_attention_heads", a->heads);
    put_size(w, "num_key_value_heads", a->kv_heads);
    /* Qwen2 has no such key and takes hidden / heads. */
    if (a->family != LST_FAMILY_QWEN2 || a->head_dim * a->heads != a->hidden)
        put_size(w, "head_dim", a->head_dim);
    put_size(w, "max_position_embeddings", a->max_positions);
    put(w, "rms_norm_eps", json_real(a->norm_eps));
    put(w, "rope_theta", json_real(a->rope_theta));
    put(w, "rope_scaling", a->rope_scaling.llama3 ? scaling_object(a) : json_null());
    put(w, "hidden_act", json_string("silu"));
    if (a->family == LST_FAMILY_LLAMA || a->family == LST_FAMILY_QWEN3)
        put(w, "attention_bias", json_boolean(a->o_bias));
    if (a->family == LST_FAMILY_LLAMA)
        put(w, "mlp_bias", json_boolean(a->mlp_bias));
    if (a->family == LST_FAMILY_MISTRAL)
        put(w, "sliding_window", json_null());
    if (a->family == LST_FAMILY_QWEN2 || a->family == LST_FAMILY_QWEN3)
        put(w, "use_sliding_window", json_false());
}

static bool same_numbers(const lst_arch *a, const lst_arch *b)
{
    return a->norm_eps == b->norm_eps && a->init_range == b->init_range && a->rope_theta == b->rope_theta &&
           a->rope_scaling.factor == b->rope_scaling.factor &&
           a->rope_scaling.low_freq_factor == b->rope_scaling.low_freq_factor &&
           a->rope_scaling.high_freq_factor == b->rope_scaling.high_freq_factor;
}

/* With as few digits as give the same numbers back: 1e-05, not 1.0000000000000001e-05. */
static lst_status dump(const json_t *object, const lst_arch *arch, char **out, lst_error *err)
{
    static const unsigned digits[] = {6, 9, 12, 17};
    for (size_t i = 0; i < sizeof digits / sizeof digits[0]; i++) {
        lst_arch back;
        char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(digits[i]));
        if (!text)
            return lst__fail_memory(err, "the text of a config.json", 4096);
        lst_status status = lst_arch_from_config(text, strlen(text), "config.json", &back, err);
        if (status == LST_OK && (same_numbers(&back, arch) || digits[i] == 17)) {
            *out = text;
            return LST_OK;
        }
        free(text);
        if (status != LST_OK && digits[i] == 17)
            return status;
    }
    return LST_OK;
}

lst_status lst_arch_to_config(const lst_arch *arch, const char *dtype, char **json, lst_error *err)
{
    lst_status status = lst_arch_check(arch, err);
    if (status != LST_OK)
        return status;
    if (strcmp(dtype, "float32") != 0 && strcmp(dtype, "bfloat16") != 0 && strcmp(dtype, "float16") != 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "dtype \"%s\": there are float32, bfloat16 and float16", dtype);
    writer w = {.object = json_object()};
    if (!w.object)
        return lst__fail_memory(err, "the text of a config.json", 4096);
    put(&w, "architectures", json_pack("[s]", lst__family_class(arch->family)));
    put(&w, "model_type", json_string(lst_family_name(arch->family)));
    put(&w, "torch_dtype", json_string(dtype));
    put_size(&w, "vocab_size", arch->vocab);
    if (arch->family == LST_FAMILY_GPT2)
        put_gpt2(&w, arch);
    else
        put_llama(&w, arch);
    put(&w, "initializer_range", json_real(arch->init_range));
    put(&w, "tie_word_embeddings", json_boolean(arch->tied));
    status = w.failed ? lst__fail_memory(err, "the text of a config.json", 4096) : dump(w.object, arch, json, err);
    json_decref(w.object);
    return status;
}
