/* SPDX-License-Identifier: MIT */
#include "cli/recipe_options.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/hyper_options.h"

#define LST_X(id, name, ...) "|" name
static const char rule_names[] = LST_RULE_LIST(LST_X);
static const char form_names[] = LST_WEIGHT_FORM_LIST(LST_X);
static const char policy_names[] = LST_ACT_POLICY_LIST(LST_X);
static const char mode_names[] = LST_GRAD_MODE_LIST(LST_X);
#undef LST_X

/* Precision is a shorthand: how weights are kept, and the codec of the gradients that go with them. */
static const struct {
    const char *name;
    lst_weight_form weights;
    lst_codec grads;
} precisions[] = {{"fp32", LST_WEIGHT_F32, LST_CODEC_F32},
                  {"bf16", LST_WEIGHT_BF16_MASTER, LST_CODEC_BF16},
                  {"fp16", LST_WEIGHT_F16_MASTER, LST_CODEC_F16}};

/* What optimizer state is kept in, in the order of the option's choices. */
static const lst_codec state_codecs[] = {LST_CODEC_F32, LST_CODEC_Q8, LST_CODEC_Q4, LST_CODEC_Q8_DYNAMIC,
                                         LST_CODEC_Q8_DYNAMIC_2048};

static const lst_codec grad_codecs[] = {LST_CODEC_F32, LST_CODEC_BF16, LST_CODEC_F16};

const cli_option cli_recipe_options[] = {
    {"optimizer", CLI_CHOICE, rule_names, NULL, "the rule of a step [adamw]"},
    {"precision", CLI_CHOICE, "fp32|bf16|fp16", NULL,
     "short for --weights f32, bf16+master, f16+master and gradients to match [fp32]"},
    {"weights", CLI_CHOICE, form_names, NULL, "how weights are kept [as --precision says]"},
    {"state", CLI_CHOICE, "f32|q8|q4|q8-dynamic|q8-dynamic-2048", NULL,
     "how moments are kept; those of tensors of fewer than 4,096 values stay f32 [f32]"},
    {"state-embeddings", CLI_CHOICE, "f32", NULL, "embeddings and head keep f32 moments too [as --state]"},
    {"grads", CLI_CHOICE, mode_names, NULL, "keep all gradients until the step, or release them layer by layer [keep]"},
    {"grad-dtype", CLI_CHOICE, "f32|bf16|f16", NULL, "how kept gradients are stored [as the weights]"},
    {"activations", CLI_CHOICE, policy_names, NULL,
     "what forward keeps for backward; the rest is computed again [keep]"},
    {"batch", CLI_COUNT, "N", NULL, "sequences a micro-batch [1]"},
    {"seq", CLI_COUNT, "N", NULL, "tokens a sequence [512, or all the model's positions if fewer]"},
    {"accumulation", CLI_COUNT, "N", NULL, "micro-batches a step [1]"},
    {"loss-chunk", CLI_COUNT, "N", NULL, "tokens whose logits exist at one time [128]"},
    {"clip", CLI_DOUBLE, "NORM", NULL, "clip the global gradient norm; 0: never [1; 0 with --grads release]"},
    {"loss-scale", CLI_CHOICE, "none|dynamic", NULL,
     "scale the loss so that f16 gradients do not vanish [dynamic for f16]"},
    {"lr", CLI_DOUBLE, "RATE", NULL, "learning rate [the rule's default]"},
    {"weight-decay", CLI_DOUBLE, "X", NULL, "of matrices; norms and biases take none [the rule's default]"},
    {"beta1", CLI_DOUBLE, "X", NULL, "first moment's decay [0.9 for adamw; the rule's default]"},
    {"beta2", CLI_DOUBLE, "X", NULL, "second moment's decay [0.999 for adamw; the rule's default]"},
    {"eps", CLI_DOUBLE, "X", NULL, "added to the root of the second moment [1e-8 for adamw; the rule's default]"},
    {"momentum", CLI_DOUBLE, "X", NULL, "momentum, nesterov, lars, muon, rmsprop [the rule's default]"},
    {"dampening", CLI_DOUBLE, "X", NULL, "momentum [0]"},
    {"amsgrad", CLI_FLAG, NULL, NULL, "adam, adamw: keep the largest second moment, one more slot"},
    {"hyper", CLI_STRING, "NAME=X,...", NULL,
     "what only one rule knows (muon: nesterov=off,ns_steps=3) [its defaults]"},
    {"threads", CLI_COUNT, "N", NULL, "decides scratch memory and speed, never the numbers [all there are]"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static size_t usable_threads(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

static void assume(cli_assumed *assumed, const char *format, ...) LST_PRINTF(2, 3);
static void assume(cli_assumed *assumed, const char *format, ...)
{
    if (!assumed || assumed->n == CLI_MAX_ASSUMED)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(assumed->lines[assumed->n++], sizeof assumed->lines[0], format, list);
    va_end(list);
}

static lst_status read_codecs(const cli_args *args, lst_recipe *r, cli_assumed *assumed, lst_error *err)
{
    lst_status status = cli_not_both(args, "precision", "weights", "each says how weights are kept; give one", err);
    if (status != LST_OK)
        return status;
    if (cli_given(args, "weights"))
        r->weights = (lst_weight_form)cli_choice(args, "weights");
    else if (cli_given(args, "precision"))
        r->weights = precisions[cli_choice(args, "precision")].weights;
    else
        assume(assumed, "--precision fp32 (weights and gradients in float32)");
    if (cli_given(args, "state"))
        r->state = state_codecs[cli_choice(args, "state")];
    else if (r->rule != LST_RULE_SGD)
        assume(assumed, "--state f32");
    r->f32_embeddings = cli_given(args, "state-embeddings");
    if (cli_given(args, "grads"))
        r->grad_mode = (lst_grad_mode)cli_choice(args, "grads");
    else
        assume(assumed, "--grads keep");
    if (cli_given(args, "grad-dtype"))
        r->grads = grad_codecs[cli_choice(args, "grad-dtype")];
    else if (r->grad_mode == LST_GRAD_RELEASE)
        r->grads = LST_CODEC_F32;
    else {
        r->grads = lst_weight_form_codec(r->weights);
        assume(assumed, "--grad-dtype %s (as the weights)", lst_codec_name(r->grads));
    }
    return LST_OK;
}

static void read_sizes(const cli_args *args, const lst_arch *arch, lst_recipe *r, cli_assumed *assumed)
{
    const struct {
        const char *name;
        size_t *value, fallback;
    } sizes[] = {{"batch", &r->batch, 1},
                 {"seq", &r->seq, arch && arch->max_positions < 512 ? arch->max_positions : 512},
                 {"accumulation", &r->accumulation, 1},
                 {"loss-chunk", &r->loss_chunk, 128},
                 {"threads", &r->threads, usable_threads()}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bool given = cli_given(args, sizes[i].name);
        *sizes[i].value = given ? (size_t)cli_count(args, sizes[i].name) : sizes[i].fallback;
        if (!given && arch)
            assume(assumed, "--%s %zu", sizes[i].name, *sizes[i].value);
    }
}

/* The names of the hyper-parameters are options, and fields; lst_recipe_check refuses one that the rule does not
 * use. */
static void read_hyper(const cli_args *args, lst_hyper *h)
{
    const struct {
        const char *name;
        double *value;
    } reals[] = {
        {"lr", &h->lr},   {"weight-decay", &h->weight_decay}, {"beta1", &h->beta1},        {"beta2", &h->beta2},
        {"eps", &h->eps}, {"momentum", &h->momentum},         {"dampening", &h->dampening}};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (cli_given(args, reals[i].name))
            *reals[i].value = cli_real(args, reals[i].name);
    h->amsgrad = cli_flag(args, "amsgrad");
}

static lst_status check_used(const cli_args *args, lst_rule rule, lst_error *err)
{
    static const char *const options[] = {"beta1", "beta2", "eps", "amsgrad", "momentum", "dampening"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (cli_given(args, options[i]) && !lst_rule_uses(rule, options[i]))
            return lst__fail(err, LST_ERR_ARGUMENT, "--%s has no effect on --optimizer %s; leave it out", options[i],
                             lst_rule_name(rule));
    return LST_OK;
}

static void read_guards(const cli_args *args, lst_recipe *r, cli_assumed *assumed)
{
    bool kept = r->grad_mode == LST_GRAD_KEEP;
    r->clip_norm = cli_given(args, "clip") ? cli_real(args, "clip") : kept ? 1.0 : 0.0;
    if (!cli_given(args, "clip"))
        assume(assumed, kept ? "--clip 1" : "--clip 0 (released gradients cannot be clipped by their global norm)");
    r->loss_scale =
        cli_given(args, "loss-scale") ? cli_choice(args, "loss-scale") == 1 : kept && r->grads == LST_CODEC_F16;
    if (!cli_given(args, "loss-scale") && r->loss_scale)
        assume(assumed, "--loss-scale dynamic");
}

lst_status cli_recipe(const cli_args *args, const lst_arch *arch, lst_recipe *out, cli_assumed *assumed, lst_error *err)
{
    lst_recipe r;
    lst_recipe_default(&r);
    if (assumed)
        assumed->n = 0;
    if (cli_given(args, "optimizer"))
        r.rule = (lst_rule)cli_choice(args, "optimizer");
    else
        assume(assumed, "--optimizer %s", lst_rule_name(r.rule));
    lst_hyper_default(r.rule, &r.hyper);
    lst_status status = check_used(args, r.rule, err);
    if (status == LST_OK)
        status = read_codecs(args, &r, assumed, err);
    if (status != LST_OK)
        return status;
    if (cli_given(args, "activations"))
        r.activations = (lst_act_policy)cli_choice(args, "activations");
    else if (arch)
        assume(assumed, "--activations keep");
    read_sizes(args, arch, &r, assumed);
    read_hyper(args, &r.hyper);
    if (cli_given(args, "hyper")) {
        status = cli_hyper_read(cli_text(args, "hyper"), r.rule, &r.hyper, err);
        if (status != LST_OK)
            return status;
    }
    read_guards(args, &r, assumed);
    status = lst_recipe_check(&r, arch, err);
    if (status == LST_OK)
        *out = r;
    return status;
}

/* Name number `index` of "|a|b|c". */
static void pick_name(const char *names, size_t index, char *out, size_t n)
{
    const char *at = names + 1;
    while (index--)
        at = strchr(at, '|') + 1;
    size_t length = strcspn(at, "|");
    snprintf(out, n, "%.*s", (int)length, at);
}

static void append(char *out, size_t n, const char *format, ...) LST_PRINTF(3, 4);
static void append(char *out, size_t n, const char *format, ...)
{
    size_t used = strlen(out);
    va_list list;
    va_start(list, format);
    vsnprintf(out + used, n - used, format, list);
    va_end(list);
}

static void append_hyper(const lst_recipe *r, char *out, size_t n)
{
    lst_hyper d;
    lst_hyper_default(r->rule, &d);
    const struct {
        const char *name;
        double value, fallback;
    } reals[] = {{"lr", r->hyper.lr, d.lr},
                 {"weight-decay", r->hyper.weight_decay, d.weight_decay},
                 {"beta1", r->hyper.beta1, d.beta1},
                 {"beta2", r->hyper.beta2, d.beta2},
                 {"eps", r->hyper.eps, d.eps},
                 {"momentum", r->hyper.momentum, d.momentum},
                 {"dampening", r->hyper.dampening, d.dampening}};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (reals[i].value != reals[i].fallback)
            append(out, n, " --%s %g", reals[i].name, reals[i].value);
    if (r->hyper.amsgrad)
        append(out, n, " --amsgrad");
    char rest[400];
    cli_hyper_text(&r->hyper, r->rule, rest, sizeof rest);
    if (rest[0])
        append(out, n, " --hyper %s", rest);
}

void cli_recipe_line(const lst_recipe *r, const lst_arch *arch, char *out, size_t n)
{
    char name[32];
    bool kept = r->grad_mode == LST_GRAD_KEEP;
    out[0] = 0;
    if (r->rule != LST_RULE_ADAMW)
        append(out, n, " --optimizer %s", lst_rule_name(r->rule));
    if (r->weights != LST_WEIGHT_F32)
        append(out, n, " --weights %s", lst_weight_form_name(r->weights));
    if (r->state != LST_CODEC_F32)
        append(out, n, " --state %s", lst_codec_name(r->state));
    if (r->f32_embeddings)
        append(out, n, " --state-embeddings f32");
    if (!kept)
        append(out, n, " --grads release");
    else if (r->grads != lst_weight_form_codec(r->weights))
        append(out, n, " --grad-dtype %s", lst_codec_name(r->grads));
    if (kept && r->clip_norm != 1)
        append(out, n, " --clip %g", r->clip_norm);
    if (kept && r->grads == LST_CODEC_F16 && !r->loss_scale)
        append(out, n, " --loss-scale none");
    append_hyper(r, out, n);
    if (!arch)
        return;
    if (r->activations != LST_ACT_KEEP) {
        pick_name(policy_names, r->activations, name, sizeof name);
        append(out, n, " --activations %s", name);
    }
    if (r->batch != 1)
        append(out, n, " --batch %zu", r->batch);
    append(out, n, " --seq %zu", r->seq);
    if (r->accumulation != 1)
        append(out, n, " --accumulation %zu", r->accumulation);
    if (r->loss_chunk != 128)
        append(out, n, " --loss-chunk %zu", r->loss_chunk);
    if (r->threads != usable_threads())
        append(out, n, " --threads %zu", r->threads);
}
