/* SPDX-License-Identifier: MIT
 *
 * ZeRO and FSDP: what one rank holds of weights, gradients and state, and the layers it gathers while it computes.
 */
#include "plan/torch.h"

/* bytes of all elements -> bytes of the fullest rank's share */
static uint64_t share(const lst__torch *c, uint64_t bytes)
{
    const lst_sharding sharding = c->run->zero == 3 ? LST_SHARD_ROWS : LST_SHARD_FLAT;
    const double part =
        (double)lst_shard_elems(&c->run->shape, c->run->ranks, sharding) / (double)lst_shape_params(&c->run->shape);
    return (uint64_t)((double)bytes * part + 0.5);
}

static uint64_t plain_layer_bytes(const lst__torch *c)
{
    return c->compute * (lst__torch_linear_elems(c) + lst__torch_bias_elems(c) + 2 * c->h);
}

/* Two layers, the one at work and the next; embedding, head and final norm, which stay whole from forward on; and one
 * layer's gradient before it is reduced. */
static uint64_t gathered(const lst__torch *c, uint64_t weights)
{
    const uint64_t root = c->compute * ((c->run->shape.tied ? 1 : 2) * c->V * c->h + c->h);
    const uint64_t all = lst_shape_params(&c->run->shape);
    const uint64_t layer = c->run->base == LST_TORCH_BASE_PLAIN
                               ? plain_layer_bytes(c)
                               : (uint64_t)((double)weights * (double)lst__torch_linear_elems(c) / (double)all);
    return 2 * layer + root + (c->lora ? 0 : plain_layer_bytes(c));
}

void lst__torch_shard(const lst__torch *c, lst__torch_sums *s, lst__state_bytes *state, uint64_t *weights)
{
    const lst_torch_run *run = c->run;
    if (run->float32_shards) { /* float32 shards of what is computed in bfloat16 */
        *weights *= 2;
        s->grads *= 2;
        s->layer_grads *= 2;
    }
    if (run->ranks < 2 || run->zero == 0)
        return;
    state->state = share(c, state->state);
    state->temporary = share(c, state->temporary);
    state->first = share(c, state->first);
    if (run->zero >= 2) {
        s->grads = share(c, s->grads);
        s->layer_grads = share(c, s->layer_grads);
    }
    if (run->zero >= 3) {
        s->gathered = gathered(c, *weights);
        *weights = share(c, *weights);
    }
}
