/* SPDX-License-Identifier: MIT
 *
 * The tensors that are trained: all parameters, or the adapters' two matrices of each adapted linear (and DoRA's
 * magnitudes), in the order in which PyTorch hands them to the optimizer.
 */
#include <string.h>

#include "base/alloc.h"
#include "plan/torch.h"

static const struct {
    const char *name;
    unsigned targets;
} linears[] = {
    {"q_proj", LST_TARGET_Q},
    {"k_proj", LST_TARGET_K},
    {"v_proj", LST_TARGET_V},
    {"o_proj", LST_TARGET_O},
    {"gate_proj", LST_TARGET_GATE},
    {"up_proj", LST_TARGET_UP},
    {"down_proj", LST_TARGET_DOWN},
    {"qkv_proj", LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V},
    {"gate_up_proj", LST_TARGET_GATE | LST_TARGET_UP},
    {"c_attn", LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V},
    {"c_proj", LST_TARGET_O},
    {"c_fc", LST_TARGET_UP | LST_TARGET_GATE},
    {"mlp.c_proj", LST_TARGET_DOWN},
    {"query_key_value", LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V},
    {"dense", LST_TARGET_O},
    {"out_proj", LST_TARGET_O},
    {"fc1", LST_TARGET_UP | LST_TARGET_GATE},
    {"fc2", LST_TARGET_DOWN},
    {"dense_h_to_4h", LST_TARGET_UP | LST_TARGET_GATE},
    {"dense_4h_to_h", LST_TARGET_DOWN},
};

bool lst__torch_adapted(const lst_torch_run *run, const lst_shape_tensor *tensor)
{
    if (tensor->part == LST_PART_HEAD)
        return run->lora & LST_TARGET_HEAD;
    if (tensor->part != LST_PART_LINEAR)
        return false;
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++) {
        if (strcmp(linears[i].name, tensor->name) == 0)
            return run->lora & linears[i].targets;
    }
    return false;
}

typedef struct collector {
    const lst_torch_run *run;
    lst__trainables *out;
} collector;

static void append(lst__trainables *list, uint64_t rows, uint64_t cols, const lst_shape_tensor *from)
{
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 256;
        lst__trainable *grown = lst__realloc(list->item, capacity, sizeof *grown);
        if (!grown) {
            list->failed = true;
            return;
        }
        list->item = grown;
        list->capacity = capacity;
    }
    const uint64_t elems = rows * (cols ? cols : 1);
    list->item[list->n++] = (lst__trainable){
        .elems = elems,
        .rows = rows,
        .cols = cols,
        .layer = from->layer,
        .embedding = from->part == LST_PART_EMBEDDING,
        .hidden = from->layer >= 0 && cols > 0,
    };
    list->elems += elems;
    if (elems > list->largest)
        list->largest = elems;
    if (from->layer == 0)
        list->in_layer += elems;
}

static void collect(void *user, const lst_shape_tensor *tensor)
{
    collector *c = user;
    if (c->out->failed)
        return;
    if (c->run->lora == 0) {
        append(c->out, tensor->rows, tensor->cols, tensor);
        return;
    }
    if (!lst__torch_adapted(c->run, tensor))
        return;
    const uint64_t in = tensor->transposed ? tensor->rows : tensor->cols;
    const uint64_t width = tensor->transposed ? tensor->cols : tensor->rows;
    append(c->out, c->run->lora_rank, in, tensor);
    if (!c->out->failed)
        append(c->out, width, c->run->lora_rank, tensor);
    if (c->run->dora && !c->out->failed)
        append(c->out, width, 0, tensor);
}

lst_status lst__torch_trainables(const lst_torch_run *run, lst__trainables *out, lst_error *err)
{
    *out = (lst__trainables){0};
    collector c = {.run = run, .out = out};
    lst_shape_each(&run->shape, collect, &c);
    if (!out->failed)
        return LST_OK;
    lst__free(out->item);
    return lst__fail_memory(err, "the list of trained tensors", out->capacity * sizeof(lst__trainable));
}
