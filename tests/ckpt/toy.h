/* SPDX-License-Identifier: MIT
 *
 * A small model and its optimizer, in one block of memory: what the tests of checkpoints save, load and step.
 */
#ifndef TESTS_CKPT_TOY_H
#define TESTS_CKPT_TOY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "leanstep/ckpt.h"
#include "leanstep/optim.h"

enum { TOY_TENSORS = 3, TOY_MATRIX = 1, TOY_ELEMS = 1 + 37 * 51 + 5000 };

typedef struct toy {
    lst_optim *optim;
    void *block;
    void *scratch;
    void *weights[TOY_TENSORS];
    size_t n_elems[TOY_TENSORS];
    lst_codec codec;
} toy;

static inline void toy_describe(lst_tensor tensors[TOY_TENSORS])
{
    tensors[0] = (lst_tensor){.name = "scalar", .n_dims = 0, .group = 1};
    tensors[1] = (lst_tensor){.name = "layers.0.matrix \"odd\"", .n_dims = 2, .dims = {37, 51}, .group = 0};
    tensors[2] = (lst_tensor){.name = "bias", .n_dims = 1, .dims = {5000}, .group = 1};
}

static inline lst_status toy_create_coded(toy *t, lst_rule rule, lst_weight_form form, lst_codec state,
                                          const lst_tensor *tensors, size_t n, const lst_hyper *groups, uint64_t seed)
{
    lst_optim_options options = {.struct_size = sizeof options,
                                 .rule = rule,
                                 .weights = form,
                                 .grads = LST_CODEC_F32,
                                 .state = state,
                                 .n_groups = 2,
                                 .groups = groups,
                                 .seed = seed};
    *t = (toy){.codec = lst_weight_form_codec(form)};
    lst_status status = lst_optim_create(&t->optim, &options, tensors, n, NULL);
    if (status != LST_OK)
        return status;
    size_t bytes = (lst_optim_block_bytes(t->optim) + 63) / 64 * 64;
    t->block = aligned_alloc(64, bytes + 64);
    memset(t->block, 0xee, bytes + 64);
    status = lst_optim_bind(t->optim, t->block, bytes, NULL);
    size_t scratch_bytes = (lst_optim_scratch_bytes(t->optim) + 64) / 64 * 64;
    t->scratch = aligned_alloc(64, scratch_bytes);
    if (status == LST_OK)
        status = lst_optim_bind_scratch(t->optim, t->scratch, scratch_bytes, NULL);
    for (size_t i = 0; status == LST_OK && i < n; i++) {
        t->n_elems[i] = 1;
        for (size_t d = 0; d < tensors[i].n_dims; d++)
            t->n_elems[i] *= tensors[i].dims[d];
        t->weights[i] = calloc(t->n_elems[i], 4);
        status = lst_optim_bind_weights(t->optim, i, t->weights[i], NULL);
    }
    return status;
}

static inline lst_status toy_create_from(toy *t, lst_rule rule, lst_weight_form form, const lst_tensor *tensors,
                                         size_t n, const lst_hyper *groups, uint64_t seed)
{
    return toy_create_coded(t, rule, form, LST_CODEC_F32, tensors, n, groups, seed);
}

static inline lst_status toy_create(toy *t, lst_rule rule, lst_weight_form form)
{
    lst_tensor tensors[TOY_TENSORS];
    toy_describe(tensors);
    lst_hyper groups[2];
    lst_hyper_default(rule, &groups[0]);
    groups[0].weight_decay = 0.1;
    groups[1] = groups[0];
    groups[1].weight_decay = 0;
    return toy_create_from(t, rule, form, tensors, TOY_TENSORS, groups, 42);
}

static inline void toy_destroy(toy *t)
{
    lst_optim_destroy(t->optim);
    free(t->block);
    free(t->scratch);
    for (size_t i = 0; i < TOY_TENSORS; i++)
        free(t->weights[i]);
}

/* Exact random weights, state at its start. */
static inline lst_status toy_start(toy *t)
{
    lst_status status = lst_optim_reset(t->optim, NULL);
    for (size_t i = 0; status == LST_OK && i < TOY_TENSORS; i++) {
        float *values = calloc(t->n_elems[i], sizeof *values);
        for (size_t k = 0; k < t->n_elems[i]; k++)
            values[k] = (float)(lst__random_unit(1, i, k) - 0.5);
        status = lst_optim_set_weights_f32(t->optim, i, values, NULL);
        free(values);
    }
    return status;
}

/* Steps with gradients that depend on the step's number alone; every third step the scalar has none. */
static inline lst_status toy_step(toy *t, int64_t step)
{
    lst_status status = lst_optim_begin(t->optim, NULL);
    for (size_t i = step % 3 == 0; status == LST_OK && i < TOY_TENSORS; i++) {
        float *grad = calloc(t->n_elems[i], sizeof *grad);
        for (size_t k = 0; k < t->n_elems[i]; k++)
            grad[k] = (float)(lst__random_unit((uint64_t)step, i, k) - 0.5);
        status = lst_optim_step_tensor(t->optim, i, grad, (lst_grad_scale){1, 1}, NULL);
        free(grad);
    }
    return status;
}

static inline void toy_list(const toy *t, lst_ckpt_tensor list[TOY_TENSORS])
{
    for (size_t i = 0; i < TOY_TENSORS; i++) {
        const lst_tensor *tensor = lst_optim_tensor(t->optim, i);
        list[i] = (lst_ckpt_tensor){
            .name = tensor->name, .codec = t->codec, .n_dims = tensor->n_dims, .memory = t->weights[i]};
        memcpy(list[i].dims, tensor->dims, sizeof list[i].dims);
    }
}

/* Weights, slots, step counts and rates are the same to the bit. */
static inline bool toy_equal(const toy *a, const toy *b)
{
    bool same = lst_optim_begun(a->optim) == lst_optim_begun(b->optim);
    for (size_t g = 0; g < 2; g++)
        same = same && lst_optim_group(a->optim, g)->lr == lst_optim_group(b->optim, g)->lr;
    for (size_t i = 0; i < TOY_TENSORS; i++) {
        same = same && lst_optim_steps(a->optim, i) == lst_optim_steps(b->optim, i);
        same = same && memcmp(a->weights[i], b->weights[i], lst_codec_bytes(a->codec, a->n_elems[i])) == 0;
        for (size_t k = 0; k < lst_optim_slot_count(a->optim, i); k++) {
            const lst_slot *x = lst_optim_slot(a->optim, i, k), *y = lst_optim_slot(b->optim, i, k);
            same = same && x->bytes == y->bytes && memcmp(x->memory, y->memory, x->bytes) == 0;
        }
    }
    return same;
}

#endif
