/* SPDX-License-Identifier: MIT */
#include "train/gguf_file.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "ckpt/gguf_weights.h"
#include "io/gguf.h"
#include "store/codec.h"

#define TILE ((size_t)1 << 14)

static void load_tensor(const lst_gguf *g, const lst_plan *plan, model *m, size_t tensor, float *tile)
{
    lst_arch_tensor t;
    const lst_codec codec = lst_weight_form_codec(plan->recipe.weights);
    lst_arch_tensor_at(&plan->arch, tensor, &t);
    for (size_t first = 0; first < t.n_elems; first += TILE) {
        const size_t n = t.n_elems - first < TILE ? t.n_elems - first : TILE;
        lst__gguf_values(g, &plan->arch, tensor, first, n, tile);
        lst__codec(codec)->encode(model_weight(m, tensor), t.n_elems, first, n, tile, NULL);
    }
}

lst_status train_gguf_load(const char *path, const lst_plan *plan, model *m, lst_error *err)
{
    lst_gguf g;
    lst_status status = lst__gguf_open(path, &g, err);
    if (status != LST_OK)
        return status;
    float *tile = lst__alloc(TILE, sizeof *tile);
    status =
        tile ? lst__gguf_check_weights(&g, &plan->arch, err) : lst__fail_memory(err, "a tile", TILE * sizeof *tile);
    for (size_t i = 0; status == LST_OK && i < lst_arch_tensor_count(&plan->arch); i++)
        load_tensor(&g, plan, m, i, tile);
    lst__free(tile);
    lst__gguf_close(&g);
    return status;
}

lst_status train_gguf_tokenizer(data_tokenizer **out, const char *path, lst_error *err)
{
    lst_gguf g;
    lst_status status = lst__gguf_open(path, &g, err);
    if (status != LST_OK)
        return status;
    status = data_tokenizer_from_gguf(out, &g, err);
    lst__gguf_close(&g);
    return status;
}

lst_status train_gguf_stops(train_stops *stops, const char *path, lst_error *err)
{
    lst_gguf g;
    size_t id;
    lst_status status = lst__gguf_open(path, &g, err);
    if (status != LST_OK)
        return status;
    if (lst__gguf_find_key(&g, "tokenizer.ggml.eos_token_id"))
        status = lst__gguf_get_size(&g, "tokenizer.ggml.eos_token_id", &id, err);
    if (status == LST_OK && lst__gguf_find_key(&g, "tokenizer.ggml.eos_token_id") && id <= INT32_MAX)
        train_stops_add(stops, (int32_t)id);
    lst__gguf_close(&g);
    return status;
}
