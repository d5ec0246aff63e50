/* SPDX-License-Identifier: MIT
 *
 * A plan as a container: buffers added, sorted, looked up, added up.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "plan/activations.h"
#include "plan/buffers.h"

lst_status lst__plan_begin(lst_plan **out, const lst_arch *arch, const lst_recipe *recipe, lst_error *err)
{
    size_t layers = arch ? arch->layers : 0;
    if (layers > (LST_MAX_PHASES - 6) / 2)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%zu layers: a plan has room for %d", layers,
                         (LST_MAX_PHASES - 6) / 2);
    lst_plan *plan = lst__alloc(1, sizeof *plan);
    if (!plan)
        return lst__fail_memory(err, "a plan", sizeof *plan);
    plan->has_arch = arch != NULL;
    if (arch) {
        plan->arch = *arch;
        plan->n_params = lst_arch_params(arch);
    }
    plan->recipe = *recipe;
    plan->n_layers = layers;
    plan->n_phases = lst_phase_count(layers);
    *out = plan;
    return LST_OK;
}

void lst_plan_destroy(lst_plan *plan)
{
    if (!plan)
        return;
    lst__free(plan->buffers);
    lst__free(plan);
}

static lst_status count_bytes(lst_buffer *buffer, lst_error *err)
{
    /* The widest codec takes 4 bytes an element. */
    size_t n = 1;
    for (size_t i = 0; i < buffer->n_dims; i++)
        if (__builtin_mul_overflow(n, buffer->dims[i], &n) || n > SIZE_MAX / 16)
            return lst__fail(err, LST_ERR_ARGUMENT, "%s: its size overflows 64 bits", buffer->name);
    if (n == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "%s: a buffer of no elements cannot be planned", buffer->name);
    buffer->bytes = lst_codec_bytes(buffer->codec, n);
    return LST_OK;
}

lst_status lst__plan_add(lst_plan *plan, const lst_buffer *buffer, lst_error *err)
{
    if (buffer->first_phase < 0 || buffer->last_phase < buffer->first_phase || buffer->last_phase >= plan->n_phases)
        return lst__fail(err, LST_ERR_ARGUMENT, "%s: lives from phase %d to %d of %d", buffer->name,
                         buffer->first_phase, buffer->last_phase, plan->n_phases);
    if (plan->n_buffers == plan->capacity) {
        size_t capacity = plan->capacity ? 2 * plan->capacity : 64;
        lst_buffer *grown = lst__realloc(plan->buffers, capacity, sizeof *grown);
        if (!grown)
            return lst__fail_memory(err, "the plan's buffers", capacity * sizeof *grown);
        plan->buffers = grown;
        plan->capacity = capacity;
    }
    lst_buffer *slot = &plan->buffers[plan->n_buffers];
    *slot = *buffer;
    slot->offset = 0;
    lst_status status = count_bytes(slot, err);
    plan->n_buffers += status == LST_OK;
    return status;
}

static int compare_keys(const void *left, const void *right)
{
    const lst_buffer *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

const lst_buffer *lst_plan_find(const lst_plan *plan, lst_buffer_kind kind, int layer, size_t index)
{
    const lst_buffer key = {.kind = kind, .layer = layer, .index = index};
    return plan->n_buffers ? bsearch(&key, plan->buffers, plan->n_buffers, sizeof key, compare_keys) : NULL;
}

uint64_t lst_plan_live(const lst_plan *plan, int phase, uint64_t by_bucket[LST_N_BUCKETS])
{
    uint64_t total = 0;
    if (by_bucket)
        memset(by_bucket, 0, LST_N_BUCKETS * sizeof *by_bucket);
    for (size_t i = 0; i < plan->n_buffers; i++) {
        const lst_buffer *b = &plan->buffers[i];
        if (b->first_phase > phase || b->last_phase < phase)
            continue;
        total += b->bytes;
        if (by_bucket)
            by_bucket[b->bucket] += b->bytes;
    }
    return total;
}

static void sum_up(lst_plan *plan)
{
    for (int phase = 0; phase < plan->n_phases; phase++) {
        uint64_t live[LST_N_BUCKETS];
        uint64_t total = lst_plan_live(plan, phase, live);
        for (int b = 0; b < LST_N_BUCKETS; b++)
            if (live[b] > plan->bucket_bytes[b])
                plan->bucket_bytes[b] = live[b];
        if (total > plan->peak_bytes) {
            plan->peak_bytes = total;
            plan->peak_phase = phase;
            memcpy(plan->at_peak, live, sizeof live);
        }
    }
    for (size_t i = 0; i < plan->n_buffers; i++) {
        const lst_buffer *b = &plan->buffers[i];
        plan->sum_bytes += b->bytes;
        if (lst_bucket_is_state(b->bucket))
            plan->optimizer_state_bytes += b->bytes;
        if (b->kind == LST_BUFFER_WEIGHT || b->kind == LST_BUFFER_SLOT || b->kind == LST_BUFFER_GRADIENT)
            plan->fixed_bytes += b->bytes;
    }
}

lst_status lst__plan_finish(lst_plan *plan, lst_error *err)
{
    if (plan->n_buffers)
        qsort(plan->buffers, plan->n_buffers, sizeof *plan->buffers, compare_keys);
    for (size_t i = 1; i < plan->n_buffers; i++)
        if (compare_keys(&plan->buffers[i - 1], &plan->buffers[i]) == 0)
            return lst__fail(err, LST_ERR_STATE, "two buffers of the plan share one key: %s and %s",
                             plan->buffers[i - 1].name, plan->buffers[i].name);
    sum_up(plan);
    return lst__plan_layout(plan, err);
}

static lst_status fill_training(lst_plan *plan, lst_error *err)
{
    lst_status status = lst__plan_weights(plan, err);
    if (status == LST_OK)
        status = lst__plan_slots(plan, err);
    if (status == LST_OK)
        status = lst__plan_gradients(plan, err);
    if (status == LST_OK && plan->has_arch)
        status = lst__plan_activations(plan, err);
    return status == LST_OK ? lst__plan_finish(plan, err) : status;
}

lst_status lst_plan_create(lst_plan **out, const lst_arch *arch, const lst_recipe *recipe, lst_error *err)
{
    lst_plan *plan = NULL;
    lst_status status = lst_arch_check(arch, err);
    if (status == LST_OK)
        status = lst_recipe_check(recipe, arch, err);
    if (status == LST_OK)
        status = lst__plan_begin(&plan, arch, recipe, err);
    if (status == LST_OK)
        status = fill_training(plan, err);
    if (status == LST_OK)
        *out = plan;
    else
        lst_plan_destroy(plan);
    return status;
}

lst_status lst_plan_create_params(lst_plan **out, uint64_t n_params, const lst_recipe *recipe, lst_error *err)
{
    lst_plan *plan = NULL;
    lst_status status = lst_recipe_check(recipe, NULL, err);
    if (status != LST_OK)
        return status;
    if (n_params < 1 || n_params > (uint64_t)1 << 48)
        return lst__fail(err, LST_ERR_ARGUMENT, "%llu parameters: expected 1 to 2^48", (unsigned long long)n_params);
    status = lst__plan_begin(&plan, NULL, recipe, err);
    if (status != LST_OK)
        return status;
    plan->n_params = n_params;
    status = fill_training(plan, err);
    if (status == LST_OK)
        *out = plan;
    else
        lst_plan_destroy(plan);
    return status;
}
