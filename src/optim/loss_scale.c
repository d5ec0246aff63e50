/* SPDX-License-Identifier: MIT
 *
 * Dynamic loss scaling, as torch.amp.GradScaler: after growth_interval clean steps in a row the scale grows, unless the
 * product is infinite; after a step with a non-finite gradient it backs off, and has no floor.
 */
#include "leanstep/optim.h"

#include <math.h>

void lst_loss_scale_default(lst_loss_scale *out)
{
    *out = (lst_loss_scale){
        .scale = 65536.0f, .growth_factor = 2.0, .backoff_factor = 0.5, .growth_interval = 2000, .growth_tracker = 0};
}

float lst_loss_scale_unscale(const lst_loss_scale *s)
{
    return (float)(1.0 / (double)s->scale);
}

void lst_loss_scale_update(lst_loss_scale *s, bool found_nonfinite)
{
    if (found_nonfinite) {
        s->scale = (float)((double)s->scale * s->backoff_factor);
        s->growth_tracker = 0;
        return;
    }
    if (++s->growth_tracker < s->growth_interval)
        return;
    const float grown = (float)((double)s->scale * s->growth_factor);
    if (isfinite(grown))
        s->scale = grown;
    s->growth_tracker = 0;
}
