/* SPDX-License-Identifier: MIT
 *
 * Bytes of the weights: the base as it is stored, and the adapters beside it.
 */
#include "plan/torch.h"

typedef struct walk {
    const lst__torch *c;
    uint64_t bytes;
} walk;

static uint64_t quantized_bytes(lst_torch_base base, const lst_shape_tensor *tensor)
{
    const uint64_t n = lst_shape_tensor_elems(tensor);
    const uint64_t blocks = (n + 63) / 64;
    switch (base) {
    case LST_TORCH_BASE_INT8:
        return n + 4 * (uint64_t)tensor->rows;
    case LST_TORCH_BASE_NF4:
        return n / 2 + 4 * blocks;
    default: /* scales in 8 bits, with a float32 a block of 256 scales, and an offset */
        return n / 2 + blocks + 4 * ((blocks + 255) / 256) + 4;
    }
}

static void add(void *user, const lst_shape_tensor *tensor)
{
    walk *w = user;
    const lst_torch_run *run = w->c->run;
    if (run->base != LST_TORCH_BASE_PLAIN && tensor->part == LST_PART_LINEAR)
        w->bytes += quantized_bytes(run->base, tensor);
    else if (run->base != LST_TORCH_BASE_PLAIN && run->base_upcast)
        w->bytes += 4 * lst_shape_tensor_elems(tensor);
    else
        w->bytes += w->c->weight * lst_shape_tensor_elems(tensor);
}

uint64_t lst__torch_weight_bytes(const lst__torch *c, const lst__trainables *trainable)
{
    walk w = {.c = c};
    lst_shape_each(&c->run->shape, add, &w);
    return w.bytes + (c->lora ? c->adapter * trainable->elems : 0);
}
