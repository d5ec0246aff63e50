/* SPDX-License-Identifier: MIT
 *
 * bench_training [threads [steps [chunk]]]: whole training steps of GPT-2 124M's shape (random weights), batch 1 x 512
 * tokens, AdamW in float32, beside the rate of a plain matrix product in the same run. Prints one line a recipe:
 * tokens/s, the share of the product's rate that the whole step reaches, and where the time went. bench/training.md has
 * results and what they mean.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/random.h"
#include "leanstep/optim.h"
#include "leanstep/plan.h"
#include "model/matmul.h"
#include "model/model.h"
#include "model/work.h"
#include "plan/activations.h"

typedef struct run {
    lst_plan *plan;
    lst_arena arena;
    lst_ledger ledger;
    lst_pool *pool;
    model *m;
    lst_optim *optim;
    uint64_t loss_at, optim_ns; /* when the loss was done; time in the optimizer */
} run;

static void stop_on(lst_status status, const lst_error *err)
{
    if (status == LST_OK)
        return;
    fprintf(stderr, "bench_training: %s\n", err->message);
    exit(1);
}

static lst_arch gpt2_124m(void)
{
    lst_arch a;
    lst_arch_default(LST_FAMILY_GPT2, &a);
    return a;
}

static lst_optim_options options_of(const lst_recipe *r, lst_pool *pool, const lst_hyper groups[2])
{
    return (lst_optim_options){.struct_size = sizeof(lst_optim_options),
                               .rule = r->rule,
                               .weights = r->weights,
                               .grads = r->grad_mode == LST_GRAD_RELEASE ? LST_CODEC_F32 : r->grads,
                               .state = r->state,
                               .n_groups = 2,
                               .groups = groups,
                               .pool = pool};
}

static void bind_optimizer(run *r)
{
    const lst_plan *plan = r->plan;
    size_t n = lst_arch_tensor_count(&plan->arch);
    lst_arch_tensor *t = calloc(n, sizeof *t);
    lst_tensor *described = calloc(n, sizeof *described);
    lst_hyper groups[2] = {plan->recipe.hyper, plan->recipe.hyper};
    lst_error err;
    groups[1].weight_decay = 0.0;
    for (size_t i = 0; i < n; i++) {
        lst_arch_tensor_at(&plan->arch, i, &t[i]);
        described[i] = (lst_tensor){.name = t[i].name,
                                    .n_dims = t[i].n_dims,
                                    .dims = {t[i].dims[0], t[i].dims[1]},
                                    .group = lst_arch_tensor_decays(&t[i]) ? 0 : 1};
    }
    lst_optim_options options = options_of(&plan->recipe, r->pool, groups);
    stop_on(lst_optim_create(&r->optim, &options, described, n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        for (size_t s = 0; s < lst_optim_slot_count(r->optim, i); s++) {
            const lst_buffer *b = lst_plan_find(plan, LST_BUFFER_SLOT, (int)s, i);
            stop_on(lst_optim_bind_slot(r->optim, i, s, r->arena.base + b->offset, &err), &err);
        }
        stop_on(lst_optim_bind_weights(r->optim, i, model_weight(r->m, i), &err), &err);
    }
    stop_on(lst_optim_reset(r->optim, &err), &err);
    free(t);
    free(described);
}

static void open_run(run *r, const lst_recipe *recipe)
{
    lst_arch arch = gpt2_124m();
    lst_error err;
    *r = (run){0};
    lst_ledger_init(&r->ledger);
    stop_on(lst_plan_create(&r->plan, &arch, recipe, &err), &err);
    stop_on(lst_pool_create(&r->pool, recipe->threads, &err), &err);
    stop_on(lst__arena_reserve(&r->arena, (size_t)r->plan->arena_bytes, r->pool, &err), &err);
    stop_on(model_create(&r->m, r->plan, r->arena.base, &r->ledger, r->pool, &err), &err);
    model_init_random(r->m, 1);
    bind_optimizer(r);
    for (size_t i = 0; i < recipe->batch * recipe->seq; i++)
        for (size_t micro = 0; micro < recipe->accumulation; micro++) {
            model_ids(r->m, micro)[i] = (int32_t)lst__random_below(1, micro, i, arch.vocab);
            model_targets(r->m, micro)[i] = (int32_t)lst__random_below(1, micro, i + 1, arch.vocab);
        }
}

static void close_run(run *r)
{
    lst_optim_destroy(r->optim);
    model_destroy(r->m);
    lst__arena_release(&r->arena);
    lst_pool_destroy(r->pool);
    lst_plan_destroy(r->plan);
}

static lst_status on_loss(void *user, double loss, lst_error *err)
{
    (void)loss;
    (void)err;
    ((run *)user)->loss_at = lst__clock_ns();
    return LST_OK;
}

static lst_status on_gradient(void *user, size_t tensor, const void *grad, lst_codec codec, lst_error *err)
{
    run *r = user;
    (void)codec;
    if (r->plan->recipe.grad_mode == LST_GRAD_KEEP)
        return LST_OK;
    uint64_t begin = lst__clock_ns();
    lst_status status = lst_optim_step_tensor(r->optim, tensor, grad, (lst_grad_scale){1.0f, 1.0f}, err);
    r->optim_ns += lst__clock_ns() - begin;
    return status;
}

static void step_kept(run *r)
{
    lst_error err;
    uint64_t begin = lst__clock_ns();
    for (size_t t = 0; t < lst_optim_tensor_count(r->optim); t++)
        stop_on(lst_optim_step_tensor(r->optim, t, model_gradient(r->m, t), (lst_grad_scale){1.0f, 1.0f}, &err), &err);
    r->optim_ns += lst__clock_ns() - begin;
}

/* GFLOP/s of y[512, 3072] = x[512, 2048] W^T with this pool, best of 7. */
static double product_rate(lst_pool *pool)
{
    size_t rows = 512, out = 3072, in = 2048;
    float *x = calloc(rows * in, 4), *w = calloc(out * in, 4), *y = calloc(rows * out, 4);
    for (size_t i = 0; i < out * in; i++)
        w[i] = (float)(i % 13) * 0.1f;
    for (size_t i = 0; i < rows * in; i++)
        x[i] = (float)(i % 7) * 0.1f;
    model_work work = {.pool = pool, .loops = model_loops_get()};
    model_linear linear = {.weight = w, .codec = LST_CODEC_F32, .in = in, .out = out};
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 7; i++) {
        uint64_t begin = lst__clock_ns();
        model_linear_forward(&work, &linear, (model_rows){y, out}, (model_rows){x, in}, rows, (model_rows){NULL, 0});
        uint64_t ns = lst__clock_ns() - begin;
        best = ns < best ? ns : best;
    }
    free(x);
    free(w);
    free(y);
    return 2.0 * (double)(rows * in * out) / (double)best;
}

/* Floating-point operations of a step's matrix products: 6 a weight and token (8 where forward runs again), and causal
 * attention, 7 products of T x T x D a head, half of it masked. */
static double flops_of(const lst_plan *p)
{
    const lst_arch *a = &p->arch;
    double tokens = (double)(p->recipe.batch * p->recipe.seq * p->recipe.accumulation);
    double in_layers = (double)a->layers * (double)(4 * a->hidden * a->hidden + 2 * a->hidden * a->ffn);
    double head = (double)(a->vocab * a->hidden), again = p->recipe.activations == LST_ACT_INPUTS ? 2.0 : 0.0;
    double attention = 7.0 * (double)(a->layers * a->heads * a->head_dim * p->recipe.seq);
    return tokens * ((6.0 + again) * in_layers + 6.0 * head + attention);
}

static void bench(const char *name, const lst_recipe *recipe, size_t n_steps)
{
    run r;
    open_run(&r, recipe);
    double best = 1e30, rate = product_rate(r.pool), loss = 0.0, parts[3] = {0};
    size_t tokens = recipe->batch * recipe->seq * recipe->accumulation;
    model_hooks hooks = {.user = &r, .on_loss = on_loss, .on_gradient = on_gradient};
    for (size_t i = 0; i < n_steps; i++) {
        lst_error err;
        uint64_t begin = lst__clock_ns();
        r.optim_ns = 0;
        stop_on(lst_optim_begin(r.optim, &err), &err);
        stop_on(model_step(r.m, 1.0f, &hooks, &loss, &err), &err);
        if (recipe->grad_mode == LST_GRAD_KEEP)
            step_kept(&r);
        double seconds = (double)(lst__clock_ns() - begin) * 1e-9;
        if (seconds < best) {
            best = seconds;
            parts[0] = (double)(r.loss_at - begin) * 1e-9;
            parts[2] = (double)r.optim_ns * 1e-9;
            parts[1] = best - parts[0] - parts[2];
        }
    }
    double again = product_rate(r.pool), flops = flops_of(r.plan) / best * 1e-9;
    rate = again > rate ? again : rate;
    printf(
        "%-28s %6.1f tokens/s  %.3f s = forward+loss %.3f + backward %.3f + AdamW %.3f  %5.1f of %5.1f GFLOP/s = %.2f  "
        "arena %.3f GiB  loss %.4f\n",
        name, (double)tokens / best, best, parts[0], parts[1], parts[2], flops, rate, flops / rate,
        (double)r.plan->arena_bytes / (1 << 30), loss);
    fflush(stdout);
    close_run(&r);
}

int main(int argc, char **argv)
{
    size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 2, steps = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
    lst_recipe r;
    lst_recipe_default(&r);
    r.batch = 1;
    r.seq = 512;
    r.threads = threads;
    r.clip_norm = 0.0;
    if (argc > 3) { /* the first recipe alone, for a profile */
        r.loss_chunk = strtoul(argv[3], NULL, 10);
        bench("keep all", &r, steps);
        return 0;
    }
    bench("keep all", &r, steps);
    r.loss_chunk = 512;
    bench("keep all, chunk 512", &r, steps);
    r.loss_chunk = 128;
    r.grad_mode = LST_GRAD_RELEASE;
    r.activations = LST_ACT_INPUTS;
    bench("release, inputs only", &r, steps);
    r.weights = LST_WEIGHT_SPLIT32;
    r.activations = LST_ACT_POINTWISE;
    bench("release, pointwise, split32", &r, steps);
    return 0;
}
