/* SPDX-License-Identifier: MIT
 *
 * Tensors that a file has and the model does not: a model read without one of its parts would be another model.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/printable.h"
#include "io/safetensors.h"
#include "train/hf_folder.h"

#define PREFIX "transformer."
#define HEAD "lm_head.weight"

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Constants that older versions of transformers saved with the weights. */
static bool is_buffer(const char *name)
{
    return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias") ||
           ends_with(name, ".rotary_emb.inv_freq");
}

/* Names in the order of strcmp. */
static bool is_known(const lst_arch_tensor *const *sorted, size_t n, const char *name)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, sorted[middle]->name);
        if (order == 0)
            return true;
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    return false;
}

/* Whether a tied head says the same as the embedding, bit for bit. */
static bool same_bits(const lst_st_tensor *a, const lst_st_tensor *b)
{
    const size_t piece = (size_t)8 << 20;
    bool same = a && b && a->dtype == b->dtype && a->n_bytes == b->n_bytes;
    for (size_t at = 0; same && at < a->n_bytes; at += piece) {
        size_t n = a->n_bytes - at < piece ? a->n_bytes - at : piece;
        same = !memcmp(a->data + at, b->data + at, n);
        lst__map_forget(a->data + at, n);
        lst__map_forget(b->data + at, n);
    }
    return same;
}

static const lst_st_tensor *find_embedding(const lst_st_set *set, const lst_arch *arch)
{
    lst_arch_tensor t;
    lst_arch_tensor_at(arch, lst_arch_tensor_find(arch, LST_ROLE_EMBED, -1), &t);
    const lst_st_tensor *found = lst__st_set_find(set, t.name);
    if (!found && !strncmp(t.name, PREFIX, strlen(PREFIX)))
        found = lst__st_set_find(set, t.name + strlen(PREFIX));
    return found;
}

static lst_status refuse(const char *path, const lst_arch *arch, const char *name, lst_error *err)
{
    char shown[160];
    lst__printable(name, shown, sizeof shown);
    if (arch->tied && !strcmp(name, HEAD))
        return lst__fail(err, LST_ERR_STATE,
                         "%s: \"" HEAD "\" differs from the embedding, and config.json ties the two. Set "
                         "\"tie_word_embeddings\": false there, or take the tensor out of the file",
                         path);
    return lst__fail(err, LST_ERR_STATE,
                     "%s: tensor \"%s\" is no part of a %s of %zu layers as config.json describes it: weights of "
                     "another model, or of one with parts that are not implemented",
                     path, shown, lst_family_name(arch->family), arch->layers);
}

static lst_status check_all(const lst_st_set *set, const char *path, const lst_arch *arch,
                            const lst_arch_tensor *const *sorted, size_t n, lst_error *err)
{
    char prefixed[sizeof sorted[0]->name + sizeof PREFIX];
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i]->name;
        bool known = is_known(sorted, n, name) || is_buffer(name);
        if (!known && arch->family == LST_FAMILY_GPT2 && strlen(name) < sizeof sorted[0]->name) {
            strcpy(prefixed, PREFIX);
            strcat(prefixed, name);
            known = is_known(sorted, n, prefixed);
        }
        if (!known && arch->tied && !strcmp(name, HEAD))
            known = same_bits(set->tensors[i], find_embedding(set, arch));
        if (!known)
            return refuse(path, arch, name, err);
    }
    return LST_OK;
}

static int by_name(const void *left, const void *right)
{
    const lst_arch_tensor *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

lst_status train_hf_check_weights(const char *path, const lst_arch *arch, lst_error *err)
{
    lst_st_set *set;
    lst_status status = lst__st_set_open(&set, path, err);
    if (status != LST_OK)
        return status;
    size_t n = lst_arch_tensor_count(arch);
    lst_arch_tensor *tensors = lst__alloc(n, sizeof *tensors);
    const lst_arch_tensor **sorted = lst__alloc(n, sizeof *sorted);
    if (!tensors || !sorted)
        status = lst__fail_memory(err, "the list of tensors", n * sizeof *tensors);
    for (size_t i = 0; status == LST_OK && i < n; i++) {
        lst_arch_tensor_at(arch, i, &tensors[i]);
        sorted[i] = &tensors[i];
    }
    if (status == LST_OK) {
        qsort(sorted, n, sizeof *sorted, by_name);
        status = check_all(set, path, arch, sorted, n, err);
    }
    lst__free(sorted);
    lst__free(tensors);
    lst__st_set_close(set);
    return status;
}
