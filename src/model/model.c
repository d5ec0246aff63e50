/* SPDX-License-Identifier: MIT
 *
 * What a bound model answers: its phases, its parts, its weights.
 */
#include "model/parts.h"

#include <string.h>

#include "base/fail.h"
#include "kernels/kernels.h"

static void give_or_take(model *m, int phase, bool take)
{
    for (size_t i = 0; i < m->plan->n_buffers; i++) {
        const lst_buffer *b = &m->plan->buffers[i];
        bool lives = b->first_phase <= phase && phase <= b->last_phase;
        if (!m->claimed[i] || lives == m->held[i] || lives != take)
            continue;
        m->held[i] = lives;
        if (!take) {
            lst_ledger_give(m->ledger, b->bucket, b->bytes);
            continue;
        }
        lst_ledger_take(m->ledger, b->bucket, b->bytes);
        if (m->poison)
            memset(m->arena + b->offset, 0xff, b->bytes);
    }
}

void model_enter(model *m, int phase)
{
    give_or_take(m, phase, false); /* first: a phase holds what lives in it, no more */
    lst_ledger_enter(m->ledger, phase);
    give_or_take(m, phase, true);
}

void model_set_poison(model *m, bool poison)
{
    m->poison = poison;
}

/* ---- parts ---- */

size_t model_tensor_of(const model *m, lst_role role, int layer)
{
    return m->index[(size_t)(layer + 1) * LST_N_ROLES + role];
}

const void *model_weight_of(const model *m, lst_role role, int layer)
{
    size_t t = model_tensor_of(m, role, layer);
    return t == SIZE_MAX ? NULL : m->weight[t];
}

model_block model_block_of(const model *m, size_t layer)
{
    model_block block = {.arch = m->arch, .rotation = m->scratch[LST__SCRATCH_ROTATION], .codec = m->codec};
    for (int role = 0; role < LST_N_ROLES; role++)
        block.weight[role] = model_weight_of(m, (lst_role)role, (int)layer);
    return block;
}

model_embedding model_embedding_of(const model *m)
{
    return (model_embedding){.tokens = model_weight_of(m, LST_ROLE_EMBED, -1),
                             .positions = model_weight_of(m, LST_ROLE_POSITIONS, -1),
                             .codec = m->codec,
                             .vocab = m->arch->vocab,
                             .hidden = m->arch->hidden};
}

size_t model_head_tensor(const model *m)
{
    return m->arch->tied ? model_tensor_of(m, LST_ROLE_EMBED, -1)
                         : model_tensor_of(m, LST_ROLE_HEAD_W, (int)m->arch->layers);
}

model_norm model_final_norm(const model *m)
{
    int layer = (int)m->arch->layers;
    return (model_norm){.weight = model_weight_of(m, LST_ROLE_NORMF_W, layer),
                        .bias = model_weight_of(m, LST_ROLE_NORMF_B, layer),
                        .codec = m->codec,
                        .n = m->arch->hidden,
                        .eps = m->arch->norm_eps};
}

model_linear model_head(const model *m)
{
    return (model_linear){
        .weight = m->weight[model_head_tensor(m)], .codec = m->codec, .in = m->arch->hidden, .out = m->arch->vocab};
}

float *model_input(const model *m, size_t layer, size_t micro)
{
    return m->act[layer * LST__N_ACTS + LST__ACT_INPUT] + micro * m->rows * m->arch->hidden;
}

void model_acts(const model *m, size_t layer, size_t micro, bool backward, float *act[LST__N_ACTS])
{
    float *const *kept = m->act + layer * LST__N_ACTS;
    float *const *shared = m->scratch + (backward ? LST__SCRATCH_BACKWARD : LST__SCRATCH_FORWARD);
    for (size_t a = 0; a < LST__N_ACTS; a++)
        act[a] = kept[a] ? kept[a] + micro * lst__act_elems(m->arch, m->recipe, (lst__act)a) : shared[a];
}

/* ---- weights ---- */

void *model_weight(model *m, size_t tensor)
{
    return m->weight[tensor];
}

void *model_gradient(model *m, size_t tensor)
{
    return m->kept[tensor];
}

int32_t *model_ids(model *m, size_t micro)
{
    return m->ids + micro * m->rows;
}

int32_t *model_targets(model *m, size_t micro)
{
    return m->targets + micro * m->rows;
}

size_t model_positions(const model *m)
{
    return m->positions;
}

void model_store(void *stored, lst_codec codec, size_t first, const float *values, size_t n)
{
    if (codec == LST_CODEC_BF16)
        lst__kernels_get()->f32_to_bf16(values, (uint16_t *)stored + first, n);
    else if (codec == LST_CODEC_F16)
        lst__kernels_get()->f32_to_f16(values, (uint16_t *)stored + first, n);
    else
        memcpy((float *)stored + first, values, n * sizeof *values);
}

/* ---- tokens ---- */

lst_status model_check_tokens(const model *m, size_t n_micro, size_t *counted, lst_error *err)
{
    int32_t vocab = (int32_t)m->arch->vocab;
    size_t n = 0;
    for (size_t i = 0; i < n_micro * m->rows; i++) {
        if (m->ids[i] < 0 || m->ids[i] >= vocab)
            return lst__fail(err, LST_ERR_ARGUMENT,
                             "token id %d at micro-batch %zu, position %zu: the vocabulary has ids 0 to %d",
                             (int)m->ids[i], i / m->rows, i % m->rows, (int)vocab - 1);
        if (m->targets[i] == MODEL_IGNORE)
            continue;
        if (m->targets[i] < 0 || m->targets[i] >= vocab)
            return lst__fail(
                err, LST_ERR_ARGUMENT,
                "target %d at micro-batch %zu, position %zu: the vocabulary has ids 0 to %d, and %d is not counted",
                (int)m->targets[i], i / m->rows, i % m->rows, (int)vocab - 1, MODEL_IGNORE);
        n++;
    }
    *counted = n;
    return LST_OK;
}

size_t model_counted(const model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->recipe->accumulation * m->rows; i++)
        n += m->targets[i] != MODEL_IGNORE;
    return n;
}
