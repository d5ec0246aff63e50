/* SPDX-License-Identifier: MIT */
#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "io/json.h"
#include "io/printable.h"

/* The header is checked in three passes: its length against the file (nothing is allocated yet), its JSON (bounded by
 * io/json.h), then every entry; at last all ranges together must tile the data without hole or overlap. */

/* A printable name in a message; two may stand in one. */
typedef struct shown {
    char text[160];
} shown;

#define SHOW(name) lst__printable((name), (shown){{0}}.text, sizeof(shown))

static const struct {
    const char *name;
    size_t bits;
} dtypes[] = {
#define LST_X(id, n_bits) {#id, n_bits},
    LST_ST_DTYPE_LIST(LST_X)
#undef LST_X
};

const char *lst__st_dtype_name(lst_st_dtype dtype)
{
    return (size_t)dtype < LST_ST_N_DTYPES ? dtypes[dtype].name : "unknown";
}

size_t lst__st_dtype_bits(lst_st_dtype dtype)
{
    return (size_t)dtype < LST_ST_N_DTYPES ? dtypes[dtype].bits : 0;
}

/* What is known while a file is read. */
typedef struct reading {
    lst_st *st;
    const unsigned char *data; /* behind the header */
    size_t n_data;
    size_t n_dims_used;
    lst_error *err;
} reading;

static lst_status read_dtype(reading *r, const json_t *entry, lst_st_tensor *t)
{
    json_t *value = json_object_get(entry, "dtype");
    if (!json_is_string(value))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": its dtype is %s; a string is expected",
                         r->st->path, SHOW(t->name), lst__json_kind(value));
    const char *name = json_string_value(value);
    for (size_t i = 0; i < LST_ST_N_DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            t->dtype = (lst_st_dtype)i;
            return LST_OK;
        }
    return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": unknown dtype \"%s\"", r->st->path, SHOW(t->name),
                     SHOW(name));
}

/* A whole number of at least 0, or a message that calls it `what`. */
static lst_status read_count(reading *r, const lst_st_tensor *t, const json_t *value, const char *what, size_t *out)
{
    if (!json_is_integer(value))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": %s is %s; an integer is expected", r->st->path,
                         SHOW(t->name), what, lst__json_kind(value));
    if (json_integer_value(value) < 0)
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": %s is negative (%" JSON_INTEGER_FORMAT ")",
                         r->st->path, SHOW(t->name), what, json_integer_value(value));
    *out = (size_t)json_integer_value(value);
    return LST_OK;
}

static lst_status read_shape(reading *r, const json_t *entry, lst_st_tensor *t)
{
    json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": its shape is %s; an array is expected",
                         r->st->path, SHOW(t->name), lst__json_kind(shape));
    size_t *dims = r->st->dims + r->n_dims_used;
    bool overflow = false;
    t->n_dims = json_array_size(shape);
    t->n_elems = 1;
    for (size_t i = 0; i < t->n_dims; i++) {
        lst_status status = read_count(r, t, json_array_get(shape, i), "a dimension", &dims[i]);
        if (status != LST_OK)
            return status;
        overflow |= __builtin_mul_overflow(t->n_elems, dims[i], &t->n_elems);
    }
    if (overflow)
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": the product of its shape overflows 64 bits",
                         r->st->path, SHOW(t->name));
    t->dims = dims;
    r->n_dims_used += t->n_dims;
    return LST_OK;
}

static lst_status read_range(reading *r, const json_t *entry, lst_st_tensor *t)
{
    json_t *range = json_object_get(entry, "data_offsets");
    if (!json_is_array(range))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": data_offsets is %s; [begin, end] is expected",
                         r->st->path, SHOW(t->name), lst__json_kind(range));
    if (json_array_size(range) != 2)
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": data_offsets has %zu numbers; 2 are expected",
                         r->st->path, SHOW(t->name), json_array_size(range));
    size_t begin = 0, end = 0;
    lst_status status = read_count(r, t, json_array_get(range, 0), "data_offsets' begin", &begin);
    if (status == LST_OK)
        status = read_count(r, t, json_array_get(range, 1), "data_offsets' end", &end);
    if (status != LST_OK)
        return status;
    if (end < begin)
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": its bytes end (%zu) before they begin (%zu)",
                         r->st->path, SHOW(t->name), end, begin);
    if (end > r->n_data)
        return lst__fail(r->err, LST_ERR_FORMAT,
                         "%s: tensor \"%s\": its bytes end at %zu of the data, and the file has only %zu (truncated?)",
                         r->st->path, SHOW(t->name), end, r->n_data);
    t->data = r->data + begin;
    t->n_bytes = end - begin;
    return LST_OK;
}

/* Shape times dtype must be exactly the range. */
static lst_status check_size(reading *r, const lst_st_tensor *t)
{
    size_t n_bits, bits = lst__st_dtype_bits(t->dtype);
    if (__builtin_mul_overflow(t->n_elems, bits, &n_bits))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": %zu elements of %zu bits overflow 64 bits",
                         r->st->path, SHOW(t->name), t->n_elems, bits);
    if (n_bits % 8 != 0)
        return lst__fail(r->err, LST_ERR_FORMAT,
                         "%s: tensor \"%s\": %zu elements of %zu bits are no whole number of bytes", r->st->path,
                         SHOW(t->name), t->n_elems, bits);
    if (n_bits / 8 != t->n_bytes)
        return lst__fail(r->err, LST_ERR_FORMAT,
                         "%s: tensor \"%s\": its shape and dtype %s need %zu bytes; data_offsets give %zu", r->st->path,
                         SHOW(t->name), lst__st_dtype_name(t->dtype), n_bits / 8, t->n_bytes);
    return LST_OK;
}

static lst_status read_tensor(reading *r, const char *name, const json_t *entry)
{
    lst_st_tensor *t = &r->st->tensors[r->st->n_tensors];
    t->name = name;
    if (!json_is_object(entry))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensor \"%s\": its entry is %s; an object is expected",
                         r->st->path, SHOW(name), lst__json_kind(entry));
    lst_status status = read_dtype(r, entry, t);
    if (status == LST_OK)
        status = read_shape(r, entry, t);
    if (status == LST_OK)
        status = read_range(r, entry, t);
    if (status == LST_OK)
        status = check_size(r, t);
    if (status == LST_OK)
        r->st->n_tensors++;
    return status;
}

static lst_status read_metadata(reading *r, json_t *metadata)
{
    if (!json_is_object(metadata))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: __metadata__ is %s; an object of strings is expected",
                         r->st->path, lst__json_kind(metadata));
    r->st->metadata = lst__alloc(json_object_size(metadata), sizeof *r->st->metadata);
    if (r->st->metadata == NULL)
        return lst__fail_memory(r->err, r->st->path, json_object_size(metadata) * sizeof *r->st->metadata);
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return lst__fail(r->err, LST_ERR_FORMAT, "%s: __metadata__ \"%s\" is %s; a string is expected", r->st->path,
                             SHOW(key), lst__json_kind(value));
        r->st->metadata[r->st->n_metadata++] = (lst_st_pair){.key = key, .value = json_string_value(value)};
    }
    return LST_OK;
}

/* Room for all tensors and dimensions at once: what the JSON holds bounds both. */
static lst_status make_room(reading *r, json_t *root)
{
    size_t n_dims = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry)
    {
        n_dims += json_array_size(json_object_get(entry, "shape"));
    }
    r->st->tensors = lst__alloc(json_object_size(root), sizeof *r->st->tensors);
    r->st->dims = lst__alloc(n_dims, sizeof *r->st->dims);
    if (r->st->tensors == NULL || r->st->dims == NULL)
        return lst__fail_memory(r->err, r->st->path,
                                json_object_size(root) * sizeof *r->st->tensors + n_dims * sizeof(size_t));
    return LST_OK;
}

static int by_place(const void *a, const void *b)
{
    const lst_st_tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const lst_st_tensor *)a)->name, ((const lst_st_tensor *)b)->name);
}

/* Every byte of the data belongs to exactly one tensor. */
static lst_status check_tiling(reading *r)
{
    lst_st *st = r->st;
    if (st->n_tensors > 0)
        qsort(st->tensors, st->n_tensors, sizeof *st->tensors, by_place);
    const unsigned char *end = r->data;
    for (size_t i = 0; i < st->n_tensors; i++) {
        const lst_st_tensor *t = &st->tensors[i];
        if (t->data > end)
            return lst__fail(r->err, LST_ERR_FORMAT, "%s: a hole: %zu bytes before tensor \"%s\" belong to no tensor",
                             st->path, (size_t)(t->data - end), SHOW(t->name));
        if (t->data < end)
            return lst__fail(r->err, LST_ERR_FORMAT, "%s: tensors \"%s\" and \"%s\" overlap in %zu bytes", st->path,
                             SHOW(st->tensors[i - 1].name), SHOW(t->name), (size_t)(end - t->data));
        end += t->n_bytes;
    }
    size_t n_left = (size_t)(r->data + r->n_data - end);
    if (n_left > 0)
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: %zu bytes after the last tensor belong to no tensor", st->path,
                         n_left);
    if (st->n_tensors > 0)
        qsort(st->tensors, st->n_tensors, sizeof *st->tensors, by_name);
    return LST_OK;
}

static lst_status read_entries(reading *r, json_t *root)
{
    if (!json_is_object(root))
        return lst__fail(r->err, LST_ERR_FORMAT, "%s: the header is %s; an object is expected", r->st->path,
                         lst__json_kind(root));
    lst_status status = make_room(r, root);
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry)
    {
        if (status != LST_OK)
            break;
        status = strcmp(name, "__metadata__") == 0 ? read_metadata(r, entry) : read_tensor(r, name, entry);
    }
    return status == LST_OK ? check_tiling(r) : status;
}

static uint64_t little_endian_64(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static lst_status check_length(const char *path, const unsigned char *bytes, size_t n_bytes, uint64_t *n_header,
                               lst_error *err)
{
    if (n_bytes < 8)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s: only %zu bytes; a safetensors file begins with 8 bytes of header length", path, n_bytes);
    uint64_t n = little_endian_64(bytes);
    if (n > LST_ST_MAX_HEADER)
        return lst__fail(err, LST_ERR_FORMAT, "%s: a header of %" PRIu64 " bytes; the format allows %u at most", path,
                         n, LST_ST_MAX_HEADER);
    if (n > n_bytes - 8)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s: a header of %" PRIu64 " bytes reaches beyond the file's %zu (truncated?)", path, n,
                         n_bytes);
    if (n == 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s: the header is empty", path);
    *n_header = n;
    return LST_OK;
}

/* Reads bytes into st, whose path is set. */
static lst_status read_file(lst_st *st, const unsigned char *bytes, size_t n_bytes, lst_error *err)
{
    uint64_t n_header = 0;
    lst_status status = check_length(st->path, bytes, n_bytes, &n_header, err);
    if (status != LST_OK)
        return status;
    json_t *root = NULL;
    status = lst__json_parse(&root, st->path, (const char *)bytes + 8, (size_t)n_header, err);
    if (status != LST_OK)
        return status;
    st->json = root;
    reading r = {.st = st, .data = bytes + 8 + n_header, .n_data = n_bytes - 8 - (size_t)n_header, .err = err};
    return read_entries(&r, root);
}

static lst_st *new_st(const char *path)
{
    lst_st *st = lst__alloc(1, sizeof *st);
    if (st == NULL)
        return NULL;
    st->path = lst__strdup(path);
    if (st->path == NULL) {
        lst__free(st);
        return NULL;
    }
    return st;
}

lst_status lst__st_parse(lst_st **out, const char *path, const unsigned char *bytes, size_t n_bytes, lst_error *err)
{
    lst_st *st = new_st(path);
    if (st == NULL)
        return lst__fail_memory(err, path, sizeof *st);
    lst_status status = read_file(st, bytes, n_bytes, err);
    if (status != LST_OK) {
        lst__st_close(st);
        return status;
    }
    *out = st;
    return LST_OK;
}

lst_status lst__st_open(lst_st **out, const char *path, lst_error *err)
{
    lst_map map;
    lst_status status = lst__map_open(path, &map, err);
    if (status != LST_OK)
        return status;
    status = lst__st_parse(out, path, map.data, map.n_bytes, err);
    if (status == LST_OK)
        (*out)->map = map;
    else
        lst__map_close(&map);
    return status;
}

void lst__st_close(lst_st *st)
{
    if (st == NULL)
        return;
    lst__map_close(&st->map);
    json_decref(st->json);
    lst__free(st->tensors);
    lst__free(st->metadata);
    lst__free(st->dims);
    lst__free(st->path);
    lst__free(st);
}

const lst_st_tensor *lst__st_find(const lst_st *st, const char *name)
{
    lst_st_tensor key = {.name = name};
    return st->n_tensors == 0 ? NULL : bsearch(&key, st->tensors, st->n_tensors, sizeof key, by_name);
}

const char *lst__st_metadata(const lst_st *st, const char *key)
{
    for (size_t i = 0; i < st->n_metadata; i++)
        if (strcmp(st->metadata[i].key, key) == 0)
            return st->metadata[i].value;
    return NULL;
}
