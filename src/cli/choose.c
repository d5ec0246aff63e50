/* SPDX-License-Identifier: MIT */
#include "cli/choose.h"

#include <string.h>

#include "cli/print.h"

static lst_fixed fixed_by(const cli_args *args)
{
    return (lst_fixed){.weights = cli_given(args, "weights") || cli_given(args, "precision"),
                       .state = cli_given(args, "state") || cli_given(args, "state-embeddings"),
                       .grad_mode = cli_given(args, "grads"),
                       .grad_codec = cli_given(args, "grad-dtype") || cli_given(args, "loss-scale"),
                       .clip = cli_given(args, "clip"),
                       .activations = cli_given(args, "activations"),
                       .loss_chunk = cli_given(args, "loss-chunk")};
}

static bool is_about(const char *line, const char *option)
{
    size_t n = strlen(option);
    return !strncmp(line, option, n) && (line[n] == ' ' || line[n] == 0);
}

/* Defaults that the choice has taken over are no longer assumed. */
static void drop_assumed(cli_assumed *assumed)
{
    static const char *const chosen[] = {"--precision",   "--state", "--grads",      "--grad-dtype",
                                         "--activations", "--clip",  "--loss-chunk", "--loss-scale"};
    size_t kept = 0;
    for (size_t i = 0; i < assumed->n; i++) {
        bool drop = false;
        for (size_t k = 0; k < sizeof chosen / sizeof *chosen; k++)
            drop = drop || is_about(assumed->lines[i], chosen[k]);
        if (!drop && kept++ != i)
            memcpy(assumed->lines[kept - 1], assumed->lines[i], sizeof assumed->lines[0]);
    }
    assumed->n = kept;
}

lst_status cli_choose(const cli_args *args, const lst_arch *arch, lst_recipe *recipe, cli_assumed *assumed,
                      cli_choice_made *out, lst_error *err)
{
    memset(out, 0, sizeof *out);
    if (!cli_given(args, "memory"))
        return LST_OK;
    const lst_fixed fixed = fixed_by(args);
    lst_status status = lst_plan_choose(arch, recipe, &fixed, cli_count(args, "memory"), &out->choice, err);
    if (status == LST_ERR_MEMORY)
        return LST_OK; /* the plan as given is shown, with what would help */
    out->made = status == LST_OK && (out->choice.is_faster || out->choice.is_better);
    if (out->made) {
        *recipe = out->choice.recipe;
        drop_assumed(assumed);
    }
    return status;
}

static void print_next(FILE *out, const char *what, const lst_recipe *recipe, const lst_arch *arch, uint64_t bytes)
{
    char line[600], need[100];
    cli_recipe_line(recipe, arch, line, sizeof line);
    fprintf(out, "%s needs %s:\n %s\n", what, cli_print_bytes(need, sizeof need, bytes), line);
}

void cli_print_choice(FILE *out, const cli_args *args, const lst_arch *arch, const cli_choice_made *made)
{
    char line[600];
    const lst_choice *c = &made->choice;
    if (!made->made)
        return;
    cli_recipe_line(&c->recipe, arch, line, sizeof line);
    fprintf(out, "\nChosen for --memory %s, numbers before speed (options that were given are kept):\n %s\n",
            cli_text(args, "memory"), line);
    fprintf(out, "%s\n",
            c->is_better ? "Of all whose numbers are nearer to float32, none fits."
                         : "The numbers are those of the options as given.");
    if (c->is_better)
        print_next(out, "The next better", &c->better, arch, c->better_bytes);
    if (c->is_faster)
        print_next(out, "The same numbers faster", &c->faster, arch, c->faster_bytes);
}
