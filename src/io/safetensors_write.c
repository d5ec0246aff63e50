/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"
#include "io/printable.h"
#include "io/safetensors.h"

/* Data begin at a multiple of this: a cache line, and enough for any element. Readers take any padding by spaces. */
#define DATA_ALIGN 64

/* An entry in the order of the file. */
typedef struct place {
    const lst_st_entry *entry;
    size_t index; /* in the caller's list */
    size_t n_bytes;
} place;

/* Widest dtype first, then by name: each element is then aligned without padding between tensors. */
static int by_rank(const void *a, const void *b)
{
    const lst_st_entry *x = ((const place *)a)->entry, *y = ((const place *)b)->entry;
    if (x->dtype != y->dtype)
        return x->dtype > y->dtype ? -1 : 1;
    return strcmp(x->name, y->name);
}

static lst_status entry_bytes(const char *path, const lst_st_entry *entry, size_t *out, lst_error *err)
{
    size_t n_bits = lst__st_dtype_bits(entry->dtype);
    bool overflow = false, zero = false;
    for (size_t i = 0; i < entry->n_dims; i++) {
        overflow |= __builtin_mul_overflow(n_bits, entry->dims[i], &n_bits);
        zero |= entry->dims[i] == 0;
    }
    char shown[160];
    lst__printable(entry->name, shown, sizeof shown);
    if (strcmp(entry->name, "__metadata__") == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "cannot write %s: a tensor may not be called __metadata__", path);
    if ((overflow && !zero) || (!zero && n_bits % 8 != 0))
        return lst__fail(err, LST_ERR_ARGUMENT, "cannot write %s: the shape of tensor \"%s\" is no number of bytes",
                         path, shown);
    *out = zero ? 0 : n_bits / 8;
    return LST_OK;
}

static json_t *entry_json(const place *p, size_t begin)
{
    json_t *shape = json_array();
    for (size_t i = 0; shape != NULL && i < p->entry->n_dims; i++)
        if (json_array_append_new(shape, json_integer((json_int_t)p->entry->dims[i])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", lst__st_dtype_name(p->entry->dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)(begin + p->n_bytes));
}

static json_t *metadata_json(const lst_st_content *content)
{
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    for (size_t i = 0; metadata != NULL && i < content->n_metadata; i++)
        if (json_object_set_new(metadata, content->metadata[i].key, json_string(content->metadata[i].value)) != 0) {
            json_decref(metadata);
            metadata = NULL;
        }
    return metadata;
}

/* The header's JSON; jansson writes keys in the order of insertion. */
static lst_status make_header(const char *path, const lst_st_content *content, const place *places, char **out,
                              lst_error *err)
{
    json_t *root = json_object();
    bool ok = root != NULL && json_object_set_new(root, "__metadata__", metadata_json(content)) == 0;
    size_t begin = 0;
    for (size_t i = 0; ok && i < content->n_entries; i++) {
        ok = json_object_set_new(root, places[i].entry->name, entry_json(&places[i], begin)) == 0;
        begin += places[i].n_bytes;
    }
    lst_status status;
    if (!ok) /* jansson does not tell the two apart */
        status = lst__fail(err, LST_ERR_MEMORY,
                           "cannot write %s: no memory for its header, or a name in it is not UTF-8", path);
    else
        status = lst__json_text(root, out, err);
    json_decref(root);
    return status;
}

static lst_status write_header(lst_writer *writer, const char *path, const char *json, lst_error *err)
{
    static const char spaces[DATA_ALIGN + 1] = "                                                                ";
    size_t n_json = strlen(json);
    size_t n_pad = (DATA_ALIGN - (8 + n_json) % DATA_ALIGN) % DATA_ALIGN;
    uint64_t n_header = n_json + n_pad;
    if (n_header > LST_ST_MAX_HEADER)
        return lst__fail(err, LST_ERR_ARGUMENT, "cannot write %s: its header needs %zu bytes; the format allows %u",
                         path, (size_t)n_header, LST_ST_MAX_HEADER);
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(n_header >> (8 * i));
    lst_status status = lst__writer_write(writer, length, 8, err);
    if (status == LST_OK)
        status = lst__writer_write(writer, json, n_json, err);
    return status == LST_OK ? lst__writer_write(writer, spaces, n_pad, err) : status;
}

static lst_status write_entry(lst_writer *writer, const lst_st_content *content, const place *p, lst_error *err)
{
    for (size_t offset = 0; offset < p->n_bytes;) {
        const void *data = NULL;
        size_t n_bytes = 0;
        lst_status status = content->source(content->context, p->index, offset, &data, &n_bytes, err);
        if (status != LST_OK)
            return status;
        if (n_bytes == 0 || n_bytes > p->n_bytes - offset)
            return lst__fail(err, LST_ERR_STATE, "the source of tensor %s gave %zu bytes where 1 to %zu were expected",
                             p->entry->name, n_bytes, p->n_bytes - offset);
        status = lst__writer_write(writer, data, n_bytes, err);
        if (status != LST_OK)
            return status;
        offset += n_bytes;
    }
    return LST_OK;
}

static lst_status write_file(const char *path, const lst_st_content *content, const place *places, const char *json,
                             lst_error *err)
{
    lst_writer *writer;
    lst_status status = lst__writer_open(&writer, path, err);
    if (status != LST_OK)
        return status;
    status = write_header(writer, path, json, err);
    for (size_t i = 0; status == LST_OK && i < content->n_entries; i++)
        status = write_entry(writer, content, &places[i], err);
    if (status == LST_OK)
        return lst__writer_commit(writer, err);
    lst__writer_abort(writer);
    return status;
}

static lst_status place_entries(const char *path, const lst_st_content *content, place *places, lst_error *err)
{
    for (size_t i = 0; i < content->n_entries; i++) {
        places[i] = (place){.entry = &content->entries[i], .index = i};
        lst_status status = entry_bytes(path, places[i].entry, &places[i].n_bytes, err);
        if (status != LST_OK)
            return status;
    }
    if (content->n_entries > 0)
        qsort(places, content->n_entries, sizeof *places, by_rank);
    return LST_OK;
}

/* A hash table, because a list of 100,000 names compared in pairs would take minutes. */
static bool has_duplicate(const lst_st_content *content)
{
    json_t *names = json_object();
    bool twice = false;
    for (size_t i = 0; names != NULL && !twice && i < content->n_entries; i++) {
        twice = json_object_get(names, content->entries[i].name) != NULL;
        if (json_object_set_new(names, content->entries[i].name, json_true()) != 0)
            break;
    }
    json_decref(names);
    return twice;
}

lst_status lst__st_write(const char *path, const lst_st_content *content, lst_error *err)
{
    place *places = lst__alloc(content->n_entries, sizeof *places);
    if (places == NULL)
        return lst__fail_memory(err, path, content->n_entries * sizeof *places);
    char *json = NULL;
    lst_status status = place_entries(path, content, places, err);
    if (status == LST_OK && has_duplicate(content))
        status = lst__fail(err, LST_ERR_ARGUMENT, "cannot write %s: two tensors have the same name", path);
    if (status == LST_OK)
        status = make_header(path, content, places, &json, err);
    if (status == LST_OK)
        status = write_file(path, content, places, json, err);
    lst__free(json);
    lst__free(places);
    return status;
}
