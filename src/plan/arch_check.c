/* SPDX-License-Identifier: MIT
 *
 * What an architecture must satisfy, and what each family assumes for what a config leaves out.
 */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "leanstep/arch.h"

/* Sizes are passed to BLAS, whose integers may have 32 bits. */
#define MAX_LENGTH 2147483647u
#define MAX_LAYERS 10000
/* 2^48 parameters, 1,000 times the largest model there is, keep every product of bytes within 64 bits. */
#define MAX_PARAMS ((double)(1ull << 48))

void lst_arch_default(lst_family family, lst_arch *out)
{
    bool gpt2 = family == LST_FAMILY_GPT2, llama = family == LST_FAMILY_LLAMA, mistral = family == LST_FAMILY_MISTRAL;
    memset(out, 0, sizeof *out);
    out->family = family;
    out->norm_eps = gpt2 ? 1e-5 : 1e-6;
    out->init_range = 0.02;
    out->layer_norm = out->learned_positions = out->gelu_mlp = out->fused_qkv = out->conv1d = gpt2;
    out->qkv_bias = gpt2 || family == LST_FAMILY_QWEN2;
    out->o_bias = out->mlp_bias = out->tied = gpt2;
    out->qk_norm = family == LST_FAMILY_QWEN3;
    out->vocab = gpt2 ? 50257 : llama || mistral ? 32000 : 151936;
    out->hidden = gpt2 ? 768 : 4096;
    out->layers = gpt2 ? 12 : 32;
    out->heads = gpt2 ? 12 : 32;
    out->kv_heads = gpt2 ? 12 : mistral ? 8 : 32;
    out->head_dim = gpt2 ? 64 : 128;
    out->ffn = gpt2 ? 3072 : llama ? 11008 : mistral ? 14336 : 22016;
    out->max_positions = gpt2 ? 1024 : llama ? 2048 : mistral ? 131072 : 32768;
    out->rope_theta = gpt2 ? 0 : 10000;
}

typedef struct named_length {
    const char *name;
    size_t value;
    size_t limit;
} named_length;

static lst_status check_lengths(const lst_arch *a, lst_error *err)
{
    const named_length lengths[] = {
        {"vocab", a->vocab, MAX_LENGTH},
        {"hidden", a->hidden, MAX_LENGTH},
        {"layers", a->layers, MAX_LAYERS},
        {"heads", a->heads, MAX_LENGTH},
        {"kv_heads", a->kv_heads, MAX_LENGTH},
        {"head_dim", a->head_dim, MAX_LENGTH},
        {"ffn (intermediate)", a->ffn, MAX_LENGTH},
        {"max_positions", a->max_positions, MAX_LENGTH},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        if (lengths[i].value < 1 || lengths[i].value > lengths[i].limit)
            return lst__fail(err, LST_ERR_ARGUMENT, "architecture: %s is %zu; expected 1 to %zu", lengths[i].name,
                             lengths[i].value, lengths[i].limit);
    return LST_OK;
}

static lst_status check_heads(const lst_arch *a, lst_error *err)
{
    if (a->heads % a->kv_heads)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "architecture: %zu heads are no multiple of %zu key-value heads; each of these serves as many heads",
            a->heads, a->kv_heads);
    if ((double)a->heads * (double)a->head_dim > MAX_LENGTH / 4)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "architecture: %zu heads of %zu are too wide; expected a product up to %u", a->heads,
                         a->head_dim, MAX_LENGTH / 4);
    if (!a->learned_positions && a->head_dim % 2)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "architecture: head_dim is %zu, an odd number; rotary positions turn pairs", a->head_dim);
    if (a->fused_qkv && (a->kv_heads != a->heads || a->heads * a->head_dim != a->hidden))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "architecture: %s has heads x head_dim = hidden and as many key-value heads; found %zu x %zu, "
                         "%zu and hidden %zu",
                         lst_family_name(a->family), a->heads, a->head_dim, a->kv_heads, a->hidden);
    return LST_OK;
}

static lst_status check_numbers(const lst_arch *a, lst_error *err)
{
    if (!(a->norm_eps > 0) || !isfinite(a->norm_eps))
        return lst__fail(err, LST_ERR_ARGUMENT, "architecture: norm_eps is %g; expected a positive number",
                         a->norm_eps);
    if (!(a->init_range >= 0) || !isfinite(a->init_range))
        return lst__fail(err, LST_ERR_ARGUMENT, "architecture: init_range is %g; expected 0 or a positive number",
                         a->init_range);
    if (!a->learned_positions && (!(a->rope_theta > 0) || !isfinite(a->rope_theta)))
        return lst__fail(err, LST_ERR_ARGUMENT, "architecture: rope_theta is %g; expected a positive number",
                         a->rope_theta);
    if (!a->rope_scaling.llama3)
        return LST_OK;
    if (a->learned_positions)
        return lst__fail(err, LST_ERR_ARGUMENT, "architecture: rope scaling has no effect on learned positions");
    if (!(a->rope_scaling.factor >= 1) || !isfinite(a->rope_scaling.factor) || !(a->rope_scaling.low_freq_factor > 0) ||
        !(a->rope_scaling.high_freq_factor > a->rope_scaling.low_freq_factor) ||
        !isfinite(a->rope_scaling.high_freq_factor) || a->rope_scaling.original_positions < 1)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "architecture: llama3 rope scaling has factor %g, low_freq_factor %g, high_freq_factor %g, "
                         "%zu original positions; expected factor >= 1, 0 < low < high, positions >= 1",
                         a->rope_scaling.factor, a->rope_scaling.low_freq_factor, a->rope_scaling.high_freq_factor,
                         a->rope_scaling.original_positions);
    return LST_OK;
}

/* The flags that make a family; the model has these combinations and no other. */
static lst_status check_family(const lst_arch *a, lst_error *err)
{
    lst_arch want;
    if ((unsigned)a->family >= LST_N_FAMILIES)
        return lst__fail(err, LST_ERR_ARGUMENT, "architecture: there is no family %d", (int)a->family);
    lst_arch_default(a->family, &want);
    const struct {
        const char *name;
        bool found, expected;
    } flags[] = {{"layer_norm", a->layer_norm, want.layer_norm},
                 {"learned_positions", a->learned_positions, want.learned_positions},
                 {"gelu_mlp", a->gelu_mlp, want.gelu_mlp},
                 {"fused_qkv", a->fused_qkv, want.fused_qkv},
                 {"conv1d", a->conv1d, want.conv1d},
                 {"qk_norm", a->qk_norm, want.qk_norm}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].found != flags[i].expected)
            return lst__fail(err, LST_ERR_ARGUMENT, "architecture: %s is %s; the family %s has it %s", flags[i].name,
                             flags[i].found ? "on" : "off", lst_family_name(a->family),
                             flags[i].expected ? "on" : "off");
    return LST_OK;
}

/* Biases come in the combinations that a config.json of the family can say. */
static lst_status check_biases(const lst_arch *a, lst_error *err)
{
    lst_arch want;
    lst_arch_default(a->family, &want);
    bool chosen = a->family == LST_FAMILY_LLAMA || a->family == LST_FAMILY_QWEN3;
    bool attention = chosen ? a->qkv_bias == a->o_bias : a->qkv_bias == want.qkv_bias && a->o_bias == want.o_bias;
    if (attention && (a->family == LST_FAMILY_LLAMA || a->mlp_bias == want.mlp_bias))
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT,
                     "architecture: biases of q/k/v %s, of the attention output %s, of the MLP %s; the family %s has "
                     "no such combination",
                     a->qkv_bias ? "on" : "off", a->o_bias ? "on" : "off", a->mlp_bias ? "on" : "off",
                     lst_family_name(a->family));
}

static lst_status check_total(const lst_arch *a, lst_error *err)
{
    double attention = (double)a->heads * (double)a->head_dim, hidden = (double)a->hidden;
    double total = (2.0 * (double)a->vocab + (double)a->max_positions) * hidden +
                   (double)a->layers * hidden * (4.0 * attention + 3.0 * (double)a->ffn + 8.0);
    if (total > MAX_PARAMS)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "architecture: about %.3g parameters; more than 2^48 cannot be addressed", total);
    return LST_OK;
}

lst_status lst_arch_check(const lst_arch *arch, lst_error *err)
{
    lst_status (*const checks[])(const lst_arch *, lst_error *) = {check_family, check_biases,  check_lengths,
                                                                   check_heads,  check_numbers, check_total};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        lst_status status = checks[i](arch, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}
