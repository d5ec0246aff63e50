/* SPDX-License-Identifier: MIT */
#include "ckpt/source.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/files.h"
#include "ckpt/dtypes.h"
#include "io/printable.h"
#include "store/codec.h"

/* Pages are given back in pieces of this size, so that a large file never is resident as a whole. */
#define FORGET_BYTES ((size_t)8 << 20)

/* "[2, 3]" */
static const char *shape_text(size_t n_dims, const size_t *dims, char *out, size_t n_bytes)
{
    size_t used = (size_t)snprintf(out, n_bytes, "[");
    for (size_t i = 0; i < n_dims && used < n_bytes; i++)
        used += (size_t)snprintf(out + used, n_bytes - used, "%s%zu", i == 0 ? "" : ", ", dims[i]);
    if (used < n_bytes)
        snprintf(out + used, n_bytes - used, "]");
    return out;
}

/* What transformers puts before the names of GPT-2's tensors when it saves; the files on its hub come without. */
#define PREFIX "transformer."

static const lst_st_tensor *find_named(const lst_st_set *set, const char *name)
{
    const lst_st_tensor *t = lst__st_set_find(set, name);
    if (t == NULL && strncmp(name, PREFIX, strlen(PREFIX)) == 0)
        t = lst__st_set_find(set, name + strlen(PREFIX));
    return t;
}

lst_status lst__source_find(const lst_st_set *set, const char *path, const char *name, size_t n_dims,
                            const size_t *dims, const lst_st_tensor **out, lst_error *err)
{
    char shown[160], here[160], there[160];
    lst__printable(name, shown, sizeof shown);
    const lst_st_tensor *t = find_named(set, name);
    if (t == NULL)
        return lst__fail(
            err, LST_ERR_STATE,
            "%s: weights of another model: no tensor \"%s\" among its %zu; give the folder of the right model", path,
            shown, set->n_tensors);
    if (t->n_dims != n_dims || (n_dims > 0 && memcmp(t->dims, dims, n_dims * sizeof *dims) != 0))
        return lst__fail(
            err, LST_ERR_STATE, "%s: weights of another model: tensor \"%s\" has the shape %s; %s is expected", path,
            shown, shape_text(t->n_dims, t->dims, there, sizeof there), shape_text(n_dims, dims, here, sizeof here));
    if (lst__ckpt_codec(t->dtype) == LST_N_CODECS)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: tensor \"%s\" is stored as %s; F32, BF16 and F16 can be read",
                         path, shown, lst__st_dtype_name(t->dtype));
    *out = t;
    return LST_OK;
}

void lst__source_tile(const lst_st_tensor *tensor, size_t first, size_t n, float *out)
{
    /* The file promises no alignment, codecs want it. */
    _Alignas(64) unsigned char aligned[LST__CKPT_TILE * sizeof(float)];
    size_t size = lst__st_dtype_bits(tensor->dtype) / 8;
    memcpy(aligned, tensor->data + first * size, n * size);
    lst__codec(lst__ckpt_codec(tensor->dtype))->decode(aligned, n, 0, n, out);
}

void lst__source_done(const lst_st_tensor *tensor, size_t end)
{
    size_t n_read = end * (lst__st_dtype_bits(tensor->dtype) / 8);
    size_t tile = LST__CKPT_TILE * sizeof(float);
    /* Once in a while: when a multiple of FORGET_BYTES was passed in this tile, or all is read. */
    size_t passed = n_read / FORGET_BYTES, before = (n_read < tile ? 0 : n_read - tile) / FORGET_BYTES;
    if (passed != before || n_read == tensor->n_bytes)
        lst__map_forget(tensor->data, n_read);
}
