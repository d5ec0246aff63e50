/* SPDX-License-Identifier: MIT */
#include "io/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* Value types of keys. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, N_TYPES };
static const unsigned char value_bytes[N_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

#define DEFAULT_ALIGNMENT 32
#define MAX_ALIGNMENT ((size_t)1 << 20)
/* The least a key (empty name is refused: 8 + 1, type 4, value 1) and a tensor (8 + 1, 4, 4, 8) take in a file: they
 * bound what a count may claim. */
#define LEAST_KEY_BYTES 14
#define LEAST_TENSOR_BYTES 25

typedef struct reader {
    const char *path;
    const unsigned char *data;
    size_t n_bytes, at;
} reader;

static const struct {
    const char *name;
    uint32_t number;
    size_t block, bytes;
} types[] = {
#define LST_X(id, number, block, bytes) {#id, number, block, bytes},
    LST_GGUF_TYPE_LIST(LST_X)
#undef LST_X
};

static size_t find_type(uint32_t number)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].number == number)
            return i;
    }
    return SIZE_MAX;
}

const char *lst__gguf_type_name(lst_gguf_type type)
{
    const size_t i = find_type((uint32_t)type);
    return i == SIZE_MAX ? "unknown" : types[i].name;
}

size_t lst__gguf_type_block(lst_gguf_type type)
{
    const size_t i = find_type((uint32_t)type);
    return i == SIZE_MAX ? 1 : types[i].block;
}

static uint64_t load(const unsigned char *from, size_t n_bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static size_t left(const reader *r)
{
    return r->n_bytes - r->at;
}

static lst_status cut_off(const reader *r, const char *what, uint64_t wanted, lst_error *err)
{
    return lst__fail_at(err, LST_ERR_FORMAT, r->at,
                        "%s: byte %zu: %s needs %llu bytes, but the file has only %zu more; it is cut off or broken",
                        r->path, r->at, what, (unsigned long long)wanted, left(r));
}

static lst_status take(reader *r, size_t n_bytes, const char *what, uint64_t *out, lst_error *err)
{
    if (left(r) < n_bytes)
        return cut_off(r, what, n_bytes, err);
    *out = load(r->data + r->at, n_bytes);
    r->at += n_bytes;
    return LST_OK;
}

static lst_status take_text(reader *r, const char *what, const char **text, size_t *n_bytes, lst_error *err)
{
    uint64_t length = 0;
    const lst_status status = take(r, 8, what, &length, err);
    if (status != LST_OK)
        return status;
    if (length > left(r))
        return cut_off(r, what, length, err);
    *text = (const char *)r->data + r->at;
    *n_bytes = (size_t)length;
    r->at += (size_t)length;
    return LST_OK;
}

static lst_status skip_strings(reader *r, uint64_t n, lst_error *err)
{
    const char *text = NULL;
    size_t n_bytes = 0;
    if (n > left(r) / 8)
        return cut_off(r, "an array of strings", n > UINT64_MAX / 8 ? UINT64_MAX : 8 * n, err);
    for (uint64_t i = 0; i < n; i++) {
        const lst_status status = take_text(r, "a string of an array", &text, &n_bytes, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

static lst_status skip_array(reader *r, lst_error *err)
{
    uint64_t type = 0, n = 0;
    lst_status status = take(r, 4, "an array's type", &type, err);
    if (status == LST_OK)
        status = take(r, 8, "an array's length", &n, err);
    if (status != LST_OK)
        return status;
    if (type == ARRAY)
        return lst__fail_at(err, LST_ERR_UNSUPPORTED, r->at, "%s: byte %zu: an array of arrays; none is known in use",
                            r->path, r->at);
    if (type >= N_TYPES)
        return lst__fail_at(err, LST_ERR_FORMAT, r->at, "%s: byte %zu: an array of type %llu; there are 0 to 12",
                            r->path, r->at, (unsigned long long)type);
    if (type == STRING)
        return skip_strings(r, n, err);
    if (n > left(r) / value_bytes[type])
        return cut_off(r, "an array", n > UINT64_MAX / 8 ? UINT64_MAX : n * value_bytes[type], err);
    r->at += (size_t)n * value_bytes[type];
    return LST_OK;
}

static lst_status skip_value(reader *r, uint64_t type, lst_error *err)
{
    uint64_t ignored = 0;
    const char *text = NULL;
    size_t n_bytes = 0;
    if (type >= N_TYPES)
        return lst__fail_at(err, LST_ERR_FORMAT, r->at, "%s: byte %zu: a value of type %llu; there are 0 to 12",
                            r->path, r->at, (unsigned long long)type);
    if (type == STRING)
        return take_text(r, "a string", &text, &n_bytes, err);
    if (type == ARRAY)
        return skip_array(r, err);
    return take(r, value_bytes[type], "a value", &ignored, err);
}

static lst_status read_key(reader *r, lst_gguf_key *key, lst_error *err)
{
    uint64_t type = 0;
    lst_status status = take_text(r, "a key", &key->name, &key->name_bytes, err);
    if (status == LST_OK && key->name_bytes == 0)
        return lst__fail_at(err, LST_ERR_FORMAT, r->at, "%s: byte %zu: a key without a name", r->path, r->at);
    if (status == LST_OK)
        status = take(r, 4, "a value's type", &type, err);
    if (status != LST_OK)
        return status;
    key->type = (uint32_t)type;
    key->value = r->data + r->at;
    return skip_value(r, type, err);
}

static int by_key(const void *a, const void *b)
{
    const lst_gguf_key *x = *(const lst_gguf_key *const *)a, *y = *(const lst_gguf_key *const *)b;
    const int order = memcmp(x->name, y->name, x->name_bytes < y->name_bytes ? x->name_bytes : y->name_bytes);
    return order ? order : (x->name_bytes > y->name_bytes) - (x->name_bytes < y->name_bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const lst_gguf_tensor *const *)a)->name, (*(const lst_gguf_tensor *const *)b)->name);
}

/* Sorts pointers to n items and looks for two neighbours alike; *twice is one of them, or NULL. */
static lst_status find_twice(const void *items, size_t n, size_t size, int (*order)(const void *, const void *),
                             const void **twice, lst_error *err)
{
    *twice = NULL;
    const void **sorted = lst__alloc(n ? n : 1, sizeof *sorted);
    if (!sorted)
        return lst__fail_memory(err, "names of a GGUF file", n * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (const char *)items + i * size;
    qsort(sorted, n, sizeof *sorted, order);
    for (size_t i = 1; i < n && !*twice; i++) {
        if (order(&sorted[i - 1], &sorted[i]) == 0)
            *twice = sorted[i];
    }
    lst__free(sorted);
    return LST_OK;
}

static lst_status read_keys(reader *r, lst_gguf *g, lst_error *err)
{
    g->key = lst__alloc(g->n_keys ? g->n_keys : 1, sizeof *g->key);
    if (!g->key)
        return lst__fail_memory(err, r->path, g->n_keys * sizeof *g->key);
    for (size_t i = 0; i < g->n_keys; i++) {
        const lst_status status = read_key(r, &g->key[i], err);
        if (status != LST_OK)
            return status;
    }
    const void *twice = NULL;
    const lst_status status = find_twice(g->key, g->n_keys, sizeof *g->key, by_key, &twice, err);
    if (status != LST_OK || !twice)
        return status;
    const lst_gguf_key *key = twice;
    return lst__fail(err, LST_ERR_FORMAT, "%s: key \"%.*s\" stands twice", r->path,
                     key->name_bytes > 80 ? 80 : (int)key->name_bytes, key->name);
}

static lst_status read_dims(reader *r, lst_gguf_tensor *t, lst_error *err)
{
    uint64_t n_dims = 0;
    lst_status status = take(r, 4, "a tensor's dimensions", &n_dims, err);
    if (status != LST_OK)
        return status;
    if (n_dims > LST_GGUF_MAX_DIMS)
        return lst__fail_at(err, LST_ERR_FORMAT, r->at, "%s: tensor \"%s\" has %llu dimensions; at most %d are allowed",
                            r->path, t->name, (unsigned long long)n_dims, LST_GGUF_MAX_DIMS);
    t->n_dims = (size_t)n_dims;
    t->n_elems = 1;
    for (size_t i = 0; i < t->n_dims; i++) {
        uint64_t dim = 0;
        status = take(r, 8, "a tensor's dimension", &dim, err);
        if (status != LST_OK)
            return status;
        if (dim > INT64_MAX || (dim && t->n_elems > INT64_MAX / dim))
            return lst__fail_at(err, LST_ERR_FORMAT, r->at, "%s: tensor \"%s\" has more elements than 2^63", r->path,
                                t->name);
        t->dims[i] = (size_t)dim;
        t->n_elems *= (size_t)dim;
    }
    return LST_OK;
}

static lst_status read_type(reader *r, lst_gguf_tensor *t, lst_error *err)
{
    uint64_t number = 0;
    const lst_status status = take(r, 4, "a tensor's type", &number, err);
    if (status != LST_OK)
        return status;
    const size_t type = find_type((uint32_t)number);
    if (type == SIZE_MAX)
        return lst__fail_at(err, LST_ERR_FORMAT, r->at,
                            "%s: tensor \"%s\" has type %llu, which is unknown or was removed", r->path, t->name,
                            (unsigned long long)number);
    const size_t row = t->n_dims ? t->dims[0] : 1;
    if (row % types[type].block)
        return lst__fail_at(err, LST_ERR_FORMAT, r->at, "%s: tensor \"%s\": rows of %zu are not whole %s blocks of %zu",
                            r->path, t->name, row, types[type].name, types[type].block);
    t->type = (lst_gguf_type)number;
    if (t->n_elems / types[type].block > INT64_MAX / types[type].bytes)
        return lst__fail_at(err, LST_ERR_FORMAT, r->at, "%s: tensor \"%s\" has more bytes than 2^63", r->path, t->name);
    t->n_bytes = t->n_elems / types[type].block * types[type].bytes;
    return LST_OK;
}

/* *offset is where the file says the tensor begins, from the start of the data. */
static lst_status read_tensor(reader *r, lst_gguf_tensor *t, uint64_t *offset, lst_error *err)
{
    const char *name = NULL;
    size_t n_bytes = 0;
    lst_status status = take_text(r, "a tensor's name", &name, &n_bytes, err);
    if (status != LST_OK)
        return status;
    if (n_bytes == 0 || n_bytes > LST_GGUF_MAX_NAME || memchr(name, '\0', n_bytes))
        return lst__fail_at(err, LST_ERR_FORMAT, r->at,
                            "%s: byte %zu: a tensor's name of %zu bytes; 1 to %d are allowed", r->path, r->at, n_bytes,
                            LST_GGUF_MAX_NAME);
    memcpy(t->name, name, n_bytes);
    status = read_dims(r, t, err);
    if (status == LST_OK)
        status = read_type(r, t, err);
    return status == LST_OK ? take(r, 8, "a tensor's offset", offset, err) : status;
}

static size_t padded(size_t n, size_t alignment)
{
    return (n + alignment - 1) / alignment * alignment;
}

/* Tensors stand one after another in the order of their descriptions, each padded to the alignment: the format's own
 * writer and its C reader allow nothing else. `offset` holds what the file says. */
static lst_status place_tensors(const reader *r, lst_gguf *g, const uint64_t *offset, lst_error *err)
{
    uint64_t expected = 0;
    g->data_offset = padded(r->at, g->alignment);
    if (g->n_tensors && g->data_offset > r->n_bytes)
        return cut_off(r, "the tensors' data", g->data_offset - r->at, err);
    for (size_t i = 0; i < g->n_tensors; i++) {
        lst_gguf_tensor *t = &g->tensor[i];
        if (offset[i] != expected)
            return lst__fail(err, LST_ERR_FORMAT,
                             "%s: tensor \"%s\" begins at byte %llu of the data; after the tensors before it and their "
                             "padding, byte %llu was expected",
                             r->path, t->name, (unsigned long long)offset[i], (unsigned long long)expected);
        const uint64_t room = r->n_bytes - g->data_offset;
        if (expected > room || t->n_bytes > room - expected)
            return lst__fail(err, LST_ERR_FORMAT,
                             "%s: tensor \"%s\" of %zu bytes ends after the file, which is cut off", r->path, t->name,
                             t->n_bytes);
        t->data = r->data + g->data_offset + expected;
        expected += padded(t->n_bytes, g->alignment);
    }
    return LST_OK;
}

static lst_status read_tensors(reader *r, lst_gguf *g, lst_error *err)
{
    uint64_t *offset = lst__alloc(g->n_tensors + 1, sizeof *offset);
    g->tensor = lst__alloc(g->n_tensors ? g->n_tensors : 1, sizeof *g->tensor);
    lst_status status = LST_OK;
    if (!offset || !g->tensor)
        status = lst__fail_memory(err, r->path, g->n_tensors * sizeof *g->tensor);
    for (size_t i = 0; i < g->n_tensors && status == LST_OK; i++)
        status = read_tensor(r, &g->tensor[i], &offset[i], err);
    const void *twice = NULL;
    if (status == LST_OK)
        status = find_twice(g->tensor, g->n_tensors, sizeof *g->tensor, by_name, &twice, err);
    if (status == LST_OK && twice)
        status = lst__fail(err, LST_ERR_FORMAT, "%s: tensor \"%s\" stands twice", r->path,
                           ((const lst_gguf_tensor *)twice)->name);
    if (status == LST_OK)
        status = place_tensors(r, g, offset, err);
    lst__free(offset);
    return status;
}

static lst_status read_counts(reader *r, lst_gguf *g, lst_error *err)
{
    uint64_t version = 0, n_tensors = 0, n_keys = 0;
    if (left(r) < 4 || memcmp(r->data, "GGUF", 4) != 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s does not begin with \"GGUF\": it is no GGUF file", r->path);
    r->at = 4;
    lst_status status = take(r, 4, "the version", &version, err);
    if (status != LST_OK)
        return status;
    if (version != 2 && version != 3)
        return lst__fail_at(err, LST_ERR_UNSUPPORTED, 4, "%s: GGUF version %llu%s; versions 2 and 3 are read", r->path,
                            (unsigned long long)version, version >> 16 ? " (a big-endian file?)" : "");
    status = take(r, 8, "the number of tensors", &n_tensors, err);
    if (status == LST_OK)
        status = take(r, 8, "the number of keys", &n_keys, err);
    if (status != LST_OK)
        return status;
    if (n_keys > left(r) / LEAST_KEY_BYTES || n_tensors > left(r) / LEAST_TENSOR_BYTES)
        return lst__fail_at(err, LST_ERR_FORMAT, 8,
                            "%s claims %llu tensors and %llu keys, more than its %zu bytes can hold", r->path,
                            (unsigned long long)n_tensors, (unsigned long long)n_keys, r->n_bytes);
    g->version = (uint32_t)version;
    g->n_tensors = (size_t)n_tensors;
    g->n_keys = (size_t)n_keys;
    return LST_OK;
}

static lst_status read_general(const reader *r, lst_gguf *g, lst_error *err)
{
    const char *text = NULL;
    size_t n_bytes = 0;
    const lst_status status = lst__gguf_get_text(g, "general.architecture", &text, &n_bytes, err);
    if (status != LST_OK)
        return status;
    const lst_gguf_key *alignment = lst__gguf_find_key(g, "general.alignment");
    g->alignment = DEFAULT_ALIGNMENT;
    if (!alignment)
        return LST_OK;
    const uint64_t value = alignment->type == U32 ? load(alignment->value, 4) : 0;
    if (value == 0 || (value & (value - 1)) || value > MAX_ALIGNMENT)
        return lst__fail(
            err, LST_ERR_FORMAT,
            "%s: general.alignment must be a 32-bit power of two of at most %zu; found type %u, value %llu", r->path,
            MAX_ALIGNMENT, (unsigned)alignment->type, (unsigned long long)value);
    g->alignment = (size_t)value;
    return LST_OK;
}

lst_status lst__gguf_open(const char *path, lst_gguf *out, lst_error *err)
{
    lst_gguf g = {.path = lst__strdup(path)};
    if (!g.path)
        return lst__fail_memory(err, path, strlen(path));
    lst_status status = lst__map_open(path, &g.map, err);
    if (status != LST_OK) {
        lst__free(g.path);
        return status;
    }
    reader r = {.path = path, .data = g.map.data, .n_bytes = g.map.n_bytes};
    status = read_counts(&r, &g, err);
    if (status == LST_OK)
        status = read_keys(&r, &g, err);
    if (status == LST_OK)
        status = read_general(&r, &g, err);
    if (status == LST_OK)
        status = read_tensors(&r, &g, err);
    if (status != LST_OK) {
        lst__gguf_close(&g);
        return status;
    }
    *out = g;
    return LST_OK;
}

void lst__gguf_close(lst_gguf *gguf)
{
    lst__free(gguf->key);
    lst__free(gguf->tensor);
    lst__free(gguf->path);
    lst__map_close(&gguf->map);
    *gguf = (lst_gguf){0};
}

const lst_gguf_key *lst__gguf_find_key(const lst_gguf *gguf, const char *name)
{
    const size_t n_bytes = strlen(name);
    for (size_t i = 0; i < gguf->n_keys; i++) {
        if (gguf->key[i].name_bytes == n_bytes && memcmp(gguf->key[i].name, name, n_bytes) == 0)
            return &gguf->key[i];
    }
    return NULL;
}

const lst_gguf_tensor *lst__gguf_find_tensor(const lst_gguf *gguf, const char *name)
{
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        if (strcmp(gguf->tensor[i].name, name) == 0)
            return &gguf->tensor[i];
    }
    return NULL;
}

static lst_status wrong(const lst_gguf *gguf, const char *name, const lst_gguf_key *key, const char *expected,
                        lst_error *err)
{
    if (!key)
        return lst__fail(err, LST_ERR_FORMAT, "%s has no key \"%s\"; %s was expected", gguf->path, name, expected);
    return lst__fail(err, LST_ERR_FORMAT, "%s: key \"%s\" has value type %u; %s was expected", gguf->path, name,
                     (unsigned)key->type, expected);
}

lst_status lst__gguf_get_text(const lst_gguf *gguf, const char *name, const char **out, size_t *n_bytes, lst_error *err)
{
    const lst_gguf_key *key = lst__gguf_find_key(gguf, name);
    if (!key || key->type != STRING)
        return wrong(gguf, name, key, "a string", err);
    *n_bytes = (size_t)load(key->value, 8);
    *out = (const char *)key->value + 8;
    return LST_OK;
}

lst_status lst__gguf_get_size(const lst_gguf *gguf, const char *name, size_t *out, lst_error *err)
{
    const lst_gguf_key *key = lst__gguf_find_key(gguf, name);
    const bool is_integer = key && key->type < N_TYPES && value_bytes[key->type] && key->type != F32 &&
                            key->type != F64 && key->type != BOOL;
    if (!is_integer)
        return wrong(gguf, name, key, "a whole number", err);
    const size_t n_bytes = value_bytes[key->type];
    const uint64_t value = load(key->value, n_bytes);
    const bool is_signed = key->type == I8 || key->type == I16 || key->type == I32 || key->type == I64;
    if (is_signed && value >> (8 * n_bytes - 1))
        return lst__fail(err, LST_ERR_FORMAT, "%s: key \"%s\" is negative", gguf->path, name);
    *out = (size_t)value;
    return LST_OK;
}

lst_status lst__gguf_get_real(const lst_gguf *gguf, const char *name, double *out, lst_error *err)
{
    const lst_gguf_key *key = lst__gguf_find_key(gguf, name);
    if (!key || (key->type != F32 && key->type != F64))
        return wrong(gguf, name, key, "a real number", err);
    const uint64_t bits = load(key->value, value_bytes[key->type]);
    if (key->type == F64) {
        memcpy(out, &bits, sizeof *out);
        return LST_OK;
    }
    const uint32_t low = (uint32_t)bits;
    float value = 0;
    memcpy(&value, &low, sizeof value);
    *out = (double)value;
    return LST_OK;
}

lst_status lst__gguf_get_array(const lst_gguf *gguf, const char *name, uint32_t *element_type, size_t *n,
                               const unsigned char **first, lst_error *err)
{
    const lst_gguf_key *key = lst__gguf_find_key(gguf, name);
    if (!key || key->type != ARRAY)
        return wrong(gguf, name, key, "an array", err);
    *element_type = (uint32_t)load(key->value, 4);
    *n = (size_t)load(key->value + 4, 8);
    *first = key->value + 12;
    return LST_OK;
}
