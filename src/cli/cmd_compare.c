/* SPDX-License-Identifier: MIT
 *
 * leanstep compare: what each saving costs, measured on the user's own model and text.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_arg.h"
#include "cli/print.h"
#include "cli/recipe_name.h"
#include "cli/recipe_options.h"
#include "cli/run_options.h"
#include "train/compare.h"

#define LST_X(id, name) "|" name
static const cli_option options[] = {
    {"data", CLI_STRING, "PATH", NULL, "a text file or a folder of them (needed)"},
    {"out", CLI_STRING, "DIR", NULL,
     "the comparison's folder; one that holds this comparison is gone on with (needed)"},
    {"recipes", CLI_STRING, "A,B", "all", "by name, as in adamw/split24+q8; adamw/f32 always takes part, first"},
    {"seeds", CLI_COUNT, "N", "3", "of weights and batches; the first one chooses each recipe's rate"},
    {"lrs", CLI_STRING, "A,B,C", "1e-3,2e-3,4e-3",
     "AdamW's rates, at least three; other rules take these times a factor"},
    {"steps", CLI_COUNT, "N", "300", "optimizer steps of a trial"},
    {"schedule", CLI_CHOICE, LST_SCHEDULE_LIST(LST_X), "cosine", "how the rate goes after warm-up"},
    {"warmup", CLI_COUNT, "N", NULL, "steps in which the rate grows [a tenth of a trial, at most 100]"},
    {"seed", CLI_COUNT, "N", "1", "the first seed"},
    {"valid-fraction", CLI_DOUBLE, "X", "0.05", "of the text kept for validation, by document"},
    {"eval-sequences", CLI_COUNT, "N", "64", "sequences of the validation at the end of a trial"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};
#undef LST_X

/* What "all" is: the ways to keep AdamW in fewer bytes, one that is known to be wrong, and rules with fewer moments. */
static const char *const all_recipes =
    "adamw/f32,adamw/bf16+master,adamw/bf16+master+q8,adamw/q8,adamw/q8-dynamic,adamw/split24+q8,adamw/bf16-sr+q8,"
    "adamw/bf16-nearest+q8,adamw/q4,adamw/split24+q4,adam-mini/f32,lion/f32,muon/f32,adafactor/f32,momentum/f32,sgd/"
    "f32";

/* How much larger than AdamW's the rates of a rule are: where to begin to look. Rates at an end of what was tried are
 * looked beyond, so that these need not be right. */
static double rate_scale(lst_rule rule)
{
    switch (rule) {
    case LST_RULE_SGD:
        return 200; /* a step is lr times a gradient whose norm is clipped at 1 */
    case LST_RULE_MOMENTUM:
    case LST_RULE_NESTEROV:
        return 20;
    case LST_RULE_LARS:
        return 1000; /* its trust coefficient is 0.001 */
    case LST_RULE_LION:
        return 0.1; /* a sign's size is 1: three to ten times an Adam update's */
    case LST_RULE_RMSPROP:
        return 0.25;
    case LST_RULE_ADAFACTOR:
    case LST_RULE_ADAFACTOR_TORCH:
        return 8; /* relative to the weights' size */
    case LST_RULE_LAMB:
        return 4;
    default:
        return 1;
    }
}

/* ---- reading what was asked ---- */

static lst_status refuse_given(const cli_args *args, lst_error *err)
{
    static const char *const names[] = {"optimizer",        "precision",  "weights",    "state",
                                        "state-embeddings", "grad-dtype", "loss-scale", "lr",
                                        "momentum",         "dampening",  "amsgrad",    "hyper"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cli_given(args, names[i]))
            return lst__fail(err, LST_ERR_ARGUMENT,
                             "--%s: a comparison takes that from its --recipes and --lrs; leave it out", names[i]);
    return LST_OK;
}

static lst_status read_rates(const char *text, train_compare *c, lst_error *err)
{
    for (const char *at = text; at; at = strchr(at, ','), at += at != NULL) {
        char word[40];
        double rate;
        if (c->n_rates == TRAIN_MAX_RATES - 2)
            return lst__fail(err, LST_ERR_ARGUMENT, "--lrs: at most %d rates", TRAIN_MAX_RATES - 2);
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        lst_status status = cli_parse_real("lrs", word, &rate, err);
        if (status != LST_OK)
            return status;
        if (!(rate > 0) || (c->n_rates > 0 && rate <= c->rates[c->n_rates - 1]))
            return lst__fail(err, LST_ERR_ARGUMENT, "--lrs %s: expected ascending rates above 0", text);
        c->rates[c->n_rates++] = rate;
    }
    if (c->n_rates < 3)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "--lrs %s: at least three are needed: at one rate a coarse recipe can look better than float32 "
            "merely because its steps have another size",
            text);
    return LST_OK;
}

/* The base recipe with rule and formats of a name, and what was given of the hyper-parameters that the rule uses. */
static lst_status make_contender(const cli_args *args, const train_compare *c, const char *name, size_t n,
                                 train_contender *out, lst_error *err)
{
    lst_recipe r = c->base.recipe;
    lst_status status = cli_recipe_by_name("recipes", name, n, &r, err);
    if (status != LST_OK)
        return status;
    lst_hyper_default(r.rule, &r.hyper);
    if (cli_given(args, "weight-decay"))
        r.hyper.weight_decay = cli_real(args, "weight-decay");
    if (cli_given(args, "beta1") && lst_rule_uses(r.rule, "beta1") && r.rule != LST_RULE_ADAFACTOR)
        r.hyper.beta1 = cli_real(args, "beta1");
    if (cli_given(args, "beta2") && lst_rule_uses(r.rule, "beta2"))
        r.hyper.beta2 = cli_real(args, "beta2");
    r.grads = r.grad_mode == LST_GRAD_KEEP ? lst_weight_form_codec(r.weights) : LST_CODEC_F32;
    r.loss_scale = r.grads == LST_CODEC_F16;
    *out = (train_contender){.recipe = r, .rate_scale = rate_scale(r.rule)};
    cli_recipe_name(&r, out->name, sizeof out->name);
    status = lst_recipe_check(&r, &c->base.arch, err);
    if (status != LST_OK && err) {
        lst_error why = *err;
        return lst__fail(err, why.status, "%s: %.400s", out->name, why.message);
    }
    return status;
}

static lst_status add_contender(const cli_args *args, train_compare *c, const char *name, size_t n, lst_error *err)
{
    if (c->n_contenders == TRAIN_MAX_CONTENDERS)
        return lst__fail(err, LST_ERR_ARGUMENT, "--recipes: at most %d", TRAIN_MAX_CONTENDERS);
    train_contender *next = &c->contenders[c->n_contenders];
    lst_status status = make_contender(args, c, name, n, next, err);
    for (size_t i = 0; status == LST_OK && i < c->n_contenders; i++)
        if (strcmp(c->contenders[i].name, next->name) == 0)
            return LST_OK; /* float32 AdamW is there already; a name given twice is one recipe */
    c->n_contenders += status == LST_OK;
    return status;
}

static lst_status read_recipes(const cli_args *args, train_compare *c, lst_error *err)
{
    const char *list = cli_text(args, "recipes");
    if (strcmp(list, "all") == 0)
        list = all_recipes;
    lst_status status = add_contender(args, c, "adamw/f32", 9, err);
    for (const char *at = list; at && status == LST_OK; at = strchr(at, ','), at += at != NULL)
        status = add_contender(args, c, at, strcspn(at, ","), err);
    return status;
}

static lst_status read_base(const cli_args *args, train_settings *s, lst_error *err)
{
    train_settings_default(s);
    lst_status status = cli_model_arch(args->positionals[0], &s->arch, err);
    if (status == LST_OK && (lst__is_dir(args->positionals[0]) || lst__is_file(args->positionals[0])))
        status = cli_absolute(args->positionals[0], s->model, sizeof s->model, err);
    else if (status == LST_OK)
        snprintf(s->model, sizeof s->model, "%s", args->positionals[0]);
    if (status == LST_OK)
        status = cli_absolute(cli_text(args, "data"), s->data, sizeof s->data, err);
    if (status == LST_OK)
        status = cli_recipe(args, &s->arch, &s->recipe, NULL, err);
    if (status != LST_OK)
        return status;
    const int64_t steps = (int64_t)cli_count(args, "steps"), tenth = steps / 10;
    s->schedule = (lst_schedule){.kind = (lst_schedule_kind)cli_choice(args, "schedule"), .total_steps = steps};
    s->schedule.warmup_steps = cli_given(args, "warmup") ? (int64_t)cli_count(args, "warmup")
                               : tenth < 100             ? tenth
                                                         : 100;
    s->seed = cli_count(args, "seed");
    s->valid_fraction = cli_real(args, "valid-fraction");
    s->eval_sequences = (size_t)cli_count(args, "eval-sequences");
    s->sample_tokens = 0;
    s->save_every = s->eval_every = 0;
    return steps < 1 ? lst__fail(err, LST_ERR_ARGUMENT, "--steps 0: expected at least 1")
                     : train_settings_check(s, err);
}

static lst_status read_request(const cli_args *args, train_compare *c, lst_error *err)
{
    static const char *const needed[] = {"data", "out"};
    for (size_t i = 0; i < 2; i++)
        if (!cli_given(args, needed[i]))
            return lst__fail(err, LST_ERR_ARGUMENT, "--%s is needed", needed[i]);
    c->n_seeds = (size_t)cli_count(args, "seeds");
    if (c->n_seeds < 1 || c->n_seeds > TRAIN_MAX_SEEDS)
        return lst__fail(err, LST_ERR_ARGUMENT, "--seeds %zu: expected 1 to %d", c->n_seeds, TRAIN_MAX_SEEDS);
    if (strlen(cli_text(args, "out")) >= sizeof c->folder - 128)
        return lst__fail(err, LST_ERR_ARGUMENT, "--out: the folder's name is too long");
    snprintf(c->folder, sizeof c->folder, "%s", cli_text(args, "out"));
    lst_status status = refuse_given(args, err);
    if (status == LST_OK)
        status = read_base(args, &c->base, err);
    if (status == LST_OK)
        status = read_rates(cli_text(args, "lrs"), c, err);
    return status == LST_OK ? read_recipes(args, c, err) : status;
}

/* ---- what is seen as it goes ---- */

static void on_trial(void *user, const train_compare *c, const train_trial *t)
{
    (void)user;
    if (isatty(STDOUT_FILENO))
        printf("\r\033[K");
    printf("  %-26s rate %-8.3g seed %-3llu ", c->contenders[t->contender].name, t->lr, (unsigned long long)t->seed);
    if (isnan(t->valid_loss))
        printf("broke off: numbers were not finite");
    else
        printf("validation loss %.4f, %.1f ms a step", t->valid_loss, t->step_ms);
    printf("; %zu trials done, at least %zu to go\n", c->n_trials, train_compare_left(c));
    fflush(stdout);
}

static void on_step(void *user, const train_job *job, int64_t step, int64_t total)
{
    const train_compare *c = user;
    if (!isatty(STDOUT_FILENO) || (step % 10 != 0 && step != 1))
        return;
    printf("\r\033[K  %-26s rate %-8.3g seed %-3llu step %lld of %lld", c->contenders[job->contender].name, job->lr,
           (unsigned long long)job->seed, (long long)step, (long long)total);
    fflush(stdout);
}

static bool stop(void *user)
{
    (void)user;
    return cli_interrupt_signal() != 0;
}

/* ---- the table ---- */

static void print_cell(double value, const char *format, int width)
{
    char text[40] = "-";
    if (isfinite(value))
        snprintf(text, sizeof text, format, value);
    printf(" %*s", width, text);
}

static void print_standing(const train_compare *c, const train_standing *s)
{
    const train_trial *t = s->trial;
    char binary[32] = "-";
    printf("  %-26s", c->contenders[s->contender].name);
    print_cell(t ? (double)t->fixed_bytes / (double)t->params : NAN, "%.3f", 8);
    print_cell(t ? (double)t->state_bytes / (double)t->params : NAN, "%.3f", 7);
    printf(" %11s %-8s", t ? cli_print_binary(binary, sizeof binary, t->fixed_bytes) : binary,
           !t              ? "-"
           : t->as_planned ? "equal"
                           : "DIFFERS");
    print_cell(s->step_ms, "%.1f", 8);
    print_cell(s->lr, s->at_end ? "%.3g!" : "%.3g", 9);
    print_cell(s->loss, "%.4f", 8);
    print_cell(s->loss_spread, "%.4f", 7);
    print_cell(s->percent, "%+.2f%%", 9);
    print_cell(s->percent_spread, "%.2f%%", 7);
    printf(" %6zu\n", s->n_seeds);
}

static void print_standings(const train_compare *c)
{
    train_standing standings[TRAIN_MAX_CONTENDERS];
    const train_settings *s = &c->base;
    bool at_end = false;
    char tokens[32];
    train_compare_standings(c, standings);
    printf(
        "\n%s: %lld steps, %s tokens a trial; each recipe at its best of at least %zu rates, by validation loss.\n\n",
        s->model, (long long)s->schedule.total_steps,
        cli_print_integer(tokens, sizeof tokens,
                          (uint64_t)s->schedule.total_steps * s->recipe.batch * s->recipe.accumulation * s->recipe.seq),
        c->n_rates);
    printf("  %-26s %8s %7s %11s %-8s %8s %9s %8s %7s %9s %7s %6s\n", "recipe", "B/param", "state", "fixed", "plan=run",
           "ms/step", "rate", "loss", "+-", "to first", "+-", "seeds");
    for (size_t i = 0; i < c->n_contenders; i++) {
        print_standing(c, &standings[i]);
        at_end = at_end || standings[i].at_end;
    }
    printf("\nB/param: weights, kept gradients and optimizer state; state: of them optimizer state. to first: against "
           "%s,\n"
           "seed by seed; +-: standard deviation over seeds.%s\n",
           c->contenders[0].name, at_end ? " !: the best rate stands at the end of those tried." : "");
}

static int run(const cli_args *args)
{
    lst_error err;
    train_compare *c = lst__alloc(1, sizeof *c);
    if (!c)
        return cli_fail(args, &(lst_error){.status = LST_ERR_MEMORY, .message = "no memory for the comparison"});
    const train_compare_observer observer = {.user = c, .on_trial = on_trial, .on_step = on_step, .stop = stop};
    lst_status status = read_request(args, c, &err);
    if (status == LST_OK)
        status = train_compare_open(c, &err);
    if (status == LST_OK) {
        cli_interrupt_watch();
        printf("%zu recipes x at least %zu rates, then %zu more seeds each: at least %zu trials to make, %zu made.\n",
               c->n_contenders, c->n_rates, c->n_seeds - 1, train_compare_left(c), c->n_trials);
        fflush(stdout);
        status = train_compare_run(c, &observer, &err);
    }
    const bool stopped = status == LST_ERR_INTERRUPTED;
    lst_error ignored;
    if (status == LST_OK || (stopped && c->n_trials > 0)) {
        const lst_status written = train_compare_write(c, stopped ? &ignored : &err);
        status = stopped ? status : written;
        print_standings(c);
    }
    int result = status == LST_OK ? CLI_OK : stopped ? 128 + cli_interrupt_signal() : CLI_FAILED;
    if (status == LST_OK)
        printf("\n%s/compare.html shows it at a glance; compare.json has the numbers.\n", c->folder);
    else if (stopped)
        fprintf(stderr, "leanstep compare: %s\n", err.message);
    else
        result = cli_fail(args, &err);
    lst__free(c);
    return result;
}

const cli_command cli_command_compare = {
    .name = "compare",
    .summary = "train by several recipes, and show what their bytes buy",
    .positionals = "MODEL --data PATH --out DIR [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples =
        "  leanstep compare demo --data book.txt --out frontier\n"
        "  leanstep compare demo --data src/ --out small --recipes adamw/q8,adamw/split24+q8,sgd --steps 500 \\\n"
        "      --batch 8 --seq 128 --beta2 0.95 --lrs 2e-3,4e-3,8e-3 --seeds 3\n",
    .text =
        "Every recipe starts from the same weights and sees the same batches, seed by seed. The first seed tries each\n"
        "recipe at every rate, and beyond the end at which its best stands; the other seeds run at that best rate.\n"
        "A recipe is RULE/FORMAT: adamw/f32, adamw/bf16+master+q8, adamw/split24+q4, lion/q8, sgd. `all` is a list of\n"
        "sixteen. DIR/compare.html draws bytes against loss; an interrupted comparison goes on where it was with the\n"
        "same command, and recipes and seeds may be added to it.\n",
    .tables = {{"Comparison", options}, {"Recipe", cli_recipe_options}},
    .run = run,
};
