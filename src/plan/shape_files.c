/* SPDX-License-Identifier: MIT
 *
 * Shapes from what a user has: a GGUF file, safetensors with their config.json, a config.json, a name. Only headers are
 * read. A header's elements are counted by name (buffers and copies are no parameters) and held against the config: if
 * they disagree, the message has both numbers and the tensor that explains it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "leanstep/models.h"

#define MAX_CONFIG_BYTES ((size_t)4 << 20)

/* ---- a header's elements against the shape's ---- */

typedef struct element_list {
    size_t n, capacity;
    uint64_t *elems;
    bool failed;
} element_list;

static void append(void *user, const lst_shape_tensor *tensor)
{
    element_list *list = user;
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 512;
        uint64_t *grown = lst__realloc(list->elems, capacity, sizeof *grown);
        if (!grown) {
            list->failed = true;
            return;
        }
        list->elems = grown;
        list->capacity = capacity;
    }
    list->elems[list->n++] = lst_shape_tensor_elems(tensor);
}

/* Takes one entry of this size out of the list; false if there is none. */
static bool strike(element_list *list, uint64_t elems)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->elems[i] == elems) {
            list->elems[i] = list->elems[--list->n];
            return true;
        }
    }
    return false;
}

typedef struct header_tensor {
    const char *name;
    uint64_t elems;
} header_tensor;

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Buffers that old checkpoints store beside parameters. */
static bool is_buffer(const char *name, size_t n_dims)
{
    static const char *const ends[] = {"masked_bias",  "rotary_emb.inv_freq", "position_ids",       "rope_freqs.weight",
                                       "running_mean", "running_var",         "num_batches_tracked"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (ends_with(name, ends[i]))
            return true;
    }
    return n_dims == 4 && (ends_with(name, "attn.bias") || ends_with(name, "attention.bias")); /* causal masks */
}

static lst_status cross_check(const char *path, const header_tensor *tensors, size_t n, const lst_shape *shape,
                              lst_error *err)
{
    uint64_t total = 0;
    const char *odd = NULL;
    uint64_t odd_elems = 0;
    element_list expected = {0};
    lst_shape_each(shape, append, &expected);
    for (size_t i = 0; i < n && !expected.failed; i++) {
        total += tensors[i].elems;
        if (!strike(&expected, tensors[i].elems) && tensors[i].elems >= odd_elems) {
            odd = tensors[i].name;
            odd_elems = tensors[i].elems;
        }
    }
    const bool failed = expected.failed;
    const uint64_t missing = expected.n ? expected.elems[0] : 0;
    lst__free(expected.elems);
    if (failed)
        return lst__fail_memory(err, path, expected.capacity * sizeof(uint64_t));
    const uint64_t counted = lst_shape_params(shape);
    if (total == counted && !odd)
        return LST_OK;
    if (odd)
        return lst__fail(err, LST_ERR_STATE,
                         "%s has %" PRIu64 " parameters, its config %" PRIu64 "; tensor \"%s\" of %" PRIu64
                         " elements is not in the config's model",
                         path, total, counted, odd, odd_elems);
    return lst__fail(err, LST_ERR_STATE,
                     "%s has %" PRIu64 " parameters, its config %" PRIu64 "; a tensor of %" PRIu64
                     " elements is missing from the file",
                     path, total, counted, missing);
}

/* ---- GGUF ---- */

static const struct {
    const char *architecture;
    lst_shape_family family;
} gguf_families[] = {
    {"gpt2", LST_SHAPE_GPT2},     {"llama", LST_SHAPE_LLAMA},      {"qwen2", LST_SHAPE_QWEN2},
    {"qwen3", LST_SHAPE_QWEN3},   {"gemma", LST_SHAPE_GEMMA},      {"gemma2", LST_SHAPE_GEMMA2},
    {"gemma3", LST_SHAPE_GEMMA3}, {"gptneox", LST_SHAPE_GPT_NEOX},
};

static lst_status gguf_size(const lst_gguf *g, const char *architecture, const char *key, size_t fallback, size_t *out,
                            lst_error *err)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", architecture, key);
    if (fallback && !lst__gguf_find_key(g, name)) {
        *out = fallback;
        return LST_OK;
    }
    const lst_status status = lst__gguf_get_size(g, name, out, err);
    if (status == LST_OK && (*out == 0 || *out > ((size_t)1 << 24)))
        return lst__fail(err, LST_ERR_FORMAT, "%s: %s is %zu; 1 to 16777216 was expected", g->path, name, *out);
    return status;
}

static lst_status gguf_family(const lst_gguf *g, char architecture[32], lst_shape_family *out, lst_error *err)
{
    const char *text = NULL;
    size_t n = 0;
    const lst_status status = lst__gguf_get_text(g, "general.architecture", &text, &n, err);
    if (status != LST_OK)
        return status;
    snprintf(architecture, 32, "%.*s", n > 31 ? 31 : (int)n, text);
    for (size_t i = 0; i < sizeof gguf_families / sizeof *gguf_families; i++) {
        if (strcmp(gguf_families[i].architecture, architecture) == 0) {
            *out = gguf_families[i].family;
            return LST_OK;
        }
    }
    return lst__fail(
        err, LST_ERR_UNSUPPORTED,
        "%s: architecture \"%s\": what tensors it has is not known here; known are gpt2, llama, qwen2, qwen3, "
        "gemma, gemma2, gemma3, gptneox",
        g->path, architecture);
}

static lst_status gguf_shape(const lst_gguf *g, lst_shape *s, lst_error *err)
{
    char architecture[32];
    memset(s, 0, sizeof *s);
    lst_status status = gguf_family(g, architecture, &s->family, err);
    if (status != LST_OK)
        return status;
    const lst_gguf_tensor *embedding = lst__gguf_find_tensor(g, "token_embd.weight");
    if (!embedding || embedding->n_dims != 2)
        return lst__fail(err, LST_ERR_FORMAT, "%s has no matrix \"token_embd.weight\"", g->path);
    s->vocab = embedding->dims[1];
    s->tied = !lst__gguf_find_tensor(g, "output.weight");
    s->qkv_bias = lst__gguf_find_tensor(g, "blk.0.attn_q.bias") || lst__gguf_find_tensor(g, "blk.0.attn_qkv.bias");
    s->o_bias = lst__gguf_find_tensor(g, "blk.0.attn_output.bias") != NULL;
    s->mlp_bias = lst__gguf_find_tensor(g, "blk.0.ffn_up.bias") != NULL;
    size_t experts = 0;
    status = gguf_size(g, architecture, "embedding_length", 0, &s->hidden, err);
    if (status == LST_OK)
        status = gguf_size(g, architecture, "block_count", 0, &s->layers, err);
    if (status == LST_OK)
        status = gguf_size(g, architecture, "feed_forward_length", 0, &s->ffn, err);
    if (status == LST_OK)
        status = gguf_size(g, architecture, "attention.head_count", 0, &s->heads, err);
    if (status == LST_OK)
        status = gguf_size(g, architecture, "attention.head_count_kv", s->heads, &s->kv_heads, err);
    if (status == LST_OK)
        status = gguf_size(g, architecture, "attention.key_length", s->hidden / s->heads, &s->head_dim, err);
    if (status == LST_OK && s->family == LST_SHAPE_GPT2)
        status = gguf_size(g, architecture, "context_length", 0, &s->positions, err);
    if (status == LST_OK)
        status = gguf_size(g, architecture, "expert_count", 1, &experts, err);
    if (status == LST_OK && experts > 1)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: merged experts in GGUF are not counted; give its config.json",
                         g->path);
    return status;
}

static lst_status from_gguf(const char *path, lst_shape *out, lst_error *err)
{
    lst_gguf g;
    lst_status status = lst__gguf_open(path, &g, err);
    if (status != LST_OK)
        return status;
    status = gguf_shape(&g, out, err);
    header_tensor *tensors = lst__alloc(g.n_tensors + 1, sizeof *tensors);
    if (status == LST_OK && !tensors)
        status = lst__fail_memory(err, path, g.n_tensors * sizeof *tensors);
    size_t n = 0;
    for (size_t i = 0; status == LST_OK && i < g.n_tensors; i++) {
        if (!is_buffer(g.tensor[i].name, g.tensor[i].n_dims))
            tensors[n++] = (header_tensor){g.tensor[i].name, g.tensor[i].n_elems};
    }
    if (status == LST_OK)
        status = cross_check(path, tensors, n, out, err);
    lst__free(tensors);
    lst__gguf_close(&g);
    return status;
}

/* ---- safetensors ---- */

static bool is_packed(const lst_st_tensor *tensor)
{
    return ends_with(tensor->name, ".qweight") || ends_with(tensor->name, ".weight_packed") ||
           ends_with(tensor->name, "_blocks") || ends_with(tensor->name, ".absmax");
}

static lst_status check_set(const lst_st_set *set, const char *path, lst_shape *shape, lst_error *err)
{
    size_t n = 0;
    lst_status status = LST_OK;
    header_tensor *tensors = lst__alloc(set->n_tensors + 1, sizeof *tensors);
    if (!tensors)
        return lst__fail_memory(err, path, set->n_tensors * sizeof *tensors);
    for (size_t i = 0; i < set->n_tensors && status == LST_OK; i++) {
        const lst_st_tensor *t = set->tensors[i];
        if (is_packed(t))
            status = lst__fail(err, LST_ERR_UNSUPPORTED,
                               "%s: tensor \"%s\" is packed: its elements are no parameters; give config.json alone",
                               path, t->name);
        else if (!is_buffer(t->name, t->n_dims))
            tensors[n++] = (header_tensor){t->name, t->n_elems};
    }
    if (status == LST_OK)
        status = cross_check(path, tensors, n, shape, err);
    lst__free(tensors);
    return status;
}

static lst_status read_config(const char *path, lst_shape *out, lst_error *err)
{
    char *text = NULL;
    size_t n_bytes = 0;
    lst_status status = lst__file_read(path, MAX_CONFIG_BYTES, &text, &n_bytes, err);
    if (status == LST_OK)
        status = lst_shape_from_config(text, n_bytes, path, out, err);
    lst__free(text);
    return status;
}

static lst_status from_safetensors(const char *path, const char *config, lst_shape *out, lst_error *err)
{
    lst_st_set *set = NULL;
    lst_status status = lst__is_file(config)
                            ? read_config(config, out, err)
                            : lst__fail(err, LST_ERR_IO,
                                        "%s is not there: a header has no number of heads, so the config.json must lie "
                                        "beside the weights",
                                        config);
    if (status == LST_OK)
        status = lst__st_set_open(&set, path, err);
    if (status == LST_OK)
        status = check_set(set, path, out, err);
    lst__st_set_close(set);
    return status;
}

/* "folder/config.json" beside a file, in fresh memory. */
static char *config_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = lst__strdup(slash ? path : ".");
    if (folder && slash)
        folder[slash - path] = '\0';
    char *config = folder ? lst__path_join(folder[0] ? folder : "/", "config.json") : NULL;
    lst__free(folder);
    return config;
}

static lst_status from_folder(const char *path, lst_shape *out, lst_error *err)
{
    char *config = lst__path_join(path, "config.json"), *one = lst__path_join(path, "model.safetensors");
    char *index = lst__path_join(path, "model.safetensors.index.json");
    lst_status status = LST_OK;
    if (!config || !one || !index)
        status = lst__fail_memory(err, path, strlen(path) + 40);
    else if (lst__is_file(one) || lst__is_file(index))
        status = from_safetensors(path, config, out, err);
    else
        status = read_config(config, out, err);
    lst__free(config);
    lst__free(one);
    lst__free(index);
    return status;
}

lst_status lst_shape_open(const char *model, lst_shape *out, lst_error *err)
{
    lst_status status;
    if (lst__is_dir(model)) {
        status = from_folder(model, out, err);
    } else if (!lst__is_file(model)) {
        return lst_shape_by_name(model, out, err);
    } else if (ends_with(model, ".gguf")) {
        status = from_gguf(model, out, err);
    } else if (ends_with(model, ".safetensors") || ends_with(model, ".index.json")) {
        char *config = config_beside(model);
        status = config ? from_safetensors(model, config, out, err) : lst__fail_memory(err, model, strlen(model) + 12);
        lst__free(config);
    } else if (ends_with(model, ".bin") || ends_with(model, ".pt") || ends_with(model, ".pth")) {
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s is a pickle, which is a program and is not run here; convert it to safetensors", model);
    } else {
        status = read_config(model, out, err);
    }
    if (status == LST_OK)
        snprintf(out->name, sizeof out->name, "%.95s", model);
    return status;
}
