/* SPDX-License-Identifier: MIT
 *
 * Adam (torch.optim.Adam): weight decay is added to the gradient (L2).
 *
 *     g = -g to maximize;  g = g + weight_decay*p
 *     m = m + (1 - beta1)*(g - m)            v = beta2*v + (1 - beta2)*g*g
 *     w = v, or with amsgrad the largest v so far (uncorrected)
 *     p = p - lr/(1 - beta1^t) * m / (sqrt(w)/sqrt(1 - beta2^t) + eps)
 *
 * t counts the tensor's own gradients. 1 - beta and beta^t are computed in double and cast once: in float32,
 * 1 - 0.999 is off by 1.3e-5 and 1 - 0.9999 by 1.7e-4. Where the denominator is 0 (eps 0, no gradient ever) the update
 * is 0.
 */
#include "optim/adam.h"

#include <math.h>

size_t lst__adam_slots(const lst_hyper *hyper, const lst_tensor *tensor, lst__slot_spec *out)
{
    const size_t n = lst__tensor_n(tensor);
    out[0] = (lst__slot_spec){LST_BUCKET_EXP_AVG, n, false, false};
    out[1] = (lst__slot_spec){LST_BUCKET_EXP_AVG_SQ, n, true, false};
    if (!hyper->amsgrad)
        return 2;
    out[2] = (lst__slot_spec){LST_BUCKET_MAX_EXP_AVG_SQ, n, true, false};
    return 3;
}

int lst__adam_scalars(const lst_hyper *hyper, int64_t t, float *k)
{
    const double correction1 = 1.0 - pow(hyper->beta1, (double)t), correction2 = 1.0 - pow(hyper->beta2, (double)t);
    const int late = 1.0 - hyper->beta1 >= 0.5; /* torch.lerp's branch: from the nearer end */
    k[LST__K_SIGN] = hyper->maximize ? -1.0f : 1.0f;
    k[LST__K_RATE] = (float)(-hyper->lr / correction1);
    k[LST__K_BETA1C] = late ? (float)hyper->beta1 : (float)(1.0 - hyper->beta1);
    k[LST__K_BETA2] = (float)hyper->beta2;
    k[LST__K_BETA2C] = (float)(1.0 - hyper->beta2);
    k[LST__K_UNBIAS2] = (float)(1.0 / sqrt(correction2));
    k[LST__K_EPS] = (float)hyper->eps;
    return late + 2 * hyper->amsgrad;
}

static void prepare(const lst_hyper *hyper, int64_t t, lst__rule_call *out)
{
    static const enum lst__rule_loop_id loops[4] = {LST__LOOP_adam, LST__LOOP_adam_late, LST__LOOP_adam_amsgrad,
                                                    LST__LOOP_adam_amsgrad_late};
    out->loop = loops[lst__adam_scalars(hyper, t, out->k)];
    out->k[LST__K_L2] = (float)hyper->weight_decay;
    out->k[LST__K_DECAY] = 1.0f;
}

const lst__rule lst__rule_adam = {
    .defaults = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    .fields = LST__FIELD_LR | LST__FIELD_BETA1 | LST__FIELD_BETA2 | LST__FIELD_EPS | LST__FIELD_WEIGHT_DECAY |
              LST__FIELD_AMSGRAD | LST__FIELD_MAXIMIZE,
    .slots = lst__adam_slots,
    .prepare = prepare,
};
