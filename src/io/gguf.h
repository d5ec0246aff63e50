/* SPDX-License-Identifier: MIT
 *
 * GGUF (versions 2 and 3, little-endian): keys, tensor descriptions, aligned data. A reader over a map of the file:
 * nothing of a tensor's size is allocated. What a file may not do: docs/formats.md; memory stays in proportion to the
 * file whatever its counts claim.
 */
#ifndef LST_IO_GGUF_H
#define LST_IO_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files.h"
#include "leanstep/status.h"

/* X(identifier = name, number in the file, elements a block, bytes a block) */
#define LST_GGUF_TYPE_LIST(X)                                                                                          \
    X(F32, 0, 1, 4)                                                                                                    \
    X(F16, 1, 1, 2)                                                                                                    \
    X(Q4_0, 2, 32, 18)                                                                                                 \
    X(Q4_1, 3, 32, 20)                                                                                                 \
    X(Q5_0, 6, 32, 22)                                                                                                 \
    X(Q5_1, 7, 32, 24)                                                                                                 \
    X(Q8_0, 8, 32, 34)                                                                                                 \
    X(Q8_1, 9, 32, 36)                                                                                                 \
    X(Q2_K, 10, 256, 84)                                                                                               \
    X(Q3_K, 11, 256, 110)                                                                                              \
    X(Q4_K, 12, 256, 144)                                                                                              \
    X(Q5_K, 13, 256, 176)                                                                                              \
    X(Q6_K, 14, 256, 210)                                                                                              \
    X(Q8_K, 15, 256, 292)                                                                                              \
    X(IQ2_XXS, 16, 256, 66)                                                                                            \
    X(IQ2_XS, 17, 256, 74)                                                                                             \
    X(IQ3_XXS, 18, 256, 98)                                                                                            \
    X(IQ1_S, 19, 256, 50)                                                                                              \
    X(IQ4_NL, 20, 32, 18)                                                                                              \
    X(IQ3_S, 21, 256, 110)                                                                                             \
    X(IQ2_S, 22, 256, 82)                                                                                              \
    X(IQ4_XS, 23, 256, 136)                                                                                            \
    X(I8, 24, 1, 1)                                                                                                    \
    X(I16, 25, 1, 2)                                                                                                   \
    X(I32, 26, 1, 4)                                                                                                   \
    X(I64, 27, 1, 8)                                                                                                   \
    X(F64, 28, 1, 8)                                                                                                   \
    X(IQ1_M, 29, 256, 56)                                                                                              \
    X(BF16, 30, 1, 2)                                                                                                  \
    X(TQ1_0, 34, 256, 54)                                                                                              \
    X(TQ2_0, 35, 256, 66)                                                                                              \
    X(MXFP4, 39, 32, 17)

typedef enum lst_gguf_type {
#define LST_X(id, number, block, bytes) LST_GGUF_##id = number,
    LST_GGUF_TYPE_LIST(LST_X)
#undef LST_X
} lst_gguf_type;

const char *lst__gguf_type_name(lst_gguf_type type); /* "Q4_0" */
size_t lst__gguf_type_block(lst_gguf_type type);     /* elements a block */

#define LST_GGUF_MAX_DIMS 4
#define LST_GGUF_MAX_NAME 63

typedef struct lst_gguf_tensor {
    char name[LST_GGUF_MAX_NAME + 1];
    lst_gguf_type type;
    size_t n_dims;
    size_t dims[LST_GGUF_MAX_DIMS]; /* innermost first, as in the file */
    size_t n_elems, n_bytes;
    const unsigned char *data;
} lst_gguf_tensor;

/* A key's value where it stands in the file. */
typedef struct lst_gguf_key {
    const char *name; /* name_bytes long, not terminated */
    size_t name_bytes;
    uint32_t type; /* the format's value type: 0..12 */
    const unsigned char *value;
} lst_gguf_key;

typedef struct lst_gguf {
    char *path;
    lst_map map;
    uint32_t version;
    size_t alignment;
    size_t n_keys, n_tensors;
    lst_gguf_key *key;
    lst_gguf_tensor *tensor;
    size_t data_offset;
} lst_gguf;

LST_MUST_USE lst_status lst__gguf_open(const char *path, lst_gguf *out, lst_error *err);
void lst__gguf_close(lst_gguf *gguf);

const lst_gguf_key *lst__gguf_find_key(const lst_gguf *gguf, const char *name);       /* or NULL */
const lst_gguf_tensor *lst__gguf_find_tensor(const lst_gguf *gguf, const char *name); /* or NULL */

/* Getters: the key must be there with the right type. Text is borrowed and not terminated. */
LST_MUST_USE lst_status lst__gguf_get_text(const lst_gguf *gguf, const char *name, const char **out, size_t *n_bytes,
                                           lst_error *err);
/* Any integer type, not negative. */
LST_MUST_USE lst_status lst__gguf_get_size(const lst_gguf *gguf, const char *name, size_t *out, lst_error *err);
LST_MUST_USE lst_status lst__gguf_get_real(const lst_gguf *gguf, const char *name, double *out, lst_error *err);
/* An array: its element type and number, and its first byte (strings: length and text one after another). */
LST_MUST_USE lst_status lst__gguf_get_array(const lst_gguf *gguf, const char *name, uint32_t *element_type, size_t *n,
                                            const unsigned char **first, lst_error *err);

#endif
