/* SPDX-License-Identifier: MIT
 *
 * leanstep measure: makes a real step with random weights, and shows what it took beside what was planned.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/model_arg.h"
#include "cli/print.h"
#include "cli/recipe_options.h"
#include "train/engine.h"
#include "train/linear.h"

static const cli_option options[] = {
    {"linear", CLI_STRING, "OUTxIN", NULL, "one linear layer instead of a model: 4096x4096"},
    {"gradients", CLI_FLAG, NULL, NULL, "nudge single weights, and hold backward's answer beside what the loss does"},
    {"seed", CLI_COUNT, "N", "1", "of the random weights and tokens"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static uint64_t state_bytes(const uint64_t bytes[LST_N_BUCKETS])
{
    uint64_t sum = 0;
    for (int b = 0; b < LST_N_BUCKETS; b++)
        sum += lst_bucket_is_state((lst_bucket)b) ? bytes[b] : 0;
    return sum;
}

static void bucket_table(const uint64_t planned[LST_N_BUCKETS], const lst_ledger *ledger, uint64_t planned_peak)
{
    char a[32], b[32];
    printf("  %-16s %16s %16s\n", "bytes", "planned", "measured");
    for (int i = 0; i < LST_N_BUCKETS; i++)
        if (planned[i] || ledger->peak[i])
            printf("  %-16s %16s %16s  %s\n", lst_bucket_name((lst_bucket)i),
                   cli_print_integer(a, sizeof a, planned[i]), cli_print_integer(b, sizeof b, ledger->peak[i]),
                   planned[i] == ledger->peak[i] ? "equal" : "DIFFERS");
    printf("  %-16s %16s %16s  %s\n", "peak", cli_print_integer(a, sizeof a, planned_peak),
           cli_print_integer(b, sizeof b, ledger->peak_total),
           planned_peak == ledger->peak_total ? "equal" : "DIFFERS");
}

static void state_table(uint64_t planned, uint64_t before, uint64_t after, uint64_t n_params)
{
    char a[32];
    const struct {
        const char *when;
        uint64_t bytes;
    } rows[] = {{"planned", planned}, {"before the first step", before}, {"after the first step", after}};
    printf("\n  optimizer state         %16s  bytes a parameter\n", "bytes");
    for (size_t i = 0; i < 3; i++)
        printf("  %-23s %16s  %.4g\n", rows[i].when, cli_print_integer(a, sizeof a, rows[i].bytes),
               (double)rows[i].bytes / (double)n_params);
    printf("  %s\n\n", planned == before && before == after ? "The step took no state that was not there before it."
                                                            : "THE THREE DIFFER.");
}

/* The operating system's view, and whether it is within what is promised: 2 % + 64 MiB of the arena. */
static lst_status system_table(uint64_t arena_bytes, lst_error *err)
{
    lst_memory_use use;
    char a[32], b[32], c[32];
    lst_status status = lst__memory_use(&use, err);
    if (status != LST_OK)
        return status;
    uint64_t outside = use.anon_peak_bytes > arena_bytes ? use.anon_peak_bytes - arena_bytes : 0;
    printf("  %-16s %16s  reserved once, aligned and packed\n", "arena", cli_print_integer(a, sizeof a, arena_bytes));
    printf("  %-16s %16s  anonymous memory as the system saw it\n", "system's peak",
           cli_print_integer(b, sizeof b, use.anon_peak_bytes));
    printf("  %-16s %16s  the program itself: libraries, stacks, tables\n", "outside the plan",
           cli_print_integer(c, sizeof c, outside));
    return LST_OK;
}

/* ---- one linear layer ---- */

static lst_status parse_shape(const char *text, size_t *out, size_t *in, lst_error *err)
{
    char *end;
    unsigned long long a = strtoull(text, &end, 10), b = 0;
    bool ok = *end == 'x' && a > 0;
    if (ok) {
        const char *rest = end + 1;
        b = strtoull(rest, &end, 10);
        ok = *rest >= '0' && *rest <= '9' && *end == '\0' && b > 0;
    }
    if (!ok || text[0] < '0' || text[0] > '9' || a > (1u << 24) || b > (1u << 24))
        return lst__fail(err, LST_ERR_ARGUMENT, "--linear %s: expected OUTxIN, as in 4096x4096, each from 1 to %u",
                         text, 1u << 24);
    *out = (size_t)a;
    *in = (size_t)b;
    return LST_OK;
}

static lst_status refuse_for_linear(const cli_args *args, const lst_recipe *recipe, lst_error *err)
{
    static const char *const names[] = {"activations", "batch", "seq",        "accumulation",
                                        "loss-chunk",  "clip",  "loss-scale", "grads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cli_given(args, names[i]))
            return lst__fail(err, LST_ERR_ARGUMENT,
                             "--%s has no effect with --linear: a single layer has one gradient, and %d rows of input",
                             names[i], TRAIN_LINEAR_ROWS);
    if (cli_given(args, "grad-dtype") && recipe->grads != LST_CODEC_F32)
        return lst__fail(err, LST_ERR_ARGUMENT, "--grad-dtype %s: --linear keeps its gradient in f32",
                         lst_codec_name(recipe->grads));
    return LST_OK;
}

static lst_status measure_linear(const cli_args *args, lst_error *err)
{
    static train_linear r;
    size_t out = 0, in = 0;
    lst_recipe recipe;
    lst_pool *pool = NULL;
    lst_status status = parse_shape(cli_text(args, "linear"), &out, &in, err);
    if (status == LST_OK)
        status = cli_recipe(args, NULL, &recipe, NULL, err);
    if (status == LST_OK)
        status = refuse_for_linear(args, &recipe, err);
    if (status == LST_OK)
        status = lst_pool_create(&pool, recipe.threads, err);
    if (status == LST_OK)
        status = train_linear_measure(&r, out, in, &recipe, pool, err);
    lst_pool_destroy(pool);
    if (status != LST_OK)
        return status;
    char n[32];
    printf("Linear layer %zu x %zu: %s parameters; %s, weights %s\n\n", out, in,
           cli_print_integer(n, sizeof n, r.n_params), lst_rule_name(recipe.rule),
           lst_weight_form_name(recipe.weights));
    bucket_table(r.planned, &r.ledger, r.planned_peak);
    state_table(r.planned_state, r.state_before, r.state_after, r.n_params);
    status = system_table(r.arena_bytes, err);
    printf("\n  loss before the step %.6f, after %.6f\n", r.loss_before, r.loss_after);
    return status;
}

/* ---- a model ---- */

static void fill_random(train_engine *engine, uint64_t seed)
{
    const lst_recipe *r = &engine->plan->recipe;
    for (size_t micro = 0; micro < r->accumulation; micro++) {
        int32_t *ids = model_ids(engine->model, micro), *targets = model_targets(engine->model, micro);
        for (size_t i = 0; i < r->batch * r->seq; i++) {
            uint64_t at = (uint64_t)micro * r->batch * r->seq + i;
            ids[i] = (int32_t)lst__random_below(seed, 1, at, engine->plan->arch.vocab);
            targets[i] = (int32_t)lst__random_below(seed, 1, at + 1, engine->plan->arch.vocab);
        }
    }
}

static lst_status measure_steps(train_engine *engine, lst_error *err)
{
    const lst_plan *plan = engine->plan;
    train_step step;
    const double lr = plan->recipe.hyper.lr;
    const size_t tokens = plan->recipe.batch * plan->recipe.seq * plan->recipe.accumulation;
    uint64_t before = state_bytes(engine->ledger.now), start = lst__clock_ns();
    lst_status status = train_engine_step(engine, lr, &step, err);
    double first = (double)(lst__clock_ns() - start) * 1e-9, loss = step.loss;
    uint64_t after = state_bytes(engine->ledger.now);
    start = lst__clock_ns();
    if (status == LST_OK)
        status = train_engine_step(engine, lr, &step, err);
    double second = (double)(lst__clock_ns() - start) * 1e-9;
    if (status != LST_OK)
        return status;
    model_enter(engine->model, lst_phase_save(plan->n_layers));
    bucket_table(plan->bucket_bytes, &engine->ledger, plan->peak_bytes);
    state_table(plan->optimizer_state_bytes, before, after, plan->n_params);
    status = system_table(plan->arena_bytes, err);
    printf("\n  first step  %.3f s, %.0f tokens/s, loss %.4f\n  second step %.3f s, %.0f tokens/s, loss %.4f\n", first,
           (double)tokens / first, loss, second, (double)tokens / second, step.loss);
    return status;
}

/* ---- gradients ---- */

#define MAX_NUDGES 24

/* The largest gradient of each of up to MAX_NUDGES tensors, spread over the model. */
static size_t choose_nudges(train_engine *engine, model_nudge *nudges)
{
    size_t n = engine->n_tensors < MAX_NUDGES ? engine->n_tensors : MAX_NUDGES;
    for (size_t i = 0; i < n; i++) {
        lst_arch_tensor t;
        size_t tensor = i * engine->n_tensors / n, element = 0;
        lst_arch_tensor_at(&engine->plan->arch, tensor, &t);
        const float *gradient = model_gradient(engine->model, tensor);
        for (size_t k = 1; k < t.n_elems; k++)
            if (fabsf(gradient[k]) > fabsf(gradient[element]))
                element = k;
        nudges[i] = (model_nudge){.tensor = tensor, .element = element};
    }
    return n;
}

static void print_nudges(const train_engine *engine, const model_nudge *nudges, size_t n)
{
    double worst = 0, largest = 0;
    printf(
        "One weight of each tensor nudged, the loss at both sides, the rate between them, and backward's answer:\n\n");
    printf("  %-48s %10s %12s %12s %13s %13s %9s\n", "weight", "nudge", "loss below", "loss above", "rate", "backward",
           "apart");
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(nudges[i].backward));
    for (size_t i = 0; i < n; i++) {
        const model_nudge *v = &nudges[i];
        char name[112];
        double apart = fabs(v->rate - v->backward) / fmax(fabs(v->backward), 1e-3 * largest);
        snprintf(name, sizeof name, "%s[%zu]", lst_optim_tensor(engine->optim, v->tensor)->name, v->element);
        printf("  %-48s %10.2g %12.8f %12.8f %13.6g %13.6g %7.4f %%\n", name, v->nudge, v->loss_down, v->loss_up,
               v->rate, v->backward, 100 * apart);
        worst = fmax(worst, apart);
    }
    printf(
        "\nLargest difference: %.3f %%. The forward pass is float32: its rounding is what is left of the difference.\n",
        100 * worst);
}

static lst_status measure_gradients(train_engine *engine, lst_error *err)
{
    model_nudge nudges[MAX_NUDGES];
    double loss;
    lst_status status = model_step(engine->model, 1, NULL, &loss, err);
    if (status != LST_OK)
        return status;
    size_t n = choose_nudges(engine, nudges);
    status = model_check_gradient(engine->model, nudges, n, err);
    if (status == LST_OK)
        print_nudges(engine, nudges, n);
    return status;
}

static lst_status check_gradient_recipe(const lst_recipe *r, lst_error *err)
{
    if (r->grad_mode != LST_GRAD_KEEP || r->grads != LST_CODEC_F32 || r->accumulation != 1)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "--gradients compares float32 gradients of one micro-batch: use --grads keep, --grad-dtype f32, "
            "--accumulation 1");
    return LST_OK;
}

static lst_status measure_model(const cli_args *args, lst_error *err)
{
    lst_arch arch;
    lst_recipe recipe;
    lst_plan *plan = NULL;
    lst_pool *pool = NULL;
    train_engine *engine = NULL;
    char n[32];
    const bool gradients = cli_flag(args, "gradients");
    lst_status status = cli_model_arch(args->positionals[0], &arch, err);
    if (status == LST_OK)
        status = cli_recipe(args, &arch, &recipe, NULL, err);
    if (status == LST_OK && gradients && !cli_given(args, "seq") && recipe.seq > 32)
        recipe.seq = 32; /* enough for every weight to matter, and many losses are computed */
    if (status == LST_OK && gradients)
        status = check_gradient_recipe(&recipe, err);
    if (status == LST_OK)
        status = lst_plan_create(&plan, &arch, &recipe, err);
    if (status == LST_OK)
        status = lst_pool_create(&pool, recipe.threads, err);
    if (status == LST_OK)
        status = train_engine_create(&engine, plan, pool, cli_count(args, "seed"), err);
    if (status == LST_OK)
        status = train_engine_init_random(engine, cli_count(args, "seed"), err);
    if (status == LST_OK) {
        printf("%s: %s parameters; %s, weights %s; %zu x %zu x %zu tokens\n\n", args->positionals[0],
               cli_print_integer(n, sizeof n, plan->n_params), lst_rule_name(recipe.rule),
               lst_weight_form_name(recipe.weights), recipe.accumulation, recipe.batch, recipe.seq);
        fill_random(engine, cli_count(args, "seed"));
        status = gradients ? measure_gradients(engine, err) : measure_steps(engine, err);
    }
    train_engine_destroy(engine);
    lst_pool_destroy(pool);
    lst_plan_destroy(plan);
    return status;
}

static int run(const cli_args *args)
{
    lst_error err;
    lst_status status;
    if (cli_given(args, "linear") == (args->n_positionals == 1))
        status = lst__fail(&err, LST_ERR_ARGUMENT, "give a MODEL, or --linear OUTxIN%s",
                           args->n_positionals ? ", not both" : "");
    else if (cli_given(args, "linear"))
        status = cli_not_both(args, "linear", "gradients", "the gradient check needs a MODEL", &err);
    else
        status = measure_model(args, &err);
    if (status == LST_OK && cli_given(args, "linear"))
        status = measure_linear(args, &err);
    return status == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_measure = {
    .name = "measure",
    .summary = "make a real step, and show what it took beside the plan",
    .positionals = "MODEL | --linear OUTxIN  [options]",
    .max_positionals = 1,
    .examples = "  leanstep measure demo --batch 4 --seq 256            planned bytes, measured bytes, a step's time\n"
                "  leanstep measure --linear 4096x4096                  8 bytes of AdamW state a parameter\n"
                "  leanstep measure demo --gradients                    backward against the loss itself\n",
    .text = "Weights and tokens are random: what is measured does not depend on them. Nothing is written.\n",
    .tables = {{"What to measure", options}, {"Recipe", cli_recipe_options}},
    .run = run,
};
