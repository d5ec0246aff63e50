/* SPDX-License-Identifier: MIT
 *
 * safetensors: an 8-byte little-endian header length, a JSON object, then bytes. Reader and writer; neither holds a
 * copy of a tensor's bytes. docs/formats.md lists what is refused.
 */
#ifndef LST_IO_SAFETENSORS_H
#define LST_IO_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/files.h"
#include "leanstep/status.h"

/* X(identifier = name in the file, bits an element), in the order of the format's own enumeration: the writer sorts by
 * it, last first, so that wide elements come before narrow ones and each is aligned to its size. */
#define LST_ST_DTYPE_LIST(X)                                                                                           \
    X(BOOL, 8)                                                                                                         \
    X(F4, 4)                                                                                                           \
    X(F6_E2M3, 6)                                                                                                      \
    X(F6_E3M2, 6)                                                                                                      \
    X(U8, 8)                                                                                                           \
    X(I8, 8)                                                                                                           \
    X(F8_E5M2, 8)                                                                                                      \
    X(F8_E4M3, 8)                                                                                                      \
    X(F8_E8M0, 8)                                                                                                      \
    X(F8_E4M3FNUZ, 8)                                                                                                  \
    X(F8_E5M2FNUZ, 8)                                                                                                  \
    X(I16, 16)                                                                                                         \
    X(U16, 16)                                                                                                         \
    X(F16, 16)                                                                                                         \
    X(BF16, 16)                                                                                                        \
    X(I32, 32)                                                                                                         \
    X(U32, 32)                                                                                                         \
    X(F32, 32)                                                                                                         \
    X(C64, 64)                                                                                                         \
    X(F64, 64)                                                                                                         \
    X(I64, 64)                                                                                                         \
    X(U64, 64)

typedef enum lst_st_dtype {
#define LST_X(id, bits) LST_ST_##id,
    LST_ST_DTYPE_LIST(LST_X)
#undef LST_X
        LST_ST_N_DTYPES
} lst_st_dtype;

const char *lst__st_dtype_name(lst_st_dtype dtype);
size_t lst__st_dtype_bits(lst_st_dtype dtype);

/* The format's limit on the header. */
#define LST_ST_MAX_HEADER 100000000u

/* ---- reading ---- */

typedef struct lst_st_tensor {
    const char *name;
    lst_st_dtype dtype;
    size_t n_dims;
    const size_t *dims;
    size_t n_elems;
    size_t n_bytes;
    const unsigned char *data; /* in the map, at any address: no alignment is promised. NULL for no bytes is possible */
} lst_st_tensor;

typedef struct lst_st_pair {
    const char *key, *value;
} lst_st_pair;

/* A file as it was read. Strings belong to it. */
typedef struct lst_st {
    char *path;
    size_t n_tensors;
    lst_st_tensor *tensors; /* in order of name (strcmp) */
    size_t n_metadata;
    lst_st_pair *metadata;
    lst_map map; /* {0} for lst__st_parse */
    size_t *dims;
    void *json;
} lst_st;

/* Maps the file and checks every rule of the format. LST_ERR_FORMAT names the rule that is broken, and the tensor. */
LST_MUST_USE lst_status lst__st_open(lst_st **out, const char *path, lst_error *err);
/* The same for bytes that the caller holds (they must stay): for fuzzing. `path` is what messages call them. */
LST_MUST_USE lst_status lst__st_parse(lst_st **out, const char *path, const unsigned char *bytes, size_t n_bytes,
                                      lst_error *err);
void lst__st_close(lst_st *st); /* NULL is allowed */
/* NULL if there is none. */
const lst_st_tensor *lst__st_find(const lst_st *st, const char *name);
const char *lst__st_metadata(const lst_st *st, const char *key);

/* One model in one file or in shards. */
typedef struct lst_st_set {
    size_t n_shards;
    lst_st **shards;
    size_t n_tensors;
    const lst_st_tensor **tensors; /* in order of name */
    size_t n_unmapped;             /* tensors in shards that the index does not name; they are left out */
} lst_st_set;

/* `path` is a .safetensors file, an index (*.json), or a folder with model.safetensors or model.safetensors.index.json
 * (the first wins). A shard's name must be a plain file name beside the index. */
LST_MUST_USE lst_status lst__st_set_open(lst_st_set **out, const char *path, lst_error *err);
void lst__st_set_close(lst_st_set *set); /* NULL is allowed */
const lst_st_tensor *lst__st_set_find(const lst_st_set *set, const char *name);

/* ---- writing ---- */

typedef struct lst_st_entry {
    const char *name;
    lst_st_dtype dtype;
    size_t n_dims;
    const size_t *dims;
} lst_st_entry;

/* Gives the next bytes of an entry, from `offset` on: at least one, at most what is left. They must stay until the next
 * call. So a caller with plain memory answers with all of it, and one that converts answers tile by tile. */
typedef lst_status lst_st_source_fn(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                                    lst_error *err);

typedef struct lst_st_content {
    const lst_st_entry *entries; /* in any order */
    size_t n_entries;
    const lst_st_pair *metadata; /* {"format": "pt"} is added: peers refuse files without it */
    size_t n_metadata;
    lst_st_source_fn *source;
    void *context;
} lst_st_content;

/* Writes the file, complete or not at all. Data begin at a multiple of 64 bytes. */
LST_MUST_USE lst_status lst__st_write(const char *path, const lst_st_content *content, lst_error *err);

#endif
