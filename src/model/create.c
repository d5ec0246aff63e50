/* SPDX-License-Identifier: MIT
 *
 * From a plan to a model: every buffer claimed by name and held to the bytes that the model's own shapes ask for.
 */
#include "model/parts.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "model/rope.h"

typedef struct claim {
    model *m;
    lst_error *err;
    lst_status status; /* of the first claim that failed */
} claim;

static void *claim_failed(claim *c, lst_status status)
{
    c->status = status;
    return NULL;
}

/* The memory of a buffer that must exist with just these bytes; n_elems 0: no such buffer, NULL. */
static void *claim_buffer(claim *c, lst_buffer_kind kind, int layer, size_t index, lst_codec codec, size_t n_elems)
{
    if (c->status != LST_OK || n_elems == 0)
        return NULL;
    const lst_buffer *b = lst_plan_find(c->m->plan, kind, layer, index);
    if (!b)
        return claim_failed(
            c, lst__fail(c->err, LST_ERR_STATE,
                         "the plan has no buffer of kind %d, layer %d, index %zu, which the model needs; make "
                         "the plan with this version's lst_plan_create",
                         (int)kind, layer, index));
    size_t bytes = lst_codec_bytes(codec, n_elems);
    if (b->bytes != bytes)
        return claim_failed(c, lst__fail(c->err, LST_ERR_STATE,
                                         "buffer \"%s\": the plan has %zu bytes, the model needs %zu", b->name,
                                         b->bytes, bytes));
    c->m->claimed[b - c->m->plan->buffers] = true;
    return c->m->arena + b->offset;
}

/* Where a tensor's gradient is summed, if not in the kept gradient itself (plan/buffers.h). */
static float *claim_sum(claim *c, const lst_arch_tensor *tensor)
{
    lst_buffer_kind kind = tensor->role == LST_ROLE_EMBED    ? LST_BUFFER_EMBED_GRADIENT
                           : tensor->role == LST_ROLE_HEAD_W ? LST_BUFFER_HEAD_GRADIENT
                                                             : LST_BUFFER_LAYER_GRADIENT;
    return claim_buffer(c, kind, -1, kind == LST_BUFFER_LAYER_GRADIENT ? (size_t)tensor->role : 0, LST_CODEC_F32,
                        tensor->n_elems);
}

static void claim_tensors(claim *c)
{
    model *m = c->m;
    bool f32_kept = m->recipe->grad_mode == LST_GRAD_KEEP && m->recipe->grads == LST_CODEC_F32;
    for (size_t t = 0; t < m->n_tensors; t++) {
        m->weight[t] = claim_buffer(c, LST_BUFFER_WEIGHT, -1, t, m->codec, m->tensor[t].n_elems);
        if (m->purpose != LST__TRAINS)
            continue;
        if (m->recipe->grad_mode == LST_GRAD_KEEP)
            m->kept[t] = claim_buffer(c, LST_BUFFER_GRADIENT, -1, t, m->recipe->grads, m->tensor[t].n_elems);
        m->sum[t] = f32_kept ? m->kept[t] : claim_sum(c, &m->tensor[t]);
    }
}

static void claim_acts(claim *c)
{
    model *m = c->m;
    for (size_t layer = 0; layer <= m->arch->layers; layer++)
        for (size_t a = 0; a < LST__N_ACTS; a++) {
            if (layer == m->arch->layers ? a != LST__ACT_INPUT : !lst__act_kept(m->recipe->activations, (lst__act)a))
                continue;
            size_t elems = lst__act_elems(m->arch, m->recipe, (lst__act)a);
            m->act[layer * LST__N_ACTS + a] =
                claim_buffer(c, LST_BUFFER_ACT, (int)layer, a, LST_CODEC_F32, m->recipe->accumulation * elems);
        }
}

static void claim_all(claim *c)
{
    model *m = c->m;
    claim_tensors(c);
    for (size_t i = 0; i < LST__N_SCRATCH; i++) {
        if (!lst__scratch_used(m->purpose, (lst__scratch)i))
            continue;
        m->scratch[i] = claim_buffer(c, LST_BUFFER_SCRATCH, -1, i, LST_CODEC_F32,
                                     lst__scratch_elems(m->arch, m->recipe, (lst__scratch)i));
    }
    if (m->purpose == LST__GENERATES)
        return;
    claim_acts(c);
    size_t n_tokens = m->recipe->accumulation * m->rows;
    m->ids = claim_buffer(c, LST_BUFFER_DATA, -1, LST__DATA_IDS, LST_CODEC_F32, n_tokens);
    m->targets = claim_buffer(c, LST_BUFFER_DATA, -1, LST__DATA_TARGETS, LST_CODEC_F32, n_tokens);
}

/* A buffer that nobody uses is a byte that the plan asks for in vain. State, and data beyond ids and targets, are the
 * caller's; so is the optimizer's working memory, but it comes and goes with the phases, so it is counted here. */
static lst_status check_all_claimed(model *m, lst_error *err)
{
    for (size_t i = 0; i < m->plan->n_buffers; i++) {
        const lst_buffer *b = &m->plan->buffers[i];
        if (b->kind == LST_BUFFER_STEP_SCRATCH)
            m->claimed[i] = true;
        bool callers = b->kind == LST_BUFFER_SLOT || (b->kind == LST_BUFFER_DATA && b->index > LST__DATA_TARGETS);
        if (!callers && !m->claimed[i])
            return lst__fail(err, LST_ERR_STATE, "the plan has a buffer \"%s\" (%zu bytes) that the model does not use",
                             b->name, b->bytes);
    }
    return LST_OK;
}

static lst_status allocate_tables(model *m, lst_error *err)
{
    size_t layers = m->arch->layers, n = m->n_tensors;
    size_t n_acts = (layers + 1) * LST__N_ACTS, n_index = (layers + 2) * LST_N_ROLES;
    m->tensor = lst__alloc(n, sizeof *m->tensor);
    m->index = lst__alloc(n_index, sizeof *m->index);
    m->weight = lst__alloc(n, sizeof *m->weight);
    m->sum = lst__alloc(n, sizeof *m->sum);
    m->kept = lst__alloc(n, sizeof *m->kept);
    m->act = lst__alloc(n_acts, sizeof *m->act);
    m->claimed = lst__alloc(m->plan->n_buffers, sizeof *m->claimed);
    m->held = lst__alloc(m->plan->n_buffers, sizeof *m->held);
    if (!m->tensor || !m->index || !m->weight || !m->sum || !m->kept || !m->act || !m->claimed || !m->held)
        return lst__fail_memory(err, "the model's tables", n * sizeof *m->tensor + n_acts * sizeof *m->act);
    for (size_t i = 0; i < n_index; i++)
        m->index[i] = SIZE_MAX;
    for (size_t t = 0; t < n; t++) {
        lst_arch_tensor_at(m->arch, t, &m->tensor[t]);
        m->index[(size_t)(m->tensor[t].layer + 1) * LST_N_ROLES + m->tensor[t].role] = t;
    }
    return LST_OK;
}

static void set_up_work(model *m, lst_pool *pool)
{
    m->work = (model_work){.pool = pool,
                           .loops = model_loops_get(),
                           .scratch = m->scratch[LST__SCRATCH_WORKER],
                           .scratch_elems = lst__worker_elems(m->arch, m->recipe),
                           .vectors = m->scratch[LST__SCRATCH_VECTORS],
                           .vector_elems = lst__vector_elems(m->arch)};
    if (m->scratch[LST__SCRATCH_ROTATION])
        model_rope_table(m->arch, m->scratch[LST__SCRATCH_ROTATION], m->positions);
}

static lst_status bind(model *m, lst_pool *pool, lst_error *err)
{
    lst_status status = allocate_tables(m, err);
    if (status != LST_OK)
        return status;
    claim c = {.m = m, .err = err, .status = LST_OK};
    claim_all(&c);
    if (c.status != LST_OK)
        return c.status;
    status = check_all_claimed(m, err);
    if (status != LST_OK)
        return status;
    set_up_work(m, pool);
    model_enter(m, lst_phase_load());
    return LST_OK;
}

/* Plans for steps have gradients; plans for writing have no batch. */
static lst__purpose purpose_of(const lst_plan *plan)
{
    for (size_t i = 0; i < plan->n_buffers; i++)
        if (plan->buffers[i].bucket == LST_BUCKET_GRADIENTS)
            return LST__TRAINS;
    return plan->recipe.batch > 0 ? LST__EVALUATES : LST__GENERATES;
}

lst_status model_create(model **out, const lst_plan *plan, void *arena, lst_ledger *ledger, lst_pool *pool,
                        lst_error *err)
{
    if (!plan->has_arch)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "a plan of a bare parameter count has no shapes: no model can be made of it");
    if (lst_pool_threads(pool) > plan->recipe.threads)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "the pool has %zu threads, the plan has scratch for %zu; plan with --threads %zu",
                         lst_pool_threads(pool), plan->recipe.threads, lst_pool_threads(pool));
    model *m = lst__alloc(1, sizeof *m);
    if (!m)
        return lst__fail_memory(err, "a model", sizeof *m);
    m->plan = plan;
    m->arch = &plan->arch;
    m->recipe = &plan->recipe;
    m->arena = arena;
    m->ledger = ledger;
    m->codec = lst_weight_form_codec(plan->recipe.weights);
    m->purpose = purpose_of(plan);
    m->rows = plan->recipe.batch * plan->recipe.seq;
    m->positions = plan->recipe.seq;
    m->n_tensors = lst_arch_tensor_count(&plan->arch);
    model_matmul_init();
    lst_status status = bind(m, pool, err);
    if (status != LST_OK) {
        model_destroy(m);
        return status;
    }
    *out = m;
    return LST_OK;
}

void model_destroy(model *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->held && i < m->plan->n_buffers; i++)
        if (m->held[i])
            lst_ledger_give(m->ledger, m->plan->buffers[i].bucket, m->plan->buffers[i].bytes);
    lst__free(m->tensor);
    lst__free(m->index);
    lst__free(m->weight);
    lst__free(m->sum);
    lst__free(m->kept);
    lst__free(m->act);
    lst__free(m->claimed);
    lst__free(m->held);
    lst__free(m);
}
