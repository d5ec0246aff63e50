/* SPDX-License-Identifier: MIT
 *
 * The gradient check a user can read: nudge a weight, watch the loss, compare the rate with backward's answer.
 */
#include "model/parts.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"

static float element(const model *m, size_t tensor, size_t i)
{
    float value;
    model_widen(&value, m->weight[tensor], m->codec, i, 1);
    return value;
}

static lst_status mean_loss(model *m, double *mean, lst_error *err)
{
    double sum;
    size_t counted;
    lst_status status = model_evaluate(m, &sum, &counted, err);
    if (status == LST_OK)
        *mean = sum / (double)counted;
    return status;
}

/* A nudge that moves the loss by about 5e-4, far above its rounding (1e-7), yet small beside 1: between 1/1024 and
 * 1/32. */
static double default_nudge(double gradient)
{
    double nudge = 5e-4 / fabs(gradient);
    return nudge < 0x1p-10 ? 0x1p-10 : nudge > 0x1p-5 ? 0x1p-5 : nudge;
}

/* The loss with one stored weight moved; *moved = the weight as stored. The old bytes are put back. */
static lst_status loss_at(model *m, const model_nudge *n, double change, double *loss, double *moved, lst_error *err)
{
    size_t size = lst_codec_bytes(m->codec, 1);
    unsigned char *stored = (unsigned char *)m->weight[n->tensor] + n->element * size, old[sizeof(float)];
    float value = (float)(n->weight + change);
    memcpy(old, stored, size);
    model_store(m->weight[n->tensor], m->codec, n->element, &value, 1);
    *moved = (double)element(m, n->tensor, n->element);
    lst_status status = mean_loss(m, loss, err);
    memcpy(stored, old, size);
    return status;
}

static lst_status nudge_one(model *m, model_nudge *n, lst_error *err)
{
    double low, high;
    n->weight = (double)element(m, n->tensor, n->element);
    if (n->nudge == 0.0)
        n->nudge = default_nudge(n->backward);
    lst_status status = loss_at(m, n, -n->nudge, &n->loss_down, &low, err);
    if (status == LST_OK)
        status = loss_at(m, n, n->nudge, &n->loss_up, &high, err);
    if (status != LST_OK)
        return status;
    if (high == low)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "%s[%zu]: a nudge of %g is lost in the rounding of %g as %s; nudge more",
                         m->tensor[n->tensor].name, n->element, n->nudge, n->weight, lst_codec_name(m->codec));
    n->rate = (n->loss_up - n->loss_down) / (high - low);
    return LST_OK;
}

lst_status model_check_gradient(model *m, model_nudge *nudges, size_t n, lst_error *err)
{
    if (m->recipe->grad_mode != LST_GRAD_KEEP || m->recipe->grads != LST_CODEC_F32 || m->recipe->accumulation != 1)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "the gradient check needs kept float32 gradients and one micro-batch a step");
    for (size_t i = 0; i < n; i++)
        if (nudges[i].tensor >= m->n_tensors || nudges[i].element >= m->tensor[nudges[i].tensor].n_elems)
            return lst__fail(err, LST_ERR_ARGUMENT, "nudge %zu: there is no element %zu of tensor %zu", i,
                             nudges[i].element, nudges[i].tensor);
    double loss;
    lst_status status = model_step(m, 1.0f, NULL, &loss, err);
    for (size_t i = 0; i < n; i++)
        if (status == LST_OK) {
            nudges[i].loss_before = loss;
            nudges[i].backward = (double)m->sum[nudges[i].tensor][nudges[i].element];
        }
    for (size_t i = 0; status == LST_OK && i < n; i++)
        status = nudge_one(m, &nudges[i], err);
    return status;
}
