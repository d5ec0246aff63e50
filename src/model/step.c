/* SPDX-License-Identifier: MIT
 *
 * One step: forward of every micro-batch, loss, backward with the layer outside and the micro-batch inside, so that a
 * layer's gradient is complete, over all micro-batches, when its turn ends.
 */
#include "model/parts.h"

#include <string.h>

#include "base/fail.h"

void model_forward(model *m, size_t n_micro)
{
    model_embedding e = model_embedding_of(m);
    model_enter(m, lst_phase_embed());
    for (size_t micro = 0; micro < n_micro; micro++)
        model_embed_forward(&m->work, &e, model_input(m, 0, micro), model_ids(m, micro), m->rows, m->recipe->seq, 0);
    for (size_t layer = 0; layer < m->arch->layers; layer++) {
        model_enter(m, lst_phase_forward(layer));
        model_block block = model_block_of(m, layer);
        for (size_t micro = 0; micro < n_micro; micro++) {
            float *act[LST__N_ACTS];
            model_acts(m, layer, micro, false, act);
            model_block_forward(&m->work, &block, (model_block_shape){m->recipe->batch, m->recipe->seq}, act,
                                model_input(m, layer + 1, micro), MODEL_STAGES_ALL);
        }
    }
}

model_loss model_loss_of(model *m)
{
    size_t chunk = lst__loss_chunk(m->recipe);
    float *rows = m->scratch[LST__SCRATCH_HEAD_ROWS];
    return (model_loss){.work = &m->work,
                        .norm = model_final_norm(m),
                        .head = model_head(m),
                        .chunk = chunk,
                        .logits = m->scratch[LST__SCRATCH_LOGITS],
                        .in = m->scratch[LST__SCRATCH_HEAD_IN],
                        .in_grad = m->scratch[LST__SCRATCH_HEAD_GRAD],
                        .parts = m->scratch[LST__SCRATCH_HEAD_PARTS],
                        .stat = m->scratch[LST__SCRATCH_HEAD_STAT],
                        .row_loss = (double *)(void *)rows, /* doubles first: the buffer is 64-byte aligned */
                        .rows = (int32_t *)(void *)(rows + 2 * chunk)};
}

static float *grad_x(const model *m, size_t micro)
{
    return m->scratch[LST__SCRATCH_GRAD_X] + micro * m->rows * m->arch->hidden;
}

static float *sum_of(const model *m, lst_role role, int layer)
{
    size_t t = model_tensor_of(m, role, layer);
    return t == SIZE_MAX ? NULL : m->sum[t];
}

/* ---- a gradient is complete ---- */

#define ROUND_ELEMS 65536 /* a task */

typedef struct round_job {
    void *kept;
    const float *sum;
    lst_codec codec;
    size_t n;
} round_job;

static void round_task(void *context, size_t index, size_t worker)
{
    const round_job *j = context;
    size_t first = index * ROUND_ELEMS, n = j->n - first < ROUND_ELEMS ? j->n - first : ROUND_ELEMS;
    (void)worker;
    model_store(j->kept, j->codec, first, j->sum + first, n);
}

static lst_status finish(model *m, size_t tensor, const model_hooks *hooks, lst_error *err)
{
    const void *grad = m->sum[tensor];
    lst_codec codec = LST_CODEC_F32;
    if (m->kept[tensor] && m->recipe->grads != LST_CODEC_F32) {
        round_job j = {
            .kept = m->kept[tensor], .sum = m->sum[tensor], .codec = m->recipe->grads, .n = m->tensor[tensor].n_elems};
        lst_pool_run(m->work.pool, model_tasks(j.n, ROUND_ELEMS), round_task, &j);
        grad = m->kept[tensor];
        codec = m->recipe->grads;
    }
    return hooks && hooks->on_gradient ? hooks->on_gradient(hooks->user, tensor, grad, codec, err) : LST_OK;
}

/* All tensors of a layer, last first. */
static lst_status finish_layer(model *m, int layer, const model_hooks *hooks, lst_error *err)
{
    for (int role = LST_N_ROLES - 1; role >= 0; role--) {
        size_t t = model_tensor_of(m, (lst_role)role, layer);
        lst_status status = t == SIZE_MAX ? LST_OK : finish(m, t, hooks, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

/* ---- backward ---- */

static double loss_phase(model *m, float scale)
{
    int last = (int)m->arch->layers;
    model_loss loss = model_loss_of(m);
    model_loss_grads grads = {.scale = scale,
                              .d_norm = sum_of(m, LST_ROLE_NORMF_W, last),
                              .d_norm_bias = sum_of(m, LST_ROLE_NORMF_B, last),
                              .d_head = m->sum[model_head_tensor(m)]};
    double sum = 0.0;
    model_zero(&m->work, grad_x(m, 0), m->recipe->accumulation * m->rows * m->arch->hidden);
    for (size_t micro = 0; micro < m->recipe->accumulation; micro++)
        sum += model_loss_run(&loss, model_input(m, m->arch->layers, micro), model_targets(m, micro), m->rows,
                              grad_x(m, micro), &grads);
    return sum;
}

static void layer_backward(model *m, size_t layer)
{
    model_block block = model_block_of(m, layer);
    model_block_shape shape = {m->recipe->batch, m->recipe->seq};
    model_block_grads grads = {.norm = m->scratch[LST__SCRATCH_GRAD_NORM], .wide = m->scratch[LST__SCRATCH_GRAD_WIDE]};
    for (int role = 0; role < LST_N_ROLES; role++)
        grads.weight[role] = sum_of(m, (lst_role)role, (int)layer);
    for (size_t micro = 0; micro < m->recipe->accumulation; micro++) {
        float *act[LST__N_ACTS];
        model_acts(m, layer, micro, true, act);
        model_block_forward(&m->work, &block, shape, act, NULL, model_stages_again(m->recipe->activations));
        grads.dx = grad_x(m, micro);
        grads.add = micro > 0;
        model_block_backward(&m->work, &block, shape, act, &grads);
    }
}

static void embed_backward(model *m)
{
    model_embedding e = model_embedding_of(m);
    float *d_tokens = sum_of(m, LST_ROLE_EMBED, -1), *d_positions = sum_of(m, LST_ROLE_POSITIONS, -1);
    if (!m->arch->tied) /* a tied table already holds the head's part */
        model_zero(&m->work, d_tokens, m->arch->vocab * m->arch->hidden);
    if (d_positions)
        model_zero(&m->work, d_positions, m->arch->max_positions * m->arch->hidden);
    for (size_t micro = 0; micro < m->recipe->accumulation; micro++)
        model_embed_backward(&m->work, &e, d_tokens, d_positions, grad_x(m, micro), model_ids(m, micro), m->rows,
                             m->recipe->seq);
}

static lst_status backward(model *m, const model_hooks *hooks, lst_error *err)
{
    lst_status status = finish_layer(m, (int)m->arch->layers, hooks, err);
    for (size_t layer = m->arch->layers; status == LST_OK && layer-- > 0;) {
        model_enter(m, lst_phase_backward(m->arch->layers, layer));
        layer_backward(m, layer);
        status = finish_layer(m, (int)layer, hooks, err);
    }
    if (status != LST_OK)
        return status;
    model_enter(m, lst_phase_embed_backward(m->arch->layers));
    embed_backward(m);
    return finish_layer(m, -1, hooks, err);
}

lst_status model_step(model *m, float loss_scale, const model_hooks *hooks, double *loss, lst_error *err)
{
    size_t counted;
    if (m->purpose != LST__TRAINS)
        return lst__fail(err, LST_ERR_STATE, "this model was made from a plan for %s: it cannot train",
                         m->purpose == LST__GENERATES ? "generation" : "evaluation");
    if (m->recipe->grad_mode == LST_GRAD_RELEASE && !(hooks && hooks->on_gradient))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "released gradients need an on_gradient hook: their buffer is used again");
    lst_status status = model_check_tokens(m, m->recipe->accumulation, &counted, err);
    if (status != LST_OK)
        return status;
    if (counted == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "no target of this step is counted (all are %d): there is no loss",
                         MODEL_IGNORE);
    model_forward(m, m->recipe->accumulation);
    model_enter(m, lst_phase_loss(m->arch->layers));
    double mean = loss_phase(m, (float)((double)loss_scale / (double)counted)) / (double)counted;
    if (hooks && hooks->on_loss)
        status = hooks->on_loss(hooks->user, mean, err);
    if (status == LST_OK)
        status = backward(m, hooks, err);
    if (status == LST_OK)
        *loss = mean;
    return status;
}

/* ---- forward only ---- */

lst_status model_evaluate(model *m, double *loss_sum, size_t *counted, lst_error *err)
{
    size_t n;
    if (m->purpose == LST__GENERATES)
        return lst__fail(err, LST_ERR_STATE, "this model was made from a plan for generation: it cannot evaluate");
    lst_status status = model_check_tokens(m, 1, &n, err);
    if (status != LST_OK)
        return status;
    model_forward(m, 1);
    model_enter(m, lst_phase_loss(m->arch->layers));
    model_loss loss = model_loss_of(m);
    *loss_sum = model_loss_run(&loss, model_input(m, m->arch->layers, 0), model_targets(m, 0), m->rows, NULL, NULL);
    *counted = n;
    return LST_OK;
}

lst_status model_logits(model *m, float *logits, lst_error *err)
{
    size_t counted;
    if (m->purpose == LST__GENERATES)
        return lst__fail(err, LST_ERR_STATE, "this model was made from a plan for generation: it has no batch");
    lst_status status = model_check_tokens(m, 1, &counted, err);
    if (status != LST_OK)
        return status;
    model_forward(m, 1);
    model_enter(m, lst_phase_loss(m->arch->layers));
    model_loss loss = model_loss_of(m);
    for (size_t row = 0; row < m->rows; row += loss.chunk) {
        size_t n = m->rows - row < loss.chunk ? m->rows - row : loss.chunk;
        model_loss_logits(&loss, model_input(m, m->arch->layers, 0), row, n);
        memcpy(logits + row * m->arch->vocab, loss.logits, n * m->arch->vocab * sizeof *logits);
    }
    return LST_OK;
}
