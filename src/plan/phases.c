/* SPDX-License-Identifier: MIT
 *
 * Phases of a step: 0 load, 1 embed forward, 2..L+1 forward, L+2 loss, L+3..2L+2 backward (last layer first),
 * 2L+3 embed backward, 2L+4 step, 2L+5 save.
 */
#include <stdio.h>

#include "leanstep/plan.h"

int lst_phase_load(void)
{
    return 0;
}

int lst_phase_embed(void)
{
    return 1;
}

int lst_phase_forward(size_t layer)
{
    return 2 + (int)layer;
}

int lst_phase_loss(size_t n_layers)
{
    return 2 + (int)n_layers;
}

int lst_phase_backward(size_t n_layers, size_t layer)
{
    return 2 + (int)(2 * n_layers - layer);
}

int lst_phase_embed_backward(size_t n_layers)
{
    return 3 + 2 * (int)n_layers;
}

int lst_phase_step(size_t n_layers)
{
    return 4 + 2 * (int)n_layers;
}

int lst_phase_save(size_t n_layers)
{
    return 5 + 2 * (int)n_layers;
}

int lst_phase_count(size_t n_layers)
{
    return 6 + 2 * (int)n_layers;
}

void lst_phase_name(size_t n_layers, int phase, char *out, size_t n)
{
    if (phase == lst_phase_load())
        snprintf(out, n, "load");
    else if (phase == lst_phase_embed())
        snprintf(out, n, "embedding forward");
    else if (phase > lst_phase_embed() && phase < lst_phase_loss(n_layers))
        snprintf(out, n, "forward of layer %d", phase - lst_phase_forward(0));
    else if (phase == lst_phase_loss(n_layers))
        snprintf(out, n, "loss");
    else if (phase > lst_phase_loss(n_layers) && phase < lst_phase_embed_backward(n_layers))
        snprintf(out, n, "backward of layer %d", lst_phase_backward(n_layers, 0) - phase);
    else if (phase == lst_phase_embed_backward(n_layers))
        snprintf(out, n, "embedding backward");
    else if (phase == lst_phase_step(n_layers))
        snprintf(out, n, "step");
    else if (phase == lst_phase_save(n_layers))
        snprintf(out, n, "save");
    else
        snprintf(out, n, "phase %d", phase);
}
