/* SPDX-License-Identifier: MIT
 *
 * What would make a PyTorch run smaller: each lever pulled alone, the peak counted again (the phase may switch), and
 * the largest batch and the longest sequence that fit.
 */
#include <stdlib.h>

#include "cli/plan_torch.h"

uint64_t cli_torch_need(const lst_torch_run *run, const lst_estimate *e)
{
    return run->gpu ? e->device_bytes : e->steady.peak;
}

static uint64_t price_run(const lst_torch_run *run)
{
    lst_estimate *e = NULL;
    lst_error err;
    if (lst_torch_estimate(&e, run, &err) != LST_OK)
        return UINT64_MAX;
    const uint64_t need = cli_torch_need(run, e);
    lst_estimate_destroy(e);
    return need;
}

static void pull(const lst_torch_run *changed, uint64_t need, cli_torch_lever lever, cli_torch_lever *out, size_t *n)
{
    lever.need = price_run(changed);
    if (lever.need < need - need / 1000 && *n < CLI_TORCH_MAX_LEVERS) /* a thousandth is no lever */
        out[(*n)++] = lever;
}

static void pull_memory_levers(const lst_torch_run *run, uint64_t need, cli_torch_lever *out, size_t *n)
{
    lst_torch_run r = *run;
    r.loss = LST_TORCH_LOSS_FUSED;
    pull(&r, need, (cli_torch_lever){"fuse head and loss", "--loss fused", "nothing: another kernel", 0}, out, n);
    r = *run;
    r.checkpoint = true;
    pull(&r, need, (cli_torch_lever){"checkpoint the layers", "--checkpointing", "about a third more time", 0}, out, n);
    r = *run;
    r.form = LST_TORCH_FUSED;
    pull(&r, need, (cli_torch_lever){"a fused step", "--form fused", "nothing", 0}, out, n);
    r = *run;
    r.attention = LST_TORCH_SDPA;
    pull(&r, need, (cli_torch_lever){"sdpa attention", "--attention sdpa", "nothing", 0}, out, n);
    r = *run;
    r.compiled = true;
    pull(&r, need, (cli_torch_lever){"compile the layers", "--compile", "minutes at the start", 0}, out, n);
    r = *run;
    r.dtype = LST_TORCH_BFLOAT16;
    pull(&r, need,
         (cli_torch_lever){"bfloat16 weights and state", "--torch-dtype bfloat16", "small updates are lost", 0}, out,
         n);
    r = *run;
    r.optim = LST_TORCH_ADAMW8_BNB;
    pull(&r, need, (cli_torch_lever){"8-bit state", "--torch-optimizer adamw8bit-bnb", "coarser moments", 0}, out, n);
    r = *run;
    r.release_grads = true;
    pull(&r, need, (cli_torch_lever){"step inside backward", "--release", "no accumulation, no global clipping", 0},
         out, n);
}

static void pull_recipe_levers(const lst_torch_run *run, uint64_t need, cli_torch_lever *out, size_t *n)
{
    lst_torch_run r = *run;
    r.batch = run->batch / 2;
    r.accumulation = run->accumulation * 2;
    if (run->batch > 1)
        pull(&r, need,
             (cli_torch_lever){"half the micro-batch, accumulate twice", "--batch N/2",
                               "gradients live through backward", 0},
             out, n);
    r = *run;
    r.lora = LST_TARGET_ALL;
    r.lora_rank = 16;
    if (!run->lora)
        pull(&r, need, (cli_torch_lever){"adapters of rank 16", "--lora all", "the base does not learn", 0}, out, n);
    r.base = LST_TORCH_BASE_NF4_DQ;
    r.base_upcast = true;
    if (run->base == LST_TORCH_BASE_PLAIN)
        pull(&r, need,
             (cli_torch_lever){"adapters on a 4-bit base", "--lora all --base nf4-dq", "the base is rounded to 4 bits",
                               0},
             out, n);
    r = *run;
    r.ranks = 2 * run->ranks;
    r.zero = 3;
    pull(&r, need, (cli_torch_lever){"twice the ranks, sharded", "--ranks 2N --zero 3", "another GPU", 0}, out, n);
}

static int by_need(const void *a, const void *b)
{
    const uint64_t x = ((const cli_torch_lever *)a)->need, y = ((const cli_torch_lever *)b)->need;
    return (x > y) - (x < y);
}

size_t cli_torch_levers(const lst_torch_run *run, uint64_t need, cli_torch_lever out[CLI_TORCH_MAX_LEVERS])
{
    size_t n = 0;
    pull_memory_levers(run, need, out, &n);
    pull_recipe_levers(run, need, out, &n);
    qsort(out, n, sizeof *out, by_need);
    return n;
}

size_t cli_torch_largest(const lst_torch_run *run, uint64_t limit, bool sequence)
{
    lst_torch_run r = *run;
    size_t *const value = sequence ? &r.seq : &r.batch;
    size_t low = 0, high = (size_t)1 << 24; /* low fits (0: nothing does), high does not */
    while (high - low > 1) {
        *value = low + (high - low) / 2;
        if (price_run(&r) <= limit)
            low = *value;
        else
            high = *value;
    }
    return low;
}
