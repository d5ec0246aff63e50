/* SPDX-License-Identifier: MIT
 *
 * The sums of a step: what lives at its marks, and the highest between them.
 */
#include "plan/torch.h"

uint64_t lst__torch_label_bytes(const lst__torch *c)
{
    return c->B == 1 ? 8 * (c->T + 1) : 8 * c->t; /* one row's shifted labels stay a view of the padded ones */
}

uint64_t lst__torch_held_output(const lst__torch *c)
{
    if (!c->run->hold_output)
        return 0;
    return c->compute * c->t * c->V + (c->run->accumulation > 1 ? 4 : 0); /* logits, and the loss before its division */
}

uint64_t lst__torch_layers_kept(const lst__torch *c, const lst__torch_sums *s)
{
    if (c->run->checkpoint)
        return c->run->offload_checkpoints ? 0 : c->L * s->checkpoint;
    return (c->L - 1) * s->layer + s->first_layer;
}

static uint64_t before_loss(const lst__torch *c, const lst__torch_sums *s)
{
    return s->start + s->held + s->gathered + lst__torch_layers_kept(c, s) + s->outside;
}

uint64_t lst__torch_after_loss(const lst__torch *c, const lst__torch_sums *s)
{
    return before_loss(c, s) + s->loss;
}

/* What dies with the model's forward or with autocast, but lives when the loss is entered. */
static uint64_t forward_only(const lst__torch *c)
{
    if (c->autocast) { /* the final norm's float32 output; autocast's cache, which backward no longer needs in full */
        const uint64_t weights = c->run->checkpoint ? lst__torch_linear_elems(c) : 0;
        return 4 * c->t * c->h + (c->lora ? 0 : 2 * c->L * (weights + lst__torch_bias_elems(c)));
    }
    return c->lora ? c->stream * c->t * c->h : 0; /* the output of the final norm, which a frozen head does not keep */
}

static uint64_t logits(const lst__torch *c)
{
    return c->run->loss == LST_TORCH_LOSS_FUSED ? 0 : c->compute * c->t * c->V;
}

static uint64_t loss_temporaries(const lst__torch *c)
{
    const uint64_t tV = c->t * c->V, shifted = c->B == 1 ? 8 * (c->T + 1) : 8 * c->B * (2 * c->T + 1);
    switch (c->run->loss) {
    case LST_TORCH_LOSS_UPCAST:
        return (c->compute == 4 ? 4 : 8) * tV + shifted + 8;
    case LST_TORCH_LOSS_PLAIN:
        return c->compute * tV;
    case LST_TORCH_LOSS_CHUNKED:
        return 8 * tV / c->run->loss_chunks;
    default:
        return 0;
    }
}

static void find_peak(lst_torch_step *s)
{
    const struct {
        uint64_t bytes;
        const char *phase;
    } at[] = {{s->after_fwd, "forward"}, {s->loss_peak, "loss"}, {s->bwd_peak, "backward"}, {s->opt_peak, "optimizer"}};
    s->peak = 0;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        if (at[i].bytes > s->peak) {
            s->peak = at[i].bytes;
            s->peak_phase = at[i].phase;
        }
    }
}

void lst__torch_phases(const lst__torch *c, const lst__torch_sums *s, uint64_t optimizer_peak, uint64_t new_state,
                       lst_torch_step *out)
{
    const uint64_t grads = c->run->release_grads ? 0 : s->grads;
    out->start = s->start;
    out->after_fwd = before_loss(c, s) + forward_only(c) + logits(c);
    out->loss_peak = out->after_fwd + loss_temporaries(c);
    out->after_loss = lst__torch_after_loss(c, s);
    out->bwd_peak = lst__torch_backward_peak(c, s, &out->bwd_peak_at);
    out->after_bwd = s->start + grads;
    out->opt_peak = out->after_bwd + optimizer_peak;
    out->after_opt = out->after_bwd + new_state;
    out->end = out->after_opt - (c->run->keep_grads ? 0 : grads);
    find_peak(out);
}
