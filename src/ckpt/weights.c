/* SPDX-License-Identifier: MIT
 *
 * Weights <-> model.safetensors.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "ckpt/dtypes.h"
#include "ckpt/source.h"
#include "io/safetensors.h"
#include "leanstep/ckpt.h"
#include "optim/optimizer.h"
#include "store/codec.h"
#include "store/weights.h"

static size_t elements(size_t n_dims, const size_t *dims)
{
    size_t n = 1;
    for (size_t i = 0; i < n_dims; i++)
        n *= dims[i];
    return n;
}

/* ---- saving ---- */

static lst_status plain_source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                               lst_error *err)
{
    (void)err;
    const lst_ckpt_tensor *t = (const lst_ckpt_tensor *)context + entry;
    *data = (const char *)t->memory + offset;
    *n_bytes = lst_codec_bytes(t->codec, elements(t->n_dims, t->dims)) - offset;
    return LST_OK;
}

static lst_status check_given(const lst_ckpt_tensor *t, lst_error *err)
{
    if (t->name == NULL || t->memory == NULL || t->n_dims > LST_MAX_DIMS)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor \"%s\": it needs a name, memory and at most %d dimensions",
                         t->name == NULL ? "" : t->name, LST_MAX_DIMS);
    if (t->codec != LST_CODEC_F32 && t->codec != LST_CODEC_BF16 && t->codec != LST_CODEC_F16)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor \"%s\": weights are f32, bf16 or f16, not %s", t->name,
                         lst_codec_name(t->codec));
    return LST_OK;
}

lst_status lst_ckpt_save_weights(const char *path, const lst_ckpt_tensor *tensors, size_t n_tensors, lst_error *err)
{
    lst_st_entry *entries = lst__alloc(n_tensors, sizeof *entries);
    if (entries == NULL)
        return lst__fail_memory(err, path, n_tensors * sizeof *entries);
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < n_tensors; i++) {
        const lst_ckpt_tensor *t = &tensors[i];
        status = check_given(t, err);
        if (status == LST_OK)
            entries[i] = (lst_st_entry){
                .name = t->name, .dtype = lst__ckpt_dtype(t->codec), .n_dims = t->n_dims, .dims = t->dims};
    }
    lst_st_content content = {
        .entries = entries, .n_entries = n_tensors, .source = plain_source, .context = (void *)(uintptr_t)tensors};
    if (status == LST_OK)
        status = lst__st_write(path, &content, err);
    lst__free(entries);
    return status;
}

/* Tiles of an optimizer's float32 weights. */
typedef struct masters {
    const lst_optim *optim;
    float tile[LST__CKPT_TILE];
} masters;

static lst_status master_source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                                lst_error *err)
{
    (void)err;
    masters *m = context;
    lst__weights weights = lst__param_weights(m->optim, entry);
    size_t first = offset / sizeof(float), left = weights.n_elems - first;
    size_t n = left < LST__CKPT_TILE ? left : LST__CKPT_TILE;
    lst__weights_decode(&weights, first, n, m->tile);
    *data = m->tile;
    *n_bytes = n * sizeof(float);
    return LST_OK;
}

static lst_status check_all_bound(const lst_optim *optim, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < optim->n_params; i++)
        status = lst__check_bound(&optim->params[i], err);
    return status;
}

lst_status lst_ckpt_save_weights_f32(const char *path, const lst_optim *optim, lst_error *err)
{
    lst_status status = check_all_bound(optim, err);
    if (status != LST_OK)
        return status;
    size_t n = optim->n_params;
    lst_st_entry *entries = lst__alloc(n, sizeof *entries);
    if (entries == NULL)
        return lst__fail_memory(err, path, n * sizeof *entries);
    for (size_t i = 0; i < n; i++) {
        const lst_tensor *t = &optim->params[i].tensor;
        entries[i] = (lst_st_entry){.name = t->name, .dtype = LST_ST_F32, .n_dims = t->n_dims, .dims = t->dims};
    }
    masters m = {.optim = optim};
    lst_st_content content = {.entries = entries, .n_entries = n, .source = master_source, .context = &m};
    status = lst__st_write(path, &content, err);
    lst__free(entries);
    return status;
}

/* ---- loading ---- */

static void load_tensor(const lst_st_tensor *from, const lst_ckpt_tensor *to)
{
    size_t n_elems = from->n_elems;
    if (lst__ckpt_codec(from->dtype) == to->codec) {
        size_t size = lst_codec_bytes(to->codec, 1);
        for (size_t first = 0; first < n_elems; first += LST__CKPT_TILE) {
            size_t n = n_elems - first < LST__CKPT_TILE ? n_elems - first : LST__CKPT_TILE;
            memcpy((char *)to->memory + first * size, from->data + first * size, n * size);
            lst__source_done(from, first + n);
        }
        return;
    }
    float tile[LST__CKPT_TILE];
    for (size_t first = 0; first < n_elems; first += LST__CKPT_TILE) {
        size_t n = n_elems - first < LST__CKPT_TILE ? n_elems - first : LST__CKPT_TILE;
        lst__source_tile(from, first, n, tile);
        lst__codec(to->codec)->encode(to->memory, n_elems, first, n, tile, NULL);
        lst__source_done(from, first + n);
    }
}

lst_status lst_ckpt_load_weights(const char *path, const lst_ckpt_tensor *tensors, size_t n_tensors, size_t *n_ignored,
                                 lst_error *err)
{
    lst_st_set *set;
    lst_status status = lst__st_set_open(&set, path, err);
    if (status != LST_OK)
        return status;
    const lst_st_tensor **found = lst__alloc(n_tensors, sizeof *found);
    if (found == NULL)
        status = lst__fail_memory(err, path, n_tensors * sizeof *found);
    for (size_t i = 0; status == LST_OK && i < n_tensors; i++) {
        status = check_given(&tensors[i], err);
        if (status == LST_OK)
            status = lst__source_find(set, path, tensors[i].name, tensors[i].n_dims, tensors[i].dims, &found[i], err);
    }
    for (size_t i = 0; status == LST_OK && i < n_tensors; i++)
        load_tensor(found[i], &tensors[i]);
    if (status == LST_OK && n_ignored != NULL)
        *n_ignored = set->n_tensors > n_tensors ? set->n_tensors - n_tensors : 0;
    lst__free(found);
    lst__st_set_close(set);
    return status;
}

static void load_exact(const lst_st_tensor *from, const lst__weights *to)
{
    float tile[LST__CKPT_TILE];
    for (size_t first = 0; first < to->n_elems; first += LST__CKPT_TILE) {
        size_t n = to->n_elems - first < LST__CKPT_TILE ? to->n_elems - first : LST__CKPT_TILE;
        lst__source_tile(from, first, n, tile);
        lst__weights_encode(to, first, n, tile, NULL);
        lst__source_done(from, first + n);
    }
}

static lst_status find_all(const lst_st_set *set, const char *path, const lst_optim *optim, const lst_st_tensor **found,
                           lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < optim->n_params; i++) {
        const lst_tensor *t = &optim->params[i].tensor;
        status = lst__source_find(set, path, t->name, t->n_dims, t->dims, &found[i], err);
    }
    return status;
}

lst_status lst_ckpt_load_weights_exact(const char *path, lst_optim *optim, size_t *n_ignored, lst_error *err)
{
    lst_st_set *set;
    lst_status status = check_all_bound(optim, err);
    if (status == LST_OK)
        status = lst__st_set_open(&set, path, err);
    if (status != LST_OK)
        return status;
    const lst_st_tensor **found = lst__alloc(optim->n_params, sizeof *found);
    if (found == NULL)
        status = lst__fail_memory(err, path, optim->n_params * sizeof *found);
    else
        status = find_all(set, path, optim, found, err);
    for (size_t i = 0; status == LST_OK && i < optim->n_params; i++) {
        lst__weights weights = lst__param_weights(optim, i);
        load_exact(found[i], &weights);
    }
    if (status == LST_OK && n_ignored != NULL)
        *n_ignored = set->n_tensors - optim->n_params;
    lst__free(found);
    lst__st_set_close(set);
    return status;
}
