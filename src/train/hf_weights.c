/* SPDX-License-Identifier: MIT
 *
 * Weights to safetensors, tile by tile: nothing here grows with a tensor.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "store/codec.h"
#include "train/hf_folder.h"

#define INDEX "model.safetensors.index.json"

typedef struct sharding {
    const train_hf_weights *weights;
    lst_arch_tensor *tensors;
    size_t *shard; /* by tensor, from 0 */
    size_t n_tensors, n_shards;
    uint64_t total_bytes, total_elems;
    size_t first; /* of the shard that is being written */
    float *values;
    unsigned char *encoded;
} sharding;

static void deal(sharding *s)
{
    uint64_t in_shard = 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        lst_arch_tensor_at(s->weights->arch, i, &s->tensors[i]);
        uint64_t bytes = lst_codec_bytes(s->weights->codec, s->tensors[i].n_elems);
        if (in_shard > 0 && in_shard + bytes > s->weights->shard_bytes) {
            s->n_shards++;
            in_shard = 0;
        }
        in_shard += bytes;
        s->shard[i] = s->n_shards;
        s->total_bytes += bytes;
        s->total_elems += s->tensors[i].n_elems;
    }
    s->n_shards++;
}

static void shard_name(const sharding *s, size_t shard, char *out, size_t n)
{
    if (s->n_shards == 1)
        snprintf(out, n, "model.safetensors");
    else
        snprintf(out, n, "model-%05zu-of-%05zu.safetensors", shard + 1, s->n_shards);
}

static lst_status source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes, lst_error *err)
{
    sharding *s = context;
    size_t tensor = s->first + entry, size = lst_codec_bytes(s->weights->codec, 1);
    size_t first = offset / size, left = s->tensors[tensor].n_elems - first;
    size_t n = left < TRAIN_HF_TILE ? left : TRAIN_HF_TILE;
    lst_status status = s->weights->values(s->weights->context, tensor, first, n, s->values, err);
    if (status != LST_OK)
        return status;
    lst__codec(s->weights->codec)->encode(s->encoded, n, 0, n, s->values, NULL);
    *data = s->encoded;
    *n_bytes = n * size;
    return LST_OK;
}

static lst_st_dtype dtype_of(lst_codec codec)
{
    return codec == LST_CODEC_BF16 ? LST_ST_BF16 : codec == LST_CODEC_F16 ? LST_ST_F16 : LST_ST_F32;
}

static lst_status write_shard(sharding *s, const char *dir, size_t shard, lst_st_entry *entries, lst_error *err)
{
    size_t n = 0;
    char name[64];
    for (size_t i = 0; i < s->n_tensors; i++) {
        if (s->shard[i] != shard)
            continue;
        if (n == 0)
            s->first = i;
        entries[n++] = (lst_st_entry){.name = s->tensors[i].name,
                                      .dtype = dtype_of(s->weights->codec),
                                      .n_dims = s->tensors[i].n_dims,
                                      .dims = s->tensors[i].dims};
    }
    shard_name(s, shard, name, sizeof name);
    char *path = lst__path_join(dir, name);
    if (!path)
        return lst__fail_memory(err, "a path", strlen(dir) + sizeof name);
    lst_st_content content = {.entries = entries, .n_entries = n, .source = source, .context = s};
    lst_status status = lst__st_write(path, &content, err);
    lst__free(path);
    return status;
}

static lst_status write_index(const sharding *s, const char *dir, lst_error *err)
{
    json_t *map = json_object();
    for (size_t i = 0; i < s->n_tensors; i++) {
        char name[64];
        shard_name(s, s->shard[i], name, sizeof name);
        (void)json_object_set_new(map, s->tensors[i].name, json_string(name));
    }
    json_t *index = json_pack("{s:{s:I, s:I}, s:o}", "metadata", "total_parameters", (json_int_t)s->total_elems,
                              "total_size", (json_int_t)s->total_bytes, "weight_map", map);
    char *path = lst__path_join(dir, INDEX);
    lst_status status = index && path && json_object_size(map) == s->n_tensors
                            ? lst__json_save(index, path, err)
                            : lst__fail_memory(err, INDEX, s->n_tensors * sizeof *s->tensors);
    json_decref(index);
    lst__free(path);
    return status;
}

static lst_status write_all(sharding *s, const char *dir, lst_st_entry *entries, lst_error *err)
{
    lst_status status = LST_OK;
    deal(s);
    for (size_t i = 0; status == LST_OK && i < s->n_shards; i++)
        status = write_shard(s, dir, i, entries, err);
    if (status == LST_OK && s->n_shards > 1)
        status = write_index(s, dir, err);
    return status;
}

lst_status train_hf_write_weights(const char *dir, const train_hf_weights *weights, lst_error *err)
{
    sharding s = {.weights = weights, .n_tensors = lst_arch_tensor_count(weights->arch)};
    s.tensors = lst__alloc(s.n_tensors, sizeof *s.tensors);
    s.shard = lst__alloc(s.n_tensors, sizeof *s.shard);
    s.values = lst__alloc(TRAIN_HF_TILE, sizeof *s.values);
    s.encoded = lst__alloc(TRAIN_HF_TILE, sizeof(float));
    lst_st_entry *entries = lst__alloc(s.n_tensors, sizeof *entries);
    lst_status status = s.tensors && s.shard && s.values && s.encoded && entries
                            ? write_all(&s, dir, entries, err)
                            : lst__fail_memory(err, "the list of tensors", s.n_tensors * sizeof *s.tensors);
    lst__free(s.tensors);
    lst__free(s.shard);
    lst__free(s.values);
    lst__free(s.encoded);
    lst__free(entries);
    return status;
}
