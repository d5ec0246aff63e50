/* SPDX-License-Identifier: MIT
 *
 * Adafactor, in two forms by name. Second moments of tensors with two or more dimensions are kept as one number a row
 * and one a column (of each matrix of the last two dimensions); others in full. RMS(x) = sqrt(mean of x*x).
 *
 * adafactor (Shazeer and Stern 2018, as in transformers): w = t^beta2_decay
 *     rate = lr, or with relative_step min(1e-2 or with warmup_init 1e-6*t, 1/sqrt(t)); times max(eps2, RMS(p)) if
 *     scale_parameter s = g*g + eps;  row = (1-w)*row + w*mean of s over the row;  column likewise;  v = row/mean(row)
 *     * column or v = (1-w)*v + w*s;   u = g/sqrt(v);   u = u * rate / max(1, RMS(u)/clip_threshold)
 *     beta1 > 0: m = beta1*m + (1-beta1)*u, u = m;   p = p - weight_decay*rate*p - u
 *
 * adafactor-torch (torch.optim.Adafactor): nothing is added to g*g, v is held above eps*eps instead, and eps is
 * float32's epsilon
 *     rate = min(lr, 1/sqrt(t)) * max(eps2, RMS(p)), p before its decay;   p = p*(1 - lr*weight_decay)
 *     v = row*column / max(mean(row), eps);   u = g/sqrt(max(v, eps*eps));   p = p - rate/max(1, RMS(u)/clip_threshold)
 *     * u
 *
 * Our defaults differ from transformers' in one thing: relative_step is off and lr is 1e-2 (times RMS(p)), the rate
 * that relative_step has for its first 10,000 steps, so that a schedule has effect. Row and column are divided before
 * they are multiplied: the other order overflows float32 for gradients above 4e9, as PyTorch's does. RMS(u) must be
 * known before the first weight moves: one pass computes u and keeps its norm, a second computes it again.
 */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "optim/factored.h"

typedef struct job {
    lst__factored f;         /* of a tensor with two or more dimensions */
    bool factored, torch;    /* which kind of tensor; which rule */
    double *row_means;       /* in scratch: one a matrix */
    float *column_factors;   /* in scratch: 1/sqrt(column); not for torch */
    float keep, take, added; /* of a full second moment */
    float floor;             /* torch: eps*eps */
    float decay, rate;       /* of the last pass: p = p*decay - rate*u */
    float beta1, beta1c;
    size_t v_slot, m_slot; /* SIZE_MAX: none */
} job;

static bool is_factored(const lst_tensor *tensor)
{
    return tensor->n_dims >= 2;
}

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    size_t count = 0;
    if (is_factored(tensor)) {
        lst__factored f;
        lst__factored_shape(tensor, &f);
        out[count++] = (lst__slot_spec){LST_BUCKET_EXP_AVG_SQ_ROW, f.batch * f.rows, true, true};
        out[count++] = (lst__slot_spec){LST_BUCKET_EXP_AVG_SQ_COL, f.batch * f.columns, true, true};
    } else {
        out[count++] = (lst__slot_spec){LST_BUCKET_EXP_AVG_SQ, lst__tensor_n(tensor), true, false};
    }
    if (hyper->beta1 > 0)
        out[count++] = (lst__slot_spec){LST_BUCKET_EXP_AVG, lst__tensor_n(tensor), false, false};
    return count;
}

static size_t scratch_bytes(const lst_hyper *hyper, const lst_tensor *tensor)
{
    (void)hyper;
    if (!is_factored(tensor))
        return 0;
    lst__factored f;
    lst__factored_shape(tensor, &f);
    return f.batch * sizeof(double) + f.batch * f.columns * sizeof(float);
}

/* ---- the update u of a tile ---- */

static void factored_run(const job *j, const lst__row_run *run, const float *restrict g, float *restrict u)
{
    const double row = (double)j->f.row[run->row], mean = j->row_means[run->matrix];
    const size_t at = run->matrix * j->f.columns + run->column;
    if (!j->torch) {
        const float row_factor = (float)(1.0 / sqrt(row / mean));
        const float *restrict column_factors = j->column_factors + at;
        for (size_t i = 0; i < run->n; i++)
            u[i] = g[i] * row_factor * column_factors[i];
        return;
    }
    const float share = (float)(row / mean); /* mean is already held above eps */
    const float *restrict column = j->f.column + at;
    for (size_t i = 0; i < run->n; i++) {
        const float v = share * column[i];
        u[i] = g[i] / sqrtf(v < j->floor ? j->floor : v);
    }
}

/* Also writes the new second moment of a full tensor into v_out, which may be v itself. */
static void full_run(const job *j, size_t n, const float *g, const float *v, float *v_out, float *restrict u)
{
    for (size_t i = 0; i < n; i++) {
        const float second = j->keep * v[i] + j->take * (g[i] * g[i] + j->added);
        const float above = second < j->floor ? j->floor : second;
        v_out[i] = second;
        u[i] = above > 0.0f ? g[i] / sqrtf(above) : 0.0f;
    }
}

/* new_v: where a full tensor's second moment goes (a buffer where it must not change yet). */
static void update_of_tile(const job *j, const lst__tile *tile, float *new_v, float *u)
{
    if (!j->factored) {
        full_run(j, tile->n, tile->g, tile->s[j->v_slot], new_v, u);
        return;
    }
    for (size_t at = 0; at < tile->n;) {
        const lst__row_run run = lst__row_run_at(&j->f, tile, at);
        factored_run(j, &run, tile->g + at, u + at);
        at += run.n;
    }
}

static void norms_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    float u[LST__MAX_TILE], ignored[LST__MAX_TILE];
    update_of_tile(user, tile, ignored, u);
    sums[0] += step->kernels->sum_squares(u, tile->n);
    sums[1] += step->kernels->sum_squares(tile->w, tile->n);
}

static void step_tile(const lst__step *step, const void *user, const lst__tile *tile, double *sums)
{
    (void)step, (void)sums;
    const job *j = user;
    float u[LST__MAX_TILE];
    update_of_tile(j, tile, tile->s[j->v_slot], u);
    float *restrict w = tile->w;
    if (j->m_slot == SIZE_MAX) {
        for (size_t i = 0; i < tile->n; i++)
            w[i] = w[i] * j->decay - j->rate * u[i];
        return;
    }
    float *restrict m = tile->s[j->m_slot];
    for (size_t i = 0; i < tile->n; i++) {
        m[i] = j->beta1 * m[i] + j->beta1c * (j->rate * u[i]);
        w[i] = w[i] * j->decay - m[i];
    }
}

/* ---- the step ---- */

static void prepare_factors(job *j, double least_mean)
{
    for (size_t b = 0; b < j->f.batch; b++)
        j->row_means[b] = fmax(lst__factored_row_mean(&j->f, b), least_mean);
    for (size_t i = 0; i < j->f.batch * j->f.columns && !j->torch; i++)
        j->column_factors[i] = (float)(1.0 / sqrt((double)j->f.column[i]));
}

static void second_moments(job *j, lst__step *step)
{
    const lst_hyper *h = step->hyper;
    const double take = pow((double)step->t, h->beta2_decay), added = j->torch ? 0 : h->eps;
    j->keep = (float)(1.0 - take);
    j->take = (float)take;
    j->added = (float)added;
    j->floor = j->torch ? (float)fmax(h->eps * h->eps, 1e-37) : 0.0f; /* must not vanish in float32 */
    j->factored = is_factored(step->tensor);
    j->v_slot = 0;
    if (!j->factored)
        return;
    lst__factored_shape(step->tensor, &j->f);
    j->f.step = step;
    j->f.row = step->slots[0].memory;
    j->f.column = step->slots[1].memory;
    j->f.keep = 1.0 - take;
    j->f.take = take;
    j->f.added = added;
    j->row_means = step->scratch;
    j->column_factors = (float *)(j->row_means + j->f.batch);
    lst__factored_update(&j->f);
    prepare_factors(j, j->torch ? h->eps : 0);
}

static double base_rate(const job *j, const lst_hyper *h, double t)
{
    if (j->torch)
        return fmin(h->lr, 1 / sqrt(t));
    if (h->relative_step)
        return fmin(h->warmup_init ? 1e-6 * t : 1e-2, 1 / sqrt(t));
    return h->lr;
}

static void step_of_rule(lst__step *step, bool torch)
{
    const lst_hyper *h = step->hyper;
    job j = {.torch = torch, .m_slot = SIZE_MAX};
    second_moments(&j, step);
    const unsigned v_use = j.factored ? 0 : LST__USE_S0;
    const lst__pass norms = {.reads = LST__USE_W | LST__USE_G | v_use, .tile = norms_tile, .user = &j, .n_sums = 2};
    double sums[2];
    lst__pass_run(step, &norms, sums);
    const double n = (double)step->n_elems, rms_u = sqrt(sums[0] / n), rms_p = sqrt(sums[1] / n);
    double rate = base_rate(&j, h, (double)step->t);
    if (torch || h->scale_parameter)
        rate *= fmax(h->eps2, rms_p);
    j.decay = (float)(1.0 - h->weight_decay * (torch ? h->lr : rate));
    j.rate = (float)(rate / fmax(1.0, rms_u / h->clip_threshold));
    if (h->maximize) /* -g gives -u */
        j.rate = -j.rate;
    unsigned m_use = 0;
    if (h->beta1 > 0) {
        j.m_slot = step->n_slots - 1;
        j.beta1 = (float)h->beta1;
        j.beta1c = (float)(1.0 - h->beta1);
        m_use = LST__USE_S0 << j.m_slot;
    }
    const lst__pass pass = {.reads = LST__USE_W | LST__USE_G | v_use | m_use,
                            .writes = LST__USE_W | v_use | m_use,
                            .tile = step_tile,
                            .user = &j};
    lst__pass_run(step, &pass, NULL);
}

static void whole(lst__step *step)
{
    step_of_rule(step, false);
}

static void whole_torch(lst__step *step)
{
    step_of_rule(step, true);
}

static lst_status check_clip(const lst_hyper *hyper, const char *where, lst_error *err)
{
    if (hyper->clip_threshold > 0)
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT, "%s: clip_threshold is 0; expected more than 0 (1 in the paper)", where);
}

static lst_status check(const lst_hyper *hyper, const char *where, lst_error *err)
{
    if (hyper->relative_step && hyper->lr != lst__rule_adafactor.defaults.lr)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "%s: relative_step makes its own rate, so lr %g would have no effect; leave lr at %g or switch "
            "relative_step off",
            where, hyper->lr, lst__rule_adafactor.defaults.lr);
    if (hyper->warmup_init && !hyper->relative_step)
        return lst__fail(err, LST_ERR_ARGUMENT, "%s: warmup_init has no effect without relative_step", where);
    if (!(hyper->eps >= 1e-37)) /* must not vanish in float32 */
        return lst__fail(err, LST_ERR_ARGUMENT, "%s: eps is %g; expected at least 1e-37 (1e-30 in the paper)", where,
                         hyper->eps);
    return check_clip(hyper, where, err);
}

static lst_status check_torch(const lst_hyper *hyper, const char *where, lst_error *err)
{
    if (!(hyper->eps > 0))
        return lst__fail(err, LST_ERR_ARGUMENT, "%s: eps is 0; expected more than 0 (float32's epsilon in PyTorch)",
                         where);
    return check_clip(hyper, where, err);
}

const lst__rule lst__rule_adafactor = {
    .defaults =
        {.lr = 1e-2, .eps = 1e-30, .eps2 = 1e-3, .beta2_decay = -0.8, .clip_threshold = 1, .scale_parameter = true},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_EPS | LST__FIELD_EPS2 | LST__FIELD_BETA2_DECAY |
              LST__FIELD_CLIP_THRESHOLD | LST__FIELD_WEIGHT_DECAY | LST__FIELD_SCALE_PARAMETER |
              LST__FIELD_RELATIVE_STEP | LST__FIELD_WARMUP_INIT,
    .check = check,
    .slots = slots,
    .whole = whole,
    .scratch_bytes = scratch_bytes,
};

const lst__rule lst__rule_adafactor_torch = {
    .defaults = {.lr = 1e-2, .eps = 0x1p-23, .eps2 = 1e-3, .beta2_decay = -0.8, .clip_threshold = 1},
    .fields = LST__FIELD_LR | LST__FIELD_EPS | LST__FIELD_EPS2 | LST__FIELD_BETA2_DECAY | LST__FIELD_CLIP_THRESHOLD |
              LST__FIELD_WEIGHT_DECAY | LST__FIELD_MAXIMIZE,
    .check = check_torch,
    .slots = slots,
    .whole = whole_torch,
    .scratch_bytes = scratch_bytes,
};
