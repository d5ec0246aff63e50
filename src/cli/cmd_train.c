/* SPDX-License-Identifier: MIT
 *
 * leanstep train: plans a run, says what it takes, and makes it.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/memory.h"
#include "cli/args.h"
#include "cli/choose.h"
#include "cli/commands.h"
#include "cli/data_options.h"
#include "cli/levers.h"
#include "cli/model_arg.h"
#include "cli/plan_print.h"
#include "cli/print.h"
#include "cli/recipe_options.h"
#include "cli/run_options.h"
#include "leanstep/ckpt.h"
#include "plan/gguf_arch.h"

/* The next runs/MODEL-N that is free. */
static void choose_folder(const char *name, char *out, size_t n)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash && slash[1] ? slash + 1 : name;
    size_t length = strcspn(base, ".");
    for (int i = 1;; i++) {
        snprintf(out, n, "runs/%.*s-%d", length ? (int)length : 3, length ? base : "run", i);
        if (!lst__is_dir(out) && !lst__is_file(out))
            return;
    }
}

static bool has_weights(const char *dir)
{
    static const char *const names[] = {LST_CKPT_WEIGHTS, "model.safetensors.index.json"};
    bool found = false;
    for (size_t i = 0; i < 2 && !found; i++) {
        char *path = lst__path_join(dir, names[i]);
        found = path && lst__is_file(path);
        lst__free(path);
    }
    return found;
}

static lst_status choose_start(const cli_args *args, train_settings *s, lst_error *err)
{
    cli_data_choice choice;
    if (lst__is_gguf(s->model))
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s: training from a GGUF file's weights is not implemented; make a folder of it with "
                         "`leanstep export FILE --out DIR` and train on that",
                         s->model);
    s->from_weights = lst__is_dir(s->model) && has_weights(s->model);
    lst_status status = cli_data_choose(args, s->model, &s->arch, s->from_weights, &choice, err);
    if (status != LST_OK)
        return status;
    strcpy(s->tokenizer, choice.tokenizer);
    strcpy(s->chat, choice.chat);
    s->pack = choice.pack;
    s->loss_all = choice.loss_all;
    return LST_OK;
}

static lst_status read_settings(const cli_args *args, train_settings *s, cli_assumed *assumed, cli_choice_made *choice,
                                lst_error *err)
{
    train_settings_default(s);
    lst_status status = cli_model_arch(args->positionals[0], &s->arch, err);
    if (status == LST_OK && (lst__is_dir(args->positionals[0]) || lst__is_file(args->positionals[0])))
        status = cli_absolute(args->positionals[0], s->model, sizeof s->model, err);
    else if (status == LST_OK)
        snprintf(s->model, sizeof s->model, "%s", args->positionals[0]);
    if (status == LST_OK)
        status = choose_start(args, s, err);
    if (status == LST_OK)
        status = cli_recipe(args, &s->arch, &s->recipe, assumed, err);
    if (status == LST_OK)
        status = cli_choose(args, &s->arch, &s->recipe, assumed, choice, err);
    if (status == LST_OK)
        status = cli_run_settings(args, s, err);
    return status == LST_OK ? train_settings_check(s, err) : status;
}

/* The command line with the recipe that fits; everything but the recipe stays as it was typed. */
static void print_fitting(const cli_args *args, const lst_plan *plan, uint64_t limit)
{
    lst_recipe recipe;
    lst_error why;
    char line[600];
    if (lst_plan_fit(plan, limit, &recipe, &why) != LST_OK) {
        fprintf(stderr, "\nNo: %s\n", why.message);
        return;
    }
    cli_recipe_line(&recipe, &plan->arch, line, sizeof line);
    fprintf(stderr, "\nThis fits:\n  leanstep train %s --data %s%s", args->positionals[0], cli_text(args, "data"),
            line);
    static const char *const kept[] = {"memory", "steps", "epochs", "out", "tokenizer", "chat"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (cli_given(args, kept[i]))
            fprintf(stderr, " --%s %s", kept[i], cli_text(args, kept[i]));
    fprintf(stderr, "\n");
}

/* Says what would help, where the plan is beyond the limit. */
static lst_status check_fit(const cli_args *args, const lst_plan *plan, lst_error *err)
{
    lst_memory_limit found;
    uint64_t limit;
    char need[100], allowed[100];
    lst_status status = lst__memory_limit(&found, err);
    if (status != LST_OK)
        return status;
    limit = cli_given(args, "memory") ? cli_count(args, "memory") : found.available_bytes;
    if (plan->arena_bytes <= limit)
        return LST_OK;
    status = cli_print_levers(stderr, plan, err);
    if (status != LST_OK)
        return status;
    print_fitting(args, plan, limit);
    return lst__fail(
        err, LST_ERR_MEMORY,
        "the run needs %s, and %s allows %s. Options that were given are never changed: choose from the above",
        cli_print_bytes(need, sizeof need, plan->arena_bytes),
        cli_given(args, "memory") ? "--memory" : found.limited_by, cli_print_bytes(allowed, sizeof allowed, limit));
}

static lst_status show_plan(const cli_args *args, const train_settings *s, const cli_assumed *assumed,
                            const cli_choice_made *choice, lst_error *err)
{
    lst_plan *plan;
    lst_status status = lst_plan_create(&plan, &s->arch, &s->recipe, err);
    if (status != LST_OK)
        return status;
    if (cli_choice(args, "progress") != CLI_PROGRESS_JSON) {
        printf("%s: ", args->positionals[0]);
        cli_print_plan(stdout, plan);
        printf("\n");
        cli_print_assumed(stdout, assumed);
        cli_print_choice(stdout, args, &s->arch, choice);
        printf("\n");
    }
    fflush(stdout);
    status = check_fit(args, plan, err);
    lst_plan_destroy(plan);
    return status;
}

static int run(const cli_args *args)
{
    static train_settings settings;
    static cli_assumed assumed;
    static cli_choice_made choice;
    char folder[TRAIN_MAX_PATH];
    train_run *training;
    lst_error err;
    lst_status status = read_settings(args, &settings, &assumed, &choice, &err);
    if (status == LST_OK)
        status = show_plan(args, &settings, &assumed, &choice, &err);
    if (status == LST_OK && cli_given(args, "out"))
        snprintf(folder, sizeof folder, "%s", cli_text(args, "out"));
    else if (status == LST_OK)
        choose_folder(settings.model, folder, sizeof folder);
    if (status == LST_OK)
        status = train_run_start(&training, &settings, folder, &err);
    return status == LST_OK ? cli_run(args, training) : cli_fail(args, &err);
}

const cli_command cli_command_train = {
    .name = "train",
    .summary = "train a model on text, in exactly the bytes that were planned",
    .positionals = "MODEL --data PATH [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples = "  leanstep train demo --data book.txt --steps 500 --batch 8 --seq 256\n"
                "  leanstep train demo --data src/ --memory 256MiB --out runs/first\n"
                "  leanstep train my-model/config.json --data text/ --grads release --clip 0\n"
                "  leanstep train my-qwen --data chats.jsonl --pack --memory 20GiB --epochs 2\n",
    .text =
        "MODEL is a config.json or a built-in name (random weights), or a folder with config.json and "
        "model.safetensors\n"
        "(training goes on from its weights). `leanstep plan` lists the names. The folder's tokenizer.json makes the "
        "tokens; its\n"
        "files are carried into the run and its checkpoints. Without one text is read byte by byte, in any language. "
        "Binary files,\n"
        "hidden files and build folders are skipped.\n"
        "\n" CLI_DATA_HELP "\n"
        "--memory alone is enough: where the options and defaults do not fit, the recipe nearest to them in its "
        "numbers that\n"
        "does is chosen, then the fastest way to compute it; options that were given stay. What was chosen, and what "
        "the next\n"
        "better would need, is said.\n"
        "\n"
        "The first Ctrl-C (or SIGTERM) finishes the step, saves and stops: exit status 130 (143). The second ends "
        "at once.\n"
        "`leanstep resume RUN` goes on from the newest checkpoint, bit for bit.\n"
        "\n"
        "Steps whose numbers are not finite are skipped and counted. With --grads release that holds for the loss "
        "and the\n"
        "first gradient of a step; a later one ends the run, since other tensors have moved: resume from the "
        "checkpoint.\n",
    .tables = {{"Run", cli_run_options}, {"Data", cli_data_options}, {"Recipe", cli_recipe_options}},
    .run = run,
};
