/* SPDX-License-Identifier: MIT
 *
 * A pair NAME.json + NAME.safetensors of golden values, read for tests that trust it: anything odd ends the program.
 * Deliberately independent of src/io/, which has golden files of its own.
 */
#ifndef TESTS_GOLDEN_FILE_H
#define TESTS_GOLDEN_FILE_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct golden_file {
    json_t *about;  /* NAME.json */
    json_t *header; /* of NAME.safetensors; NULL if there is none */
    char *bytes;
    size_t data_at;
} golden_file;

typedef struct golden_array {
    const char *dtype;
    size_t n_dims, dims[8], n_elems;
    const void *data; /* not aligned */
} golden_array;

__attribute__((noreturn)) static inline void golden_die(const char *what, const char *name)
{
    fprintf(stderr, "golden values: %s: %s\n", what, name);
    exit(1);
}

static inline char *golden_read(const char *path, size_t *n_bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    char *bytes = malloc((size_t)size + 1);
    if (!bytes || fread(bytes, 1, (size_t)size, f) != (size_t)size)
        golden_die("cannot read", path);
    fclose(f);
    *n_bytes = (size_t)size;
    return bytes;
}

static inline golden_file golden_open(const char *folder, const char *name)
{
    char path[4096];
    golden_file g = {0};
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    g.about = json_load_file(path, 0, &error);
    if (!g.about)
        golden_die("no JSON", path);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    size_t size = 0;
    g.bytes = golden_read(path, &size);
    if (!g.bytes)
        return g;
    uint64_t length;
    memcpy(&length, g.bytes, 8);
    g.header = json_loadb(g.bytes + 8, length, 0, &error);
    g.data_at = 8 + length;
    if (!g.header)
        golden_die("bad header", path);
    return g;
}

static inline void golden_close(golden_file *g)
{
    json_decref(g->about);
    json_decref(g->header);
    free(g->bytes);
}

static inline bool golden_find(const golden_file *g, const char *name, golden_array *out)
{
    const json_t *entry = json_object_get(g->header, name), *shape = json_object_get(entry, "shape");
    if (!entry)
        return false;
    *out = (golden_array){
        .dtype = json_string_value(json_object_get(entry, "dtype")), .n_dims = json_array_size(shape), .n_elems = 1};
    for (size_t i = 0; i < out->n_dims; i++)
        out->n_elems *= out->dims[i] = (size_t)json_integer_value(json_array_get(shape, i));
    out->data = g->bytes + g->data_at + json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    return true;
}

/* A copy of an F32 (or BF16: raw) array in fresh aligned memory, or NULL if it is not there. */
static inline void *golden_copy(const golden_file *g, const char *name, golden_array *out)
{
    if (!golden_find(g, name, out))
        return NULL;
    const size_t each = strcmp(out->dtype, "F32") == 0 ? 4 : strcmp(out->dtype, "U8") == 0 ? 1 : 2;
    void *copy = aligned_alloc(64, (out->n_elems * each + 63) / 64 * 64);
    if (!copy)
        golden_die("no memory for", name);
    memcpy(copy, out->data, out->n_elems * each);
    return copy;
}

/* Numbers as the README says: "inf", "-inf" and "nan" are strings, null is `absent`. */
static inline double golden_number(const json_t *value, double absent)
{
    if (json_is_string(value))
        return strcmp(json_string_value(value), "inf") == 0    ? (double)INFINITY
               : strcmp(json_string_value(value), "-inf") == 0 ? (double)-INFINITY
                                                               : (double)NAN;
    return json_is_number(value) ? json_number_value(value) : absent;
}

static inline double golden_member(const json_t *object, const char *key, double absent)
{
    return golden_number(json_object_get(object, key), absent);
}

#endif
