/* SPDX-License-Identifier: MIT
 *
 * Sharding over ranks: ZeRO's flat buffers, FSDP2's rows. And llm.c's arenas, as that program prints them.
 */
#include "base/fail.h"
#include "leanstep/estimate.h"

typedef struct counter {
    uint64_t ranks;
    uint64_t sum;
} counter;

static void add_rows(void *user, const lst_shape_tensor *tensor)
{
    counter *c = user;
    const uint64_t rows = (tensor->rows + c->ranks - 1) / c->ranks;
    c->sum += rows * (tensor->cols ? tensor->cols : 1);
}

uint64_t lst_shard_elems(const lst_shape *shape, size_t ranks, lst_sharding sharding)
{
    const uint64_t n = ranks ? ranks : 1;
    if (sharding == LST_SHARD_FLAT)
        return (lst_shape_params(shape) + n - 1) / n;
    counter c = {.ranks = n};
    lst_shape_each(shape, add_rows, &c);
    return c.sum;
}

lst_status lst_zero_bytes(const lst_shape *shape, size_t ranks, unsigned stage, lst_sharding sharding,
                          const lst_zero_sizes *sizes, uint64_t *out, lst_error *err)
{
    if (stage > 3)
        return lst__fail(err, LST_ERR_ARGUMENT, "ZeRO stage %u; there are 0, 1, 2 and 3", stage);
    if (ranks < 1 || ranks > ((size_t)1 << 20))
        return lst__fail(err, LST_ERR_ARGUMENT, "%zu ranks; 1 to 1048576 can be planned", ranks);
    const uint64_t whole = lst_shape_params(shape), shard = lst_shard_elems(shape, ranks, sharding);
    *out = sizes->weight * (stage >= 3 ? shard : whole) + sizes->gradient * (stage >= 2 ? shard : whole) +
           sizes->state * (stage >= 1 ? shard : whole);
    return LST_OK;
}

uint64_t lst_llmc_arena_bytes(const lst_shape *shape, size_t padded_vocab, size_t batch, size_t seq, unsigned recompute,
                              bool cudnn)
{
    const uint64_t t = (uint64_t)batch * seq, h = shape->hidden, a = shape->heads, L = shape->layers;
    const uint64_t ht = h * t;
    const uint64_t norms = recompute < 2 ? 4 * ht : 0; /* bf16 outputs of both norms */
    const uint64_t statistics = 16 * t;                /* mean and rstd of both, float32 */
    const uint64_t attention =
        6 * ht + 2 * ht + (cudnn ? 4 * a * t : 2 * a * t * seq); /* qkv, output, its statistics */
    const uint64_t residuals = 4 * ht;
    const uint64_t mlp = 8 * ht + (recompute < 1 ? 8 * ht : 0); /* fc, and GELU unless it is computed again */
    uint64_t widest = 3 * h;
    if (a * seq > widest)
        widest = a * seq;
    if (padded_vocab > widest)
        widest = padded_vocab;
    const uint64_t once = 2 * ht + 2 * ht + 8 * t + 4 * t + 2 * t * widest + 10 * ht + (recompute >= 1 ? 8 * ht : 0) +
                          (recompute >= 2 ? 2 * ht : 0);
    return L * (norms + statistics + attention + residuals + mlp) + once;
}
