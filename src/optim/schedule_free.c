/* SPDX-License-Identifier: MIT
 *
 * Schedule-free AdamW (Defazio et al. 2024; schedulefree.AdamWScheduleFree). The weights y that the model holds are
 * those the gradient is taken at; z is the base sequence, starting as y; x, the average, is what to evaluate and
 * publish:
 *
 *     lr_k = lr*min(1, k/warmup_steps)            lr_max = the largest lr_k so far
 *     weight = k^r * lr_max^weight_lr_power       weight_sum = weight_sum + weight;  c = weight/weight_sum
 *     v = beta2*v + (1 - beta2)*g*g               u = g / (sqrt(v/(1 - beta2^k)) + eps) + weight_decay*y
 *     y = (1 - c)*y + c*z - lr_k*(1 - beta1*(1 - c))*u
 *     z = z - lr_k*u                              x = y + (1 - 1/beta1)*(z - y)
 *
 * lr_max and weight_sum are two doubles of the slot "averaging" (four 32-bit words): they must survive a checkpoint
 * exactly.
 */
#include "optim/schedule_free.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"

typedef struct averaging {
    double lr_max, weight_sum;
} averaging;

static size_t slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    (void)hyper;
    const size_t n = lst__tensor_n(tensor);
    out[0] = (lst__slot_spec){LST_BUCKET_EXP_AVG_SQ, n, true, false};
    out[1] = (lst__slot_spec){LST_BUCKET_Z, n, false, true}; /* weights, not a moment: rounding them would lose steps */
    out[2] = (lst__slot_spec){LST_BUCKET_AVERAGING, sizeof(averaging) / sizeof(float), false, true};
    return 3;
}

static lst_status check(const lst_hyper *hyper, const char *where, lst_error *err)
{
    if (hyper->beta1 > 0)
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT, "%s: beta1 is 0; schedule-free-adamw divides by it: expected 0 < beta1 < 1",
                     where);
}

static void whole(lst__step *step)
{
    const lst_hyper *h = step->hyper;
    const double k = (double)step->t;
    const double lr = h->lr * (h->warmup_steps > 0 ? fmin(1.0, k / h->warmup_steps) : 1.0);
    averaging a;
    memcpy(&a, step->slots[2].memory, sizeof a);
    a.lr_max = fmax(a.lr_max, lr);
    const double weight = pow(k, h->r) * pow(a.lr_max, h->weight_lr_power);
    a.weight_sum += weight;
    const double c = a.weight_sum > 0 ? weight / a.weight_sum : 0;
    memcpy(step->slots[2].memory, &a, sizeof a);
    lst__rule_call call = {.loop = step->t == 1 ? LST__LOOP_schedule_free_first : LST__LOOP_schedule_free};
    call.k[LST__K_L2] = (float)h->weight_decay;
    call.k[LST__K_RATE] = (float)-lr;
    call.k[LST__K_RATE_Y] = (float)(-lr * (1.0 - h->beta1 * (1.0 - c)));
    call.k[LST__K_AVERAGE] = (float)c;
    call.k[LST__K_BETA2] = (float)h->beta2;
    call.k[LST__K_BETA2C] = (float)(1.0 - h->beta2);
    call.k[LST__K_UNBIAS2] = (float)(1.0 / sqrt(1.0 - pow(h->beta2, k)));
    call.k[LST__K_EPS] = (float)h->eps;
    const lst__pass pass = lst__pass_of_call(&call, 2);
    lst__pass_run(step, &pass, NULL);
}

void lst__schedule_free_average(const lst_hyper *hyper, const float *z, float *y, size_t n)
{
    const float pull = (float)(1.0 - 1.0 / hyper->beta1);
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] + pull * (z[i] - y[i]);
}

const lst__rule lst__rule_schedule_free = {
    .defaults = {.lr = 2.5e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_lr_power = 2},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_BETA2 | LST__FIELD_EPS | LST__FIELD_WEIGHT_DECAY |
              LST__FIELD_WARMUP_STEPS | LST__FIELD_R | LST__FIELD_WEIGHT_LR_POWER,
    .check = check,
    .slots = slots,
    .whole = whole,
};
