/* SPDX-License-Identifier: MIT */
#include "plan/gguf_arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/files.h"

typedef struct reader {
    const lst_gguf *gguf;
    const char *architecture;
    lst_error *err;
    lst_status status; /* of the first key that failed */
} reader;

static const char *full_name(const reader *r, const char *key, char *room, size_t n)
{
    snprintf(room, n, "%s.%s", r->architecture, key);
    return room;
}

static bool has(const reader *r, const char *key)
{
    char name[96];
    return lst__gguf_find_key(r->gguf, full_name(r, key, name, sizeof name)) != NULL;
}

static void get_size(reader *r, const char *key, size_t *out)
{
    char name[96];
    if (r->status == LST_OK)
        r->status = lst__gguf_get_size(r->gguf, full_name(r, key, name, sizeof name), out, r->err);
}

static void get_real(reader *r, const char *key, double *out)
{
    char name[96];
    if (r->status == LST_OK)
        r->status = lst__gguf_get_real(r->gguf, full_name(r, key, name, sizeof name), out, r->err);
}

/* Keys whose presence changes the arithmetic in a way that is not implemented. */
static void refuse_foreign(reader *r)
{
    static const char *const foreign[] = {"rope.scaling.type",        "rope.scaling.factor", "rope.scale_linear",
                                          "attention.sliding_window", "expert_count",        "attention.clamp_kqv"};
    char name[96];
    for (size_t i = 0; r->status == LST_OK && i < sizeof foreign / sizeof *foreign; i++) {
        const char *text;
        size_t n = 0;
        if (!has(r, foreign[i]))
            continue;
        full_name(r, foreign[i], name, sizeof name);
        bool none =
            (lst__gguf_get_size(r->gguf, name, &n, NULL) == LST_OK && n == 0) ||
            (lst__gguf_get_text(r->gguf, name, &text, &n, NULL) == LST_OK && n == 4 && !memcmp(text, "none", 4));
        if (!none)
            r->status = lst__fail(r->err, LST_ERR_UNSUPPORTED, "%s: %s is not implemented", r->gguf->path, name);
    }
}

/* ---- rope_freqs.weight: each frequency is divided by its factor ---- */

/* Llama-3's factors from its parameters (the formula of config.json's rope_scaling). */
static double llama3_factor(const lst_arch *a, size_t i)
{
    double turns = (double)a->rope_scaling.original_positions *
                   pow(a->rope_theta, -2.0 * (double)i / (double)a->head_dim) / 6.283185307179586476925;
    double s = (turns - a->rope_scaling.low_freq_factor) /
               (a->rope_scaling.high_freq_factor - a->rope_scaling.low_freq_factor);
    s = s < 0 ? 0 : s > 1 ? 1 : s;
    return 1.0 / ((1.0 - s) / a->rope_scaling.factor + s);
}

/* The file has the factors; the model has the formula they come from, with the bounds 1 and 4 that every published
 * Llama-3 has. The original length follows from any factor between the extremes; then all of them must agree. */
static lst_status read_rope_factors(const lst_gguf *g, const lst_gguf_tensor *t, lst_arch *a, lst_error *err)
{
    size_t half = a->head_dim / 2;
    float factor[1024];
    double largest = 1;
    if (t->type != LST_GGUF_F32 || t->n_elems != half || half > sizeof factor / sizeof *factor)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s: rope_freqs.weight has %zu elements of type %s; %zu of F32 were "
                         "expected",
                         g->path, t->n_elems, lst__gguf_type_name(t->type), half);
    memcpy(factor, t->data, half * sizeof *factor);
    for (size_t i = 0; i < half; i++)
        largest = factor[i] > largest ? factor[i] : largest;
    a->rope_scaling.llama3 = true;
    a->rope_scaling.factor = largest;
    a->rope_scaling.low_freq_factor = 1;
    a->rope_scaling.high_freq_factor = 4;
    a->rope_scaling.original_positions = 8192; /* Llama-3's, where no factor says another */
    double nearest = 0.5;
    for (size_t i = 0; i < half && largest > 1; i++) {
        double s = (1.0 / factor[i] - 1.0 / largest) / (1.0 - 1.0 / largest);
        double frequency = pow(a->rope_theta, -2.0 * (double)i / (double)a->head_dim);
        double length = (1 + 3 * s) * 6.283185307179586476925 / frequency;
        if (s > 0.001 && s < 0.999 && fabs(s - 0.5) < nearest && length < 1e8) {
            nearest = fabs(s - 0.5);
            a->rope_scaling.original_positions = (size_t)(length + 0.5);
        }
    }
    for (size_t i = 0; i < half; i++)
        if (!(fabs(llama3_factor(a, i) / factor[i] - 1) < 1e-5))
            return lst__fail(err, LST_ERR_UNSUPPORTED,
                             "%s: rope_freqs.weight is not Llama-3's scaling (element %zu is "
                             "%g): other factors are not implemented",
                             g->path, i, (double)factor[i]);
    return LST_OK;
}

/* ---- */

static lst_status find_family(const lst_gguf *g, lst_family *out, lst_error *err)
{
    static const lst_family known[] = {LST_FAMILY_GPT2, LST_FAMILY_LLAMA, LST_FAMILY_QWEN2, LST_FAMILY_QWEN3};
    const char *text;
    size_t n;
    lst_status status = lst__gguf_get_text(g, "general.architecture", &text, &n, err);
    if (status != LST_OK)
        return status;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *name = lst_family_name(known[i]);
        if (n == strlen(name) && !memcmp(text, name, n)) {
            *out = known[i];
            return LST_OK;
        }
    }
    bool printable = n < 40;
    for (size_t i = 0; printable && i < n; i++)
        printable = text[i] > 31 && text[i] < 127;
    return lst__fail(err, LST_ERR_UNSUPPORTED,
                     "%s: architecture \"%.*s\" is not implemented; gpt2, llama, qwen2 and qwen3 are", g->path,
                     printable ? (int)n : 0, text);
}

static void read_sizes(reader *r, lst_arch *a)
{
    get_size(r, "embedding_length", &a->hidden);
    get_size(r, "block_count", &a->layers);
    get_size(r, "feed_forward_length", &a->ffn);
    get_size(r, "context_length", &a->max_positions);
    get_size(r, "attention.head_count", &a->heads);
    a->kv_heads = a->heads;
    if (has(r, "attention.head_count_kv"))
        get_size(r, "attention.head_count_kv", &a->kv_heads);
    if (r->status == LST_OK && a->heads == 0)
        r->status =
            lst__fail(r->err, LST_ERR_FORMAT, "%s: %s.attention.head_count is 0", r->gguf->path, r->architecture);
    a->head_dim = a->heads ? a->hidden / a->heads : 0;
    if (has(r, "attention.key_length"))
        get_size(r, "attention.key_length", &a->head_dim);
    size_t other = a->head_dim;
    if (has(r, "attention.value_length"))
        get_size(r, "attention.value_length", &other);
    if (r->status == LST_OK && other == a->head_dim && !a->learned_positions && has(r, "rope.dimension_count"))
        get_size(r, "rope.dimension_count", &other);
    if (r->status == LST_OK && other != a->head_dim)
        r->status = lst__fail(r->err, LST_ERR_UNSUPPORTED,
                              "%s: keys of %zu, but values or rotary positions of %zu: not implemented", r->gguf->path,
                              a->head_dim, other);
}

lst_status lst__arch_from_gguf(const lst_gguf *g, lst_arch *out, lst_error *err)
{
    lst_family family = LST_FAMILY_GPT2;
    lst_status status = find_family(g, &family, err);
    if (status != LST_OK)
        return status;
    const lst_gguf_tensor *embed = lst__gguf_find_tensor(g, "token_embd.weight");
    if (!embed || embed->n_dims != 2)
        return lst__fail(err, LST_ERR_FORMAT, "%s has no matrix \"token_embd.weight\"", g->path);
    reader r = {.gguf = g, .architecture = lst_family_name(family), .err = err, .status = LST_OK};
    lst_arch_default(family, out);
    refuse_foreign(&r);
    read_sizes(&r, out);
    get_real(&r, out->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", &out->norm_eps);
    if (!out->learned_positions && has(&r, "rope.freq_base"))
        get_real(&r, "rope.freq_base", &out->rope_theta);
    if (r.status != LST_OK)
        return r.status;
    out->vocab = embed->dims[1];
    out->tied = !lst__gguf_find_tensor(g, "output.weight");
    if (family != LST_FAMILY_GPT2) {
        out->qkv_bias = lst__gguf_find_tensor(g, "blk.0.attn_q.bias") != NULL;
        out->o_bias = lst__gguf_find_tensor(g, "blk.0.attn_output.bias") != NULL;
        out->mlp_bias = lst__gguf_find_tensor(g, "blk.0.ffn_up.bias") != NULL;
    }
    const lst_gguf_tensor *factors = lst__gguf_find_tensor(g, "rope_freqs.weight");
    if (factors && !out->learned_positions)
        status = read_rope_factors(g, factors, out, err);
    return status == LST_OK ? lst_arch_check(out, err) : status;
}

bool lst__is_gguf(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".gguf") && lst__is_file(path);
}

lst_status lst__arch_open_gguf(const char *path, lst_arch *out, lst_error *err)
{
    lst_gguf g;
    lst_status status = lst__gguf_open(path, &g, err);
    if (status != LST_OK)
        return status;
    status = lst__arch_from_gguf(&g, out, err);
    lst__gguf_close(&g);
    return status;
}
