/* SPDX-License-Identifier: MIT
 *
 * What is asked about gradients before a step: norms, clipping, and whether they are finite. Sums are taken in double
 * over tasks whose number depends on the size alone, so they are the same for any number of threads.
 */
#include "optim/optimizer.h"

#include <math.h>

#include "base/fail.h"
#include "store/codec.h"

#define MAX_TASKS 256
#define MIN_TASK_ELEMS 32768

typedef struct scan {
    const void *grad;
    const lst__kernels *kernels;
    lst_codec codec;
    float unscale;
    size_t n_elems, task_elems;
    double sums[MAX_TASKS];
    float largest[MAX_TASKS];
    bool finite[MAX_TASKS];
} scan;

static void scan_setup(scan *s, const void *grad, lst_codec codec, size_t n_elems, float unscale)
{
    s->grad = grad;
    s->kernels = lst__kernels_get();
    s->codec = codec;
    s->unscale = unscale;
    s->n_elems = n_elems;
    const size_t share = n_elems / MAX_TASKS + 1;
    s->task_elems = share <= MIN_TASK_ELEMS ? MIN_TASK_ELEMS : (share + LST__TILE - 1) / LST__TILE * LST__TILE;
}

static size_t scan_tasks(const scan *s)
{
    return s->n_elems / s->task_elems + (s->n_elems % s->task_elems != 0);
}

/* One tile as float32, not yet unscaled: where it lies, or in the buffer. */
static const float *scan_tile(const scan *s, size_t first, size_t n, float *buffer)
{
    if (s->codec == LST_CODEC_F32)
        return (const float *)s->grad + first;
    lst__codec(s->codec)->decode(s->grad, s->n_elems, first, n, buffer);
    return buffer;
}

static const float *unscaled(const scan *s, const float *tile, size_t n, float *buffer)
{
    if (s->unscale == 1.0f)
        return tile;
    if (tile != buffer)
        lst__codec(LST_CODEC_F32)->decode(tile, n, 0, n, buffer);
    s->kernels->scale(buffer, n, s->unscale);
    return buffer;
}

static void scan_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    scan *s = context;
    float buffer[LST__TILE];
    const size_t begin = index * s->task_elems;
    const size_t end = s->n_elems - begin < s->task_elems ? s->n_elems : begin + s->task_elems;
    double sum = 0;
    float largest = 0;
    bool finite = true;
    for (size_t first = begin; first < end; first += LST__TILE) {
        const size_t n = end - first < LST__TILE ? end - first : LST__TILE;
        const float *tile = scan_tile(s, first, n, buffer);
        finite = finite && s->kernels->all_finite(tile, n);
        tile = unscaled(s, tile, n, buffer);
        sum += s->kernels->sum_squares(tile, n);
        const float here = s->kernels->max_abs(tile, n);
        largest = isnan(here) || here > largest ? here : largest;
        if (isnan(largest))
            break;
    }
    s->sums[index] = sum;
    s->largest[index] = largest;
    s->finite[index] = finite;
}

void lst_grad_sum_squares(const void *grad, lst_codec codec, size_t n_elems, float unscale, lst_pool *pool,
                          double *sum_squares, bool *finite)
{
    scan s;
    scan_setup(&s, grad, codec, n_elems, unscale);
    const size_t n_tasks = scan_tasks(&s);
    lst_pool_run(pool, n_tasks, scan_task, &s);
    double sum = 0;
    bool all = true;
    for (size_t i = 0; i < n_tasks; i++) {
        sum += s.sums[i];
        all = all && s.finite[i];
    }
    *sum_squares = sum;
    *finite = all;
}

double lst_grad_max_abs(const void *grad, lst_codec codec, size_t n_elems, float unscale, lst_pool *pool)
{
    scan s;
    scan_setup(&s, grad, codec, n_elems, unscale);
    const size_t n_tasks = scan_tasks(&s);
    lst_pool_run(pool, n_tasks, scan_task, &s);
    float largest = 0;
    for (size_t i = 0; i < n_tasks && !isnan(largest); i++)
        largest = isnan(s.largest[i]) || s.largest[i] > largest ? s.largest[i] : largest;
    return largest;
}

float lst_clip_coef(double total_norm, double max_norm)
{
    /* torch divides a Python float by a float32 tensor: the reciprocal in float32, then the product. */
    const float inverse = 1.0f / ((float)total_norm + 1e-6f);
    const float coef = inverse * (float)max_norm;
    return coef > 1.0f ? 1.0f : coef; /* NaN stays */
}

lst_status lst_grads_check(const lst_optim *optim, const void *const *grads, lst_grads_report *report, lst_error *err)
{
    lst_grads_report found = {0, SIZE_MAX};
    for (size_t i = 0; i < optim->n_params; i++) {
        double sum;
        bool finite = true;
        if (grads[i])
            lst_grad_sum_squares(grads[i], optim->options.grads, optim->params[i].n_elems, 1.0f, optim->options.pool,
                                 &sum, &finite);
        if (finite)
            continue;
        if (found.n_tensors++ == 0)
            found.first_tensor = i;
    }
    if (report)
        *report = found;
    if (found.n_tensors == 0)
        return LST_OK;
    return lst__fail(
        err, LST_ERR_NONFINITE,
        "the gradient of %s holds a NaN or infinity (%zu of %zu tensors do); skip this step, and lower the "
        "learning rate or the loss scale if it happens often",
        optim->params[found.first_tensor].tensor.name, found.n_tensors, optim->n_params);
}
