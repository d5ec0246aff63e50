/* SPDX-License-Identifier: MIT
 *
 * Random weights, as Hugging Face initialises the family.
 */
#include <math.h>

#include "base/random.h"
#include "model/parts.h"
#include "model/work.h"

#define INIT_ELEMS 4096 /* a task */

static double deviation_of(const lst_arch *arch, const lst_arch_tensor *tensor)
{
    if (tensor->n_dims < 2)
        return 0.0;
    bool into_stream = tensor->role == LST_ROLE_O_W || tensor->role == LST_ROLE_DOWN_W;
    if (arch->family == LST_FAMILY_GPT2 && into_stream)
        return arch->init_range / sqrt(2.0 * (double)arch->layers);
    return arch->init_range;
}

static bool is_norm_weight(lst_role role)
{
    return role == LST_ROLE_NORM1_W || role == LST_ROLE_NORM2_W || role == LST_ROLE_NORMF_W ||
           role == LST_ROLE_Q_NORM || role == LST_ROLE_K_NORM;
}

typedef struct init_job {
    void *weight;
    lst_codec codec;
    size_t n;
    size_t base;
    uint64_t seed, stream;
    double deviation, value; /* normal(0, deviation), or the value if deviation is 0 */
} init_job;

static void init_task(void *context, size_t index, size_t worker)
{
    const init_job *j = context;
    size_t first = index * INIT_ELEMS, n = j->n - first < INIT_ELEMS ? j->n - first : INIT_ELEMS;
    float values[INIT_ELEMS];
    (void)worker;
    for (size_t i = 0; i < n; i++)
        values[i] =
            (float)(j->deviation > 0.0 ? j->deviation * lst__random_normal(j->seed, j->stream, j->base + first + i)
                                       : j->value);
    model_store(j->weight, j->codec, first, values, n);
}

static init_job job_of(const lst_arch *arch, const lst_arch_tensor *tensor, size_t index, uint64_t seed)
{
    return (init_job){.codec = LST_CODEC_F32,
                      .n = tensor->n_elems,
                      .seed = seed,
                      .stream = index,
                      .deviation = deviation_of(arch, tensor),
                      .value = is_norm_weight(tensor->role) ? 1.0 : 0.0};
}

void model_init_random(model *m, uint64_t seed)
{
    for (size_t t = 0; t < m->n_tensors; t++) {
        init_job j = job_of(m->arch, &m->tensor[t], t, seed);
        j.weight = m->weight[t];
        j.codec = m->codec;
        lst_pool_run(m->work.pool, model_tasks(j.n, INIT_ELEMS), init_task, &j);
    }
}

void model_init_part(const model_init *init, size_t tensor, size_t first, size_t n, float *out)
{
    lst_arch_tensor t;
    lst_arch_tensor_at(init->arch, tensor, &t);
    init_job j = job_of(init->arch, &t, tensor, init->seed);
    j.weight = out;
    j.base = first;
    j.n = n;
    lst_pool_run(init->pool, model_tasks(n, INIT_ELEMS), init_task, &j);
}
