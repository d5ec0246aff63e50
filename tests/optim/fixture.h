/* SPDX-License-Identifier: MIT
 *
 * A small optimizer over a few tensors with its memory, for tests. Any failure of setting up ends the test.
 */
#ifndef TESTS_OPTIM_FIXTURE_H
#define TESTS_OPTIM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "leanstep/optim.h"

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        lst_error must_err;                                                                                            \
        if ((call) != LST_OK)                                                                                          \
            fail_msg("%s: %s", #call, must_err.message);                                                               \
    } while (0)
#define ERR &must_err

#define FIXTURE_TENSORS 4

typedef struct fixture {
    lst_optim *optim;
    size_t n_elems[FIXTURE_TENSORS];
    float *init[FIXTURE_TENSORS];
    void *weights[FIXTURE_TENSORS];
    float *grads[FIXTURE_TENSORS];
    void *block, *scratch;
} fixture;

static inline void *fixture_memory(size_t bytes)
{
    void *memory = aligned_alloc(64, bytes / 64 * 64 + 64);
    assert_non_null(memory);
    memset(memory, 0x5a, bytes); /* nothing may rely on zeros */
    return memory;
}

static inline lst_optim_options fixture_options(lst_rule rule, const lst_hyper *groups, size_t n_groups)
{
    return (lst_optim_options){.struct_size = sizeof(lst_optim_options),
                               .rule = rule,
                               .weights = LST_WEIGHT_F32,
                               .grads = LST_CODEC_F32,
                               .state = LST_CODEC_F32,
                               .n_groups = n_groups,
                               .groups = groups};
}

/* A matrix that spans several tasks, one with odd sides, a vector, a scalar. */
static const lst_tensor fixture_tensors[FIXTURE_TENSORS] = {
    {.name = "big", .n_dims = 2, .dims = {301, 257}},
    {.name = "odd", .n_dims = 3, .dims = {3, 5, 7}},
    {.name = "vector", .n_dims = 1, .dims = {1025}},
    {.name = "scalar", .n_dims = 0},
};

static inline float fixture_value(uint64_t stream, size_t tensor, size_t i)
{
    return (float)(lst__random_normal(7, stream * 16 + tensor, i) * (i % 11 == 0 ? 1e-4 : 0.5));
}

/* Values of one tensor, computed once: they are most of the time of a test that makes many optimizers. */
static inline const float *fixture_values(uint64_t stream, size_t tensor, size_t n)
{
    enum { STREAMS = 8 };
    static float *kept[STREAMS][FIXTURE_TENSORS];
    static float *last;
    float **values = stream < STREAMS ? &kept[stream][tensor] : &last;
    if (stream < STREAMS && *values)
        return *values;
    free(stream < STREAMS ? NULL : last);
    *values = fixture_memory(n * sizeof(float));
    for (size_t k = 0; k < n; k++)
        (*values)[k] = fixture_value(stream, tensor, k);
    return *values;
}

static inline void fixture_bind(fixture *f, const lst_optim_options *options)
{
    const size_t each = lst_weight_form_codec(options->weights) == LST_CODEC_F32 ? 4 : 2;
    const size_t bytes = lst_optim_block_bytes(f->optim), scratch = lst_optim_scratch_bytes(f->optim);
    f->block = fixture_memory(bytes);
    f->scratch = fixture_memory(scratch);
    MUST(lst_optim_bind(f->optim, f->block, bytes, ERR));
    MUST(lst_optim_bind_scratch(f->optim, f->scratch, scratch, ERR));
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
        f->weights[i] = fixture_memory(f->n_elems[i] * each);
        MUST(lst_optim_bind_weights(f->optim, i, f->weights[i], ERR));
    }
}

/* Weights start as fixture_value of stream 0, exactly, in any form that holds float32. */
static inline void fixture_create(fixture *f, const lst_optim_options *options)
{
    memset(f, 0, sizeof *f);
    MUST(lst_optim_create(&f->optim, options, fixture_tensors, FIXTURE_TENSORS, ERR));
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
        f->n_elems[i] = 1;
        for (size_t d = 0; d < fixture_tensors[i].n_dims; d++)
            f->n_elems[i] *= fixture_tensors[i].dims[d];
        f->init[i] = fixture_memory(f->n_elems[i] * sizeof(float));
        f->grads[i] = fixture_memory(f->n_elems[i] * sizeof(float));
        memcpy(f->init[i], fixture_values(0, i, f->n_elems[i]), f->n_elems[i] * sizeof(float));
    }
    fixture_bind(f, options);
    for (size_t i = 0; i < FIXTURE_TENSORS; i++)
        memset(f->weights[i], 0, f->n_elems[i] * 2);
    MUST(lst_optim_reset(f->optim, ERR));
    for (size_t i = 0; i < FIXTURE_TENSORS; i++)
        MUST(lst_optim_set_weights_f32(f->optim, i, f->init[i], ERR));
}

static inline void fixture_destroy(fixture *f)
{
    lst_optim_destroy(f->optim);
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
        free(f->init[i]);
        free(f->weights[i]);
        free(f->grads[i]);
    }
    free(f->block);
    free(f->scratch);
}

/* Gradients of step t, exact in bf16 (so that every gradient codec sees the same); every 13th is 0. */
static inline void fixture_grads(fixture *f, uint64_t t)
{
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
        const float *values = fixture_values(t, i, f->n_elems[i]);
        for (size_t k = 0; k < f->n_elems[i]; k++) {
            float g = k % 13 == 5 ? 0.0f : values[k];
            uint32_t bits;
            memcpy(&bits, &g, 4);
            bits &= 0xffff0000u;
            memcpy(&f->grads[i][k], &bits, 4);
        }
    }
}

static inline void fixture_step(fixture *f, uint64_t t)
{
    fixture_grads(f, t);
    const void *grads[FIXTURE_TENSORS];
    for (size_t i = 0; i < FIXTURE_TENSORS; i++)
        grads[i] = f->grads[i];
    MUST(lst_optim_step(f->optim, grads, (lst_grad_scale){1, 1}, ERR));
}

/* The float32 weights of one tensor in fresh memory. */
static inline float *fixture_weights(const fixture *f, size_t tensor)
{
    float *out = fixture_memory(f->n_elems[tensor] * sizeof(float));
    MUST(lst_optim_get_weights_f32(f->optim, tensor, out, ERR));
    return out;
}

/* Weights and all slots (master apart) of two optimizers are the same bits. */
static inline void fixture_equal(const fixture *a, const fixture *b, const char *what)
{
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
        float *x = fixture_weights(a, i), *y = fixture_weights(b, i);
        if (memcmp(x, y, a->n_elems[i] * sizeof *x) != 0)
            fail_msg("%s: the weights of %s differ", what, fixture_tensors[i].name);
        free(x);
        free(y);
        const size_t skip_a =
            lst_optim_slot_count(a->optim, i) > 0 && lst_optim_slot(a->optim, i, 0)->bucket == LST_BUCKET_MASTER;
        const size_t skip_b =
            lst_optim_slot_count(b->optim, i) > 0 && lst_optim_slot(b->optim, i, 0)->bucket == LST_BUCKET_MASTER;
        for (size_t k = 0; k + skip_a < lst_optim_slot_count(a->optim, i); k++) {
            const lst_slot *s = lst_optim_slot(a->optim, i, k + skip_a), *t = lst_optim_slot(b->optim, i, k + skip_b);
            if (s->bytes != t->bytes || memcmp(s->memory, t->memory, s->bytes) != 0)
                fail_msg("%s: slot %s of %s differs", what, s->name, fixture_tensors[i].name);
        }
    }
}

#endif
