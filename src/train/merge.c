/* SPDX-License-Identifier: MIT */
#include "train/merge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"
#include "ckpt/source.h"
#include "io/json.h"
#include "io/printable.h"
#include "io/safetensors.h"
#include "leanstep/arch.h"
#include "train/carry.h"
#include "train/hf_folder.h"
#include "train/new_folder.h"
#include "train/run_private.h"

#define MAX_CONFIG ((size_t)4 << 20)
#define PREFIX "base_model.model."
#define HEAD PREFIX "lm_head."
/* Half a unit beyond float16's largest number, 65504: from here on it rounds to infinity. */
#define F16_LIMIT 65520.0

typedef struct pair {
    const lst_st_tensor *a, *b; /* [r, in], [out, r]; NULL for a tensor without an adapter */
} pair;

typedef struct merging {
    const train_merge *job;
    train_merged *done;
    lst_arch arch;
    char *config;
    lst_st_set *base, *adapter;
    size_t n_tensors;
    const lst_st_tensor **found; /* the base's */
    pair *pairs;                 /* by tensor of the base */
    size_t loaded;               /* the tensor whose pair is in a and b */
    float *a, *b;
    const char *temporary; /* the folder that is filled */
} merging;

/* ---- adapter_config.json ---- */

static bool says_nothing(const json_t *value)
{
    return value == NULL || json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* Other starts than these take a part out of the base's weights, which the base's folder then still has. */
static bool plain_start(const json_t *value)
{
    const char *name = json_string_value(value);
    return value == NULL || json_is_boolean(value) || (name && (!strcmp(name, "gaussian") || !strcmp(name, "eva")));
}

static lst_status check_plain(const json_t *config, const char *path, lst_error *err)
{
    static const char *const others[] = {"use_dora",
                                         "use_qalora",
                                         "use_bdlora",
                                         "lora_bias",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "modules_to_save",
                                         "trainable_token_indices",
                                         "arrow_config",
                                         "target_parameters",
                                         "kasa_config",
                                         "layer_replication",
                                         "monteclora_config",
                                         "velora_config",
                                         "alora_invocation_tokens"};
    const char *type, *bias = "none";
    lst_status status = lst__json_get_string(config, path, "peft_type", &type, err);
    if (status == LST_OK && strcmp(type, "LORA"))
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: peft_type is \"%s\"; LORA is what can be merged", path, type);
    for (size_t i = 0; status == LST_OK && i < sizeof others / sizeof *others; i++)
        if (!says_nothing(json_object_get(config, others[i])))
            return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: \"%s\" is set; only plain LoRA can be merged", path,
                             others[i]);
    if (status == LST_OK && lst__json_has(config, "bias"))
        status = lst__json_get_string(config, path, "bias", &bias, err);
    if (status == LST_OK && strcmp(bias, "none"))
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: bias is \"%s\"; \"none\" is what can be merged", path, bias);
    if (status == LST_OK && !plain_start(json_object_get(config, "init_lora_weights")))
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s: init_lora_weights is a way to start that changes the base's weights; it cannot be merged "
                         "into the base as it was",
                         path);
    return status;
}

static lst_status read_scale(merging *m, const json_t *config, const char *path, lst_error *err)
{
    double alpha;
    bool rslora = false;
    lst_status status = lst__json_get_size(config, path, "r", &m->done->rank, err);
    if (status == LST_OK)
        status = lst__json_get_real(config, path, "lora_alpha", &alpha, err);
    if (status == LST_OK && lst__json_has(config, "use_rslora"))
        status = lst__json_get_bool(config, path, "use_rslora", &rslora, err);
    if (status != LST_OK)
        return status;
    if (m->done->rank == 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s: r is 0; a rank is at least 1", path);
    const double rank = (double)m->done->rank;
    m->done->scale = alpha / (rslora ? sqrt(rank) : rank);
    return LST_OK;
}

static lst_status read_adapter_config(merging *m, lst_error *err)
{
    json_t *config = NULL;
    char *path = lst__path_join(m->job->adapter, "adapter_config.json");
    lst_status status = path ? lst__json_load(&config, path, MAX_CONFIG, err)
                             : lst__fail_memory(err, "a path", strlen(m->job->adapter) + 32);
    if (status == LST_OK && !json_is_object(config))
        status = lst__fail(err, LST_ERR_FORMAT, "%s: found %s; expected an object", path, lst__json_kind(config));
    if (status == LST_OK)
        status = check_plain(config, path, err);
    if (status == LST_OK)
        status = read_scale(m, config, path, err);
    json_decref(config);
    lst__free(path);
    return status;
}

/* ---- adapter_model.safetensors ---- */

/* GPT-2's layers store [in, out]: the delta is transposed there. */
static bool is_transposed(const lst_arch *arch, const lst_arch_tensor *t)
{
    return arch->family == LST_FAMILY_GPT2 && t->layer >= 0 && t->layer < (int)arch->layers;
}

static lst_status find_pair(merging *m, size_t i, const char *path, lst_error *err)
{
    char name[160];
    lst_arch_tensor t;
    lst_arch_tensor_at(&m->arch, i, &t);
    const size_t stem = strlen(t.name) - strlen(".weight"), turned = is_transposed(&m->arch, &t);
    if (t.n_dims != 2 || t.layer < 0)
        return LST_OK;
    snprintf(name, sizeof name, PREFIX "%.*s.lora_A.weight", (int)stem, t.name);
    const bool has_a = lst__st_set_find(m->adapter, name) != NULL;
    snprintf(name, sizeof name, PREFIX "%.*s.lora_B.weight", (int)stem, t.name);
    if (!has_a && !lst__st_set_find(m->adapter, name))
        return LST_OK;
    const size_t b[] = {t.dims[turned ? 1 : 0], m->done->rank}, a[] = {m->done->rank, t.dims[turned ? 0 : 1]};
    lst_status status = lst__source_find(m->adapter, path, name, 2, b, &m->pairs[i].b, err);
    snprintf(name, sizeof name, PREFIX "%.*s.lora_A.weight", (int)stem, t.name);
    if (status == LST_OK)
        status = lst__source_find(m->adapter, path, name, 2, a, &m->pairs[i].a, err);
    m->done->n_changed++;
    return status;
}

/* Everything in the file must be one of the pairs. */
static lst_status check_all_used(const merging *m, const char *path, lst_error *err)
{
    char shown[160];
    for (size_t k = 0; k < m->adapter->n_tensors; k++) {
        const lst_st_tensor *t = m->adapter->tensors[k];
        bool used = false;
        for (size_t i = 0; i < m->n_tensors && !used; i++)
            used = m->pairs[i].a == t || m->pairs[i].b == t;
        if (used)
            continue;
        lst__printable(t->name, shown, sizeof shown);
        if (m->arch.tied && !strncmp(t->name, HEAD, strlen(HEAD)))
            return lst__fail(err, LST_ERR_UNSUPPORTED,
                             "%s: \"%s\" changes lm_head, which in this model is the embedding too: merging would "
                             "change both. Train without lm_head among the targets",
                             path, shown);
        return lst__fail(
            err, LST_ERR_UNSUPPORTED,
            "%s: \"%s\" is no LoRA matrix of a linear layer of this model; the adapter is of another model "
            "or of another kind",
            path, shown);
    }
    if (m->done->n_changed == 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s: no LoRA matrices in it", path);
    return LST_OK;
}

static lst_status open_adapter(merging *m, lst_error *err)
{
    lst_status status = read_adapter_config(m, err);
    char *path = lst__path_join(m->job->adapter, "adapter_model.safetensors");
    if (status == LST_OK && !path)
        status = lst__fail_memory(err, "a path", strlen(m->job->adapter) + 32);
    if (status == LST_OK)
        status = lst__st_set_open(&m->adapter, path, err);
    for (size_t i = 0; status == LST_OK && i < m->n_tensors; i++)
        status = find_pair(m, i, path, err);
    if (status == LST_OK)
        status = check_all_used(m, path, err);
    lst__free(path);
    return status;
}

/* ---- the base ---- */

static lst_status open_base(merging *m, lst_error *err)
{
    size_t n;
    const char *base = m->job->base;
    char *path = lst__path_join(base, "config.json");
    lst_status status = path ? lst__file_read(path, MAX_CONFIG, &m->config, &n, err)
                             : lst__fail_memory(err, "a path", strlen(base) + 16);
    if (status == LST_OK)
        status = lst_arch_from_config(m->config, n, path, &m->arch, err);
    lst__free(path);
    if (status == LST_OK)
        status = train_hf_check_weights(base, &m->arch, err);
    if (status == LST_OK)
        status = lst__st_set_open(&m->base, base, err);
    if (status != LST_OK)
        return status;
    m->n_tensors = lst_arch_tensor_count(&m->arch);
    m->loaded = m->n_tensors;
    m->found = lst__alloc(m->n_tensors, sizeof *m->found);
    m->pairs = lst__alloc(m->n_tensors, sizeof *m->pairs);
    if (!m->found || !m->pairs)
        return lst__fail_memory(err, "the list of tensors", m->n_tensors * sizeof *m->pairs);
    memset(m->pairs, 0, m->n_tensors * sizeof *m->pairs);
    for (size_t i = 0; status == LST_OK && i < m->n_tensors; i++) {
        lst_arch_tensor t;
        lst_arch_tensor_at(&m->arch, i, &t);
        status = lst__source_find(m->base, base, t.name, t.n_dims, t.dims, &m->found[i], err);
    }
    m->done->codec = m->job->codec != LST_N_CODECS ? m->job->codec : train_hf_dtype(m->config, n);
    if (m->done->codec == LST_N_CODECS)
        m->done->codec = LST_CODEC_F32;
    return status;
}

/* ---- values ---- */

static void read_all(const lst_st_tensor *t, float *out)
{
    for (size_t at = 0; at < t->n_elems; at += LST__CKPT_TILE) {
        size_t n = t->n_elems - at < LST__CKPT_TILE ? t->n_elems - at : LST__CKPT_TILE;
        lst__source_tile(t, at, n, out + at);
    }
}

static lst_status load_pair(merging *m, size_t tensor, lst_error *err)
{
    const pair *p = &m->pairs[tensor];
    if (m->loaded == tensor)
        return LST_OK;
    lst__free(m->a);
    lst__free(m->b);
    m->a = lst__alloc(p->a->n_elems, sizeof *m->a);
    m->b = lst__alloc(p->b->n_elems, sizeof *m->b);
    if (!m->a || !m->b)
        return lst__fail_memory(err, "an adapter's matrices", (p->a->n_elems + p->b->n_elems) * sizeof *m->a);
    read_all(p->a, m->a);
    read_all(p->b, m->b);
    m->loaded = tensor;
    return LST_OK;
}

/* To float32 by rounding to odd: to 16 bits afterwards it rounds as the double itself would. */
static float to_odd(double value)
{
    float near = (float)value;
    uint32_t bits;
    if ((double)near == value || !isfinite(near))
        return near;
    memcpy(&bits, &near, sizeof bits);
    if (fabs((double)near) > fabs(value))
        bits--;
    bits |= 1;
    memcpy(&near, &bits, sizeof near);
    return near;
}

static double delta_at(const merging *m, const lst_arch_tensor *t, size_t at, bool turned)
{
    const size_t n_in = t->dims[turned ? 0 : 1], rank = m->done->rank;
    const size_t row = at / t->dims[1], column = at % t->dims[1];
    const size_t out = turned ? column : row, in = turned ? row : column;
    double sum = 0;
    for (size_t k = 0; k < rank; k++)
        sum += (double)m->b[out * rank + k] * (double)m->a[k * n_in + in];
    return m->done->scale * sum;
}

static lst_status values_merged(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err)
{
    merging *m = context;
    lst_arch_tensor t;
    for (size_t at = 0; at < n; at += LST__CKPT_TILE) {
        size_t part = n - at < LST__CKPT_TILE ? n - at : LST__CKPT_TILE;
        lst__source_tile(m->found[tensor], first + at, part, out + at);
        lst__source_done(m->found[tensor], first + at + part);
    }
    if (!m->pairs[tensor].a)
        return LST_OK;
    lst_status status = load_pair(m, tensor, err);
    lst_arch_tensor_at(&m->arch, tensor, &t);
    const bool turned = is_transposed(&m->arch, &t);
    for (size_t i = 0; status == LST_OK && i < n; i++) {
        const double value = (double)out[i] + delta_at(m, &t, first + i, turned);
        if (!isfinite(value) || (m->done->codec == LST_CODEC_F16 && fabs(value) >= F16_LIMIT))
            return lst__fail(err, LST_ERR_STATE, "%s: merged, value %zu is %g, which %s cannot hold", t.name, first + i,
                             value, train_hf_dtype_name(m->done->codec));
        out[i] = m->done->codec == LST_CODEC_F32 ? (float)value : to_odd(value);
    }
    return status;
}

/* ---- files ---- */

static lst_status write_all(void *context, const char *folder, lst_error *err)
{
    merging *m = context;
    m->temporary = folder;
    const train_hf_weights weights = {.arch = &m->arch,
                                      .codec = m->done->codec,
                                      .shard_bytes = m->job->shard_bytes,
                                      .values = values_merged,
                                      .context = m};
    char *text = NULL, *path = lst__path_join(m->temporary, "config.json");
    lst_status status = path ? train_hf_set_dtype(m->config, m->done->codec, &text, err)
                             : lst__fail_memory(err, "a path", strlen(folder) + 32);
    if (status == LST_OK)
        status = train__write_text(path, text, err);
    lst__free(text);
    lst__free(path);
    if (status == LST_OK)
        status = train_hf_write_weights(m->temporary, &weights, err);
    return status == LST_OK ? train__copy_tokenizer(m->job->base, m->temporary, err) : status;
}

static void close_all(merging *m)
{
    lst__st_set_close(m->base);
    lst__st_set_close(m->adapter);
    lst__free(m->found);
    lst__free(m->pairs);
    lst__free(m->config);
    lst__free(m->a);
    lst__free(m->b);
    lst__free(m);
}

lst_status train_merge_adapter(const train_merge *job, train_merged *done, lst_error *err)
{
    if (train_refuse_existing(job->out, err) != LST_OK)
        return LST_ERR_STATE;
    merging *m = lst__alloc(1, sizeof *m);
    if (!m)
        return lst__fail_memory(err, "the merge's handle", sizeof *m);
    memset(m, 0, sizeof *m);
    memset(done, 0, sizeof *done);
    m->job = job;
    m->done = done;
    lst_status status = open_base(m, err);
    if (status == LST_OK)
        status = open_adapter(m, err);
    if (status == LST_OK)
        status = train_new_folder(job->out, write_all, m, err);
    close_all(m);
    return status;
}
