/* SPDX-License-Identifier: MIT
 *
 * A model in one file or in shards named by an index: {"weight_map": {tensor: file name}}.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"
#include "io/printable.h"
#include "io/safetensors.h"

/* An index names each tensor once; the largest models known stay below 20 MB. */
#define MAX_INDEX_BYTES ((size_t)256 << 20)

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const lst_st_tensor *const *)a)->name, (*(const lst_st_tensor *const *)b)->name);
}

/* A shard may only be a plain name beside the index: a downloaded index must not reach other files. */
static lst_status check_shard_name(const char *index, const char *tensor, const json_t *value, lst_error *err)
{
    char shown_tensor[160], shown_name[160];
    lst__printable(tensor, shown_tensor, sizeof shown_tensor);
    if (!json_is_string(value))
        return lst__fail(err, LST_ERR_FORMAT, "%s: the file of tensor \"%s\" is %s; a string is expected", index,
                         shown_tensor, lst__json_kind(value));
    const char *name = json_string_value(value);
    lst__printable(name, shown_name, sizeof shown_name);
    if (*name == '\0')
        return lst__fail(err, LST_ERR_FORMAT, "%s: the file of tensor \"%s\" has an empty name", index, shown_tensor);
    if (strpbrk(name, "/\\") != NULL || strstr(name, "..") != NULL)
        return lst__fail(
            err, LST_ERR_FORMAT,
            "%s: tensor \"%s\" is said to lie in \"%s\"; only a plain file name beside the index is accepted", index,
            shown_tensor, shown_name);
    size_t n = strlen(name), n_end = strlen(".safetensors");
    if (n <= n_end || strcmp(name + n - n_end, ".safetensors") != 0)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s: tensor \"%s\" is said to lie in \"%s\", which is no .safetensors file", index,
                         shown_tensor, shown_name);
    return LST_OK;
}

static lst_status add_shard(lst_st_set *set, const char *path, lst_error *err)
{
    lst_st **more = lst__realloc(set->shards, set->n_shards + 1, sizeof *more);
    if (more == NULL)
        return lst__fail_memory(err, path, (set->n_shards + 1) * sizeof *more);
    set->shards = more;
    lst_status status = lst__st_open(&set->shards[set->n_shards], path, err);
    if (status == LST_OK)
        set->n_shards++;
    return status;
}

/* The shard of this name beside the index, opened at its first use. */
static lst_status shard_of(lst_st_set *set, const char *dir, const char *name, const lst_st **out, lst_error *err)
{
    char *path = lst__path_join(dir, name);
    if (path == NULL)
        return lst__fail_memory(err, "a path", strlen(dir) + strlen(name));
    lst_status status = LST_OK;
    size_t i = 0;
    while (i < set->n_shards && strcmp(set->shards[i]->path, path) != 0)
        i++;
    if (i == set->n_shards)
        status = add_shard(set, path, err);
    if (status == LST_OK)
        *out = set->shards[i];
    lst__free(path);
    return status;
}

static lst_status map_tensor(lst_st_set *set, const char *index, const char *dir, const char *tensor, const char *shard,
                             lst_error *err)
{
    const lst_st *st = NULL;
    lst_status status = shard_of(set, dir, shard, &st, err);
    if (status != LST_OK)
        return status;
    const lst_st_tensor *found = lst__st_find(st, tensor);
    char shown[160];
    if (found == NULL)
        return lst__fail(err, LST_ERR_FORMAT, "%s: tensor \"%s\" is said to lie in %s, which does not hold it", index,
                         lst__printable(tensor, shown, sizeof shown), shard);
    set->tensors[set->n_tensors++] = found;
    return LST_OK;
}

static lst_status read_map(lst_st_set *set, const char *index, const char *dir, json_t *map, lst_error *err)
{
    if (json_object_size(map) == 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s: its weight_map is empty", index);
    set->tensors = lst__alloc(json_object_size(map), sizeof *set->tensors);
    if (set->tensors == NULL)
        return lst__fail_memory(err, index, json_object_size(map) * sizeof *set->tensors);
    const char *tensor;
    json_t *shard;
    /* All names before the first file is opened. */
    json_object_foreach(map, tensor, shard)
    {
        lst_status status = check_shard_name(index, tensor, shard, err);
        if (status != LST_OK)
            return status;
    }
    json_object_foreach(map, tensor, shard)
    {
        lst_status status = map_tensor(set, index, dir, tensor, json_string_value(shard), err);
        if (status != LST_OK)
            return status;
    }
    for (size_t i = 0; i < set->n_shards; i++)
        set->n_unmapped += set->shards[i]->n_tensors;
    set->n_unmapped -= set->n_tensors;
    return LST_OK;
}

static lst_status open_index(lst_st_set *set, const char *index, lst_error *err)
{
    json_t *root = NULL, *map = NULL;
    lst_status status = lst__json_load(&root, index, MAX_INDEX_BYTES, err);
    if (status != LST_OK)
        return status;
    char *dir = lst__strdup(index);
    if (dir == NULL)
        status = lst__fail_memory(err, "a path", strlen(index));
    if (status == LST_OK)
        status = lst__json_get_object(root, index, "weight_map", &map, err);
    if (status == LST_OK) {
        char *slash = strrchr(dir, '/');
        dir[slash == NULL ? 0 : slash + 1 - dir] = '\0';
        status = read_map(set, index, dir, map, err);
    }
    lst__free(dir);
    json_decref(root);
    return status;
}

static lst_status open_single(lst_st_set *set, const char *path, lst_error *err)
{
    lst_status status = add_shard(set, path, err);
    if (status != LST_OK)
        return status;
    const lst_st *st = set->shards[0];
    set->tensors = lst__alloc(st->n_tensors, sizeof *set->tensors);
    if (set->tensors == NULL)
        return lst__fail_memory(err, path, st->n_tensors * sizeof *set->tensors);
    for (size_t i = 0; i < st->n_tensors; i++)
        set->tensors[set->n_tensors++] = &st->tensors[i];
    return LST_OK;
}

static lst_status open_folder(lst_st_set *set, const char *path, lst_error *err)
{
    char *single = lst__path_join(path, "model.safetensors");
    char *index = lst__path_join(path, "model.safetensors.index.json");
    lst_status status;
    if (single == NULL || index == NULL)
        status = lst__fail_memory(err, "a path", strlen(path) + 32);
    else if (lst__is_file(single))
        status = open_single(set, single, err);
    else if (lst__is_file(index))
        status = open_index(set, index, err);
    else
        status =
            lst__fail(err, LST_ERR_IO, "%s holds neither model.safetensors nor model.safetensors.index.json", path);
    lst__free(single);
    lst__free(index);
    return status;
}

lst_status lst__st_set_open(lst_st_set **out, const char *path, lst_error *err)
{
    lst_st_set *set = lst__alloc(1, sizeof *set);
    if (set == NULL)
        return lst__fail_memory(err, path, sizeof *set);
    size_t n = strlen(path);
    lst_status status;
    if (lst__is_dir(path))
        status = open_folder(set, path, err);
    else if (n > 5 && strcmp(path + n - 5, ".json") == 0)
        status = open_index(set, path, err);
    else
        status = open_single(set, path, err);
    if (status != LST_OK) {
        lst__st_set_close(set);
        return status;
    }
    if (set->n_tensors > 0)
        qsort(set->tensors, set->n_tensors, sizeof *set->tensors, by_name);
    *out = set;
    return LST_OK;
}

void lst__st_set_close(lst_st_set *set)
{
    if (set == NULL)
        return;
    for (size_t i = 0; i < set->n_shards; i++)
        lst__st_close(set->shards[i]);
    lst__free(set->shards);
    lst__free(set->tensors);
    lst__free(set);
}

const lst_st_tensor *lst__st_set_find(const lst_st_set *set, const char *name)
{
    lst_st_tensor wanted = {.name = name};
    const lst_st_tensor *key = &wanted;
    if (set->n_tensors == 0)
        return NULL;
    const lst_st_tensor **found = bsearch(&key, set->tensors, set->n_tensors, sizeof key, by_name);
    return found == NULL ? NULL : *found;
}
