/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "numeric/bf16.h"
#include "numeric/f16.h"
#include "plan/activations.h"

static int finish_open(fixture *f, size_t threads)
{
    lst_ledger_init(&f->ledger);
    if (lst_pool_create(&f->pool, threads, &f->err) == LST_OK) {
        if (lst__arena_reserve(&f->arena, (size_t)f->plan->arena_bytes, f->pool, &f->err) == LST_OK) {
            if (model_create(&f->m, f->plan, f->arena.base, &f->ledger, f->pool, &f->err) == LST_OK)
                return 0;
            lst__arena_release(&f->arena);
        }
        lst_pool_destroy(f->pool);
    }
    lst_plan_destroy(f->plan);
    return 1;
}

int fixture_open(fixture *f, const lst_arch *arch, const lst_recipe *recipe, size_t threads)
{
    lst_recipe with_threads = *recipe;
    memset(f, 0, sizeof *f);
    with_threads.threads = threads;
    return lst_plan_create(&f->plan, arch, &with_threads, &f->err) != LST_OK || finish_open(f, threads);
}

int fixture_open_generator(fixture *f, const lst_arch *arch, lst_weight_form form, size_t positions, size_t threads)
{
    memset(f, 0, sizeof *f);
    return lst__plan_generation(&f->plan, arch, form, positions, threads, &f->err) != LST_OK || finish_open(f, threads);
}

void fixture_close(fixture *f)
{
    model_destroy(f->m);
    lst__arena_release(&f->arena);
    lst_pool_destroy(f->pool);
    lst_plan_destroy(f->plan);
}

lst_arch fixture_arch(lst_family family, int tied)
{
    lst_arch a;
    lst_arch_default(family, &a);
    a.vocab = 53;
    a.layers = 2;
    a.heads = 4;
    a.kv_heads = family == LST_FAMILY_GPT2 ? 4 : 2;
    a.head_dim = 6;
    a.hidden = 24;
    a.ffn = 37;
    a.max_positions = 64;
    a.init_range = 0.3;
    a.tied = tied != 0;
    return a;
}

lst_recipe fixture_recipe(void)
{
    lst_recipe r;
    lst_recipe_default(&r);
    r.batch = 2;
    r.seq = 11;
    r.loss_chunk = 7;
    r.clip_norm = 0.0;
    return r;
}

void fixture_tokens(fixture *f, uint64_t seed)
{
    const lst_recipe *r = &f->plan->recipe;
    for (size_t micro = 0; micro < r->accumulation; micro++)
        for (size_t i = 0; i < r->batch * r->seq; i++) {
            size_t at = micro * r->batch * r->seq + i;
            model_ids(f->m, micro)[i] = (int32_t)lst__random_below(seed, 1, at, f->plan->arch.vocab);
            model_targets(f->m, micro)[i] = (int32_t)lst__random_below(seed, 1, at + 1, f->plan->arch.vocab);
            if (lst__random_below(seed, 2, at, 5) == 0)
                model_targets(f->m, micro)[i] = MODEL_IGNORE;
        }
}

size_t fixture_params(const fixture *f)
{
    return (size_t)lst_arch_params(&f->plan->arch);
}

typedef struct collect {
    const lst_arch *arch;
    float *all;
    size_t *calls; /* by tensor */
} collect;

static float half_value(const void *data, lst_codec codec, size_t i)
{
    uint16_t h = ((const uint16_t *)data)[i];
    return codec == LST_CODEC_F16 ? lst__f16_to_f32(h) : lst__bf16_to_f32(h);
}

static lst_status take_gradient(void *user, size_t tensor, const void *grad, lst_codec codec, lst_error *err)
{
    collect *c = user;
    size_t begin = 0;
    lst_arch_tensor t;
    (void)err;
    for (size_t i = 0; i <= tensor; i++) {
        lst_arch_tensor_at(c->arch, i, &t);
        begin += i < tensor ? t.n_elems : 0;
    }
    for (size_t i = 0; i < t.n_elems; i++)
        c->all[begin + i] = codec == LST_CODEC_F32 ? ((const float *)grad)[i] : half_value(grad, codec, i);
    c->calls[tensor]++;
    return LST_OK;
}

float *fixture_step(fixture *f, float loss_scale, double *loss)
{
    size_t n_tensors = lst_arch_tensor_count(&f->plan->arch);
    collect c = {.arch = &f->plan->arch,
                 .all = malloc(fixture_params(f) * sizeof(float)),
                 .calls = calloc(n_tensors, sizeof(size_t))};
    model_hooks hooks = {.user = &c, .on_gradient = take_gradient};
    int bad = model_step(f->m, loss_scale, &hooks, loss, &f->err) != LST_OK;
    for (size_t i = 0; i < n_tensors; i++)
        bad |= c.calls[i] != 1;
    free(c.calls);
    if (bad) {
        free(c.all);
        return NULL;
    }
    return c.all;
}
