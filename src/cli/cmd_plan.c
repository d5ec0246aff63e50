/* SPDX-License-Identifier: MIT
 *
 * leanstep plan: what a run takes, when its peak comes, whether it fits, and what to change if it does not.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "cli/args.h"
#include "cli/choose.h"
#include "cli/commands.h"
#include "cli/levers.h"
#include "cli/model_arg.h"
#include "cli/plan_print.h"
#include "cli/plan_table.h"
#include "cli/plan_torch.h"
#include "cli/print.h"
#include "cli/recipe_options.h"
#include "cli/torch_options.h"

static const cli_option model_options[] = {
    {"params", CLI_COUNT, "N", NULL, "plan N parameters of unknown shape: 7e9, 124M, 1.5B"},
    {"memory", CLI_SIZE, "SIZE", NULL, "the memory the run may take [what is available now, less 64 MiB + 2 %]"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static const cli_option output_options[] = {
    {"json", CLI_FLAG, NULL, NULL, "print the plan as JSON (docs/formats.md describes it)"},
    {"buffers", CLI_FLAG, NULL, NULL, "list every buffer: offset, bytes, codec, bucket, life"},
    {"table", CLI_CHOICE, "optimizers|ranks", NULL,
     "compare optimizers and precisions side by side; with --for torch also numbers of ranks"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

typedef struct request {
    const cli_args *args;
    const char *model; /* NULL: params */
    lst_arch arch;
    uint64_t n_params;
    lst_recipe recipe;
    cli_assumed assumed;
    cli_choice_made choice;
    uint64_t limit_bytes;
    char limit_from[120];
} request;

static const lst_arch *arch_of(const request *q)
{
    return q->model ? &q->arch : NULL;
}

static lst_status make_plan(const request *q, const lst_recipe *recipe, lst_plan **out, lst_error *err)
{
    return q->model ? lst_plan_create(out, &q->arch, recipe, err)
                    : lst_plan_create_params(out, q->n_params, recipe, err);
}

static lst_status read_limit(request *q, lst_error *err)
{
    lst_memory_limit found;
    if (cli_given(q->args, "memory")) {
        q->limit_bytes = cli_count(q->args, "memory");
        snprintf(q->limit_from, sizeof q->limit_from, "--memory");
        return LST_OK;
    }
    lst_status status = lst__memory_limit(&found, err);
    if (status != LST_OK)
        return status;
    /* The program itself, its libraries and what the system rounds up: the margin a measured run is held to. */
    uint64_t margin = ((uint64_t)64 << 20) + found.available_bytes / 50;
    q->limit_bytes = found.available_bytes > margin ? found.available_bytes - margin : 0;
    snprintf(q->limit_from, sizeof q->limit_from, "available now (%s), less 64 MiB + 2 %% for the program itself",
             found.limited_by);
    return LST_OK;
}

static lst_status refuse_shape_options(const cli_args *args, lst_error *err)
{
    static const char *const names[] = {"activations", "batch", "seq", "accumulation", "loss-chunk", "threads"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (cli_given(args, names[i]))
            return lst__fail(
                err, LST_ERR_ARGUMENT,
                "--%s has no effect with --params: activations need the model's shape. Give a MODEL instead", names[i]);
    return LST_OK;
}

static lst_status refuse_shape_rules(const request *q, lst_error *err)
{
    if (q->model || cli_plan_counts_suffice(q->recipe.rule))
        return LST_OK;
    return lst__fail(
        err, LST_ERR_ARGUMENT,
        "--optimizer %s with --params: its state depends on the shapes of the tensors. Give a MODEL instead",
        lst_rule_name(q->recipe.rule));
}

static lst_status read_request(const cli_args *args, request *q, lst_error *err)
{
    memset(q, 0, sizeof *q);
    q->args = args;
    q->model = args->n_positionals ? args->positionals[0] : NULL;
    if (!q->model == !cli_given(args, "params"))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         q->model ? "MODEL and --params are given; give one" : "give a MODEL, or --params N");
    lst_status status = q->model ? cli_model_arch(q->model, &q->arch, err) : refuse_shape_options(args, err);
    if (status != LST_OK)
        return status;
    q->n_params = q->model ? lst_arch_params(&q->arch) : cli_count(args, "params");
    status = cli_recipe(args, arch_of(q), &q->recipe, &q->assumed, err);
    if (status == LST_OK)
        status = refuse_shape_rules(q, err);
    if (status == LST_OK && cli_given(args, "json") && (cli_given(args, "buffers") || cli_given(args, "table")))
        status = lst__fail(err, LST_ERR_ARGUMENT,
                           "--json with --buffers or --table: only the plan itself is written as JSON; give one");
    if (status == LST_OK && cli_given(args, "table") && cli_choice(args, "table") == 1)
        status =
            lst__fail(err, LST_ERR_ARGUMENT, "--table ranks has no effect without --for torch: leanstep runs on one");
    if (status == LST_OK && q->model && !cli_given(args, "table"))
        status = cli_choose(args, &q->arch, &q->recipe, &q->assumed, &q->choice, err);
    return status == LST_OK ? read_limit(q, err) : status;
}

/* ---- the verdict ---- */

static void print_command(const request *q, const lst_recipe *recipe)
{
    char line[600];
    cli_recipe_line(recipe, arch_of(q), line, sizeof line);
    printf("  leanstep plan ");
    if (q->model)
        printf("%s", q->model);
    else
        printf("--params %" PRIu64, q->n_params);
    printf("%s", line);
    if (cli_given(q->args, "memory"))
        printf(" --memory %s", cli_text(q->args, "memory"));
    printf("\n");
}

static lst_status print_verdict(const request *q, const lst_plan *plan, lst_error *err)
{
    char limit[100], rest[100];
    bool fits = plan->arena_bytes <= q->limit_bytes;
    uint64_t difference = fits ? q->limit_bytes - plan->arena_bytes : plan->arena_bytes - q->limit_bytes;
    printf("\n%s %s: %s; %s %s.\n", fits ? "Fits in" : "Does not fit in",
           cli_print_bytes(limit, sizeof limit, q->limit_bytes), q->limit_from,
           cli_print_bytes(rest, sizeof rest, difference), fits ? "to spare" : "too much");
    if (fits)
        return LST_OK;
    lst_status status = cli_print_levers(stdout, plan, err);
    if (status != LST_OK)
        return status;
    lst_recipe fitting;
    lst_error why;
    if (lst_plan_fit(plan, q->limit_bytes, &fitting, &why) == LST_OK)
        printf("\nThis fits:\n");
    else
        printf("\nNo: %s. The smallest:\n", why.message);
    print_command(q, &fitting);
    return LST_OK;
}

static lst_status print_json(const request *q, const lst_plan *plan, lst_error *err)
{
    json_t *object = cli_plan_json(plan, q->model, &q->assumed, q->limit_bytes, q->limit_from);
    int failed = object ? json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;
    json_decref(object);
    printf("\n");
    return failed ? lst__fail(err, LST_ERR_IO, "the plan could not be written as JSON") : LST_OK;
}

static lst_status print_all(const request *q, const lst_plan *plan, lst_error *err)
{
    bool choose = !q->model && !cli_given(q->args, "optimizer") && !cli_given(q->args, "precision") &&
                  !cli_given(q->args, "weights") && !cli_given(q->args, "state");
    lst_status status = LST_OK;
    if (cli_given(q->args, "table") || choose)
        status = cli_plan_table(arch_of(q), q->n_params, &q->recipe, err);
    if (status != LST_OK)
        return status;
    if (q->model)
        printf("%s: ", q->model);
    cli_print_plan(stdout, plan);
    if (cli_flag(q->args, "buffers"))
        cli_print_buffers(stdout, plan);
    printf("\n");
    if (!q->model)
        printf("Activations, loss and workspace need the model's shape: give a config.json or a name instead of "
               "--params.\n");
    cli_print_assumed(stdout, &q->assumed);
    cli_print_choice(stdout, q->args, arch_of(q), &q->choice);
    return print_verdict(q, plan, err);
}

static int run(const cli_args *args)
{
    static request q;
    lst_plan *plan = NULL;
    lst_error err;
    bool torch = false;
    lst_status status = cli_torch_mode(args, &torch, &err);
    if (status == LST_OK && torch)
        return cli_plan_torch(args);
    if (status == LST_OK)
        status = read_request(args, &q, &err);
    if (status == LST_OK)
        status = make_plan(&q, &q.recipe, &plan, &err);
    if (status == LST_OK)
        status = cli_flag(args, "json") ? print_json(&q, plan, &err) : print_all(&q, plan, &err);
    int result = status != LST_OK ? cli_fail(args, &err) : plan->arena_bytes <= q.limit_bytes ? CLI_OK : CLI_FAILED;
    lst_plan_destroy(plan);
    return result;
}

const cli_command cli_command_plan = {
    .name = "plan",
    .summary = "what a training run takes, byte for byte, and whether it fits",
    .positionals = "MODEL | --params N  [options]",
    .max_positionals = 1,
    .examples = "  leanstep plan --params 7e9                          every optimizer and precision\n"
                "  leanstep plan --params 7e9 --precision bf16 --optimizer adamw\n"
                "  leanstep plan gpt2 --memory 1GiB                    how GPT-2 trains in 1 GiB\n"
                "  leanstep plan ./my-model --batch 4 --seq 1024 --json\n"
                "  leanstep plan Qwen2.5-1.5B --for torch --lora all --base nf4-dq --seq 2048 --card rtx-4090\n",
    .text =
        "MODEL is a config.json, a folder that holds one, or one of: demo, gpt2, smollm2-135m, qwen2.5-0.5b,\n"
        "qwen2.5-1.5b, llama-3.2-1b. The run `leanstep train` starts takes exactly the bytes planned here.\n"
        "With --memory a recipe that fits is chosen where the defaults do not: numbers first, then speed.\n"
        "--for torch estimates a PyTorch run instead: MODEL is also a .safetensors or .gguf file (only headers are\n"
        "read) or one of 45 public models by name (Llama-3.1-8B, gemma-2-2b, ...).\n",
    .tables = {{"Model and memory", model_options},
               {"Recipe", cli_recipe_options},
               {"PyTorch", cli_torch_options},
               {"Output", output_options}},
    .run = run,
};
