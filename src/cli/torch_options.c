/* SPDX-License-Identifier: MIT */
#include "cli/torch_options.h"

#include <string.h>
#include <strings.h>

#include "base/fail.h"

#define LST_X(id, name, ...) "|" name
static const char dtype_names[] = LST_TORCH_DTYPE_LIST(LST_X);
static const char base_names[] = LST_TORCH_BASE_LIST(LST_X);
static const char optim_names[] = LST_TORCH_OPTIM_LIST(LST_X);
static const char loss_names[] = LST_TORCH_LOSS_LIST(LST_X);
#undef LST_X

const cli_option cli_torch_options[] = {
    {"for", CLI_CHOICE, "leanstep|torch", "leanstep",
     "leanstep: exact, what train takes; torch: an estimate of a PyTorch run (options below)"},
    {"torch-dtype", CLI_CHOICE, dtype_names, "bfloat16", "weights, gradients and compute; autocast: bfloat16 compute"},
    {"torch-optimizer", CLI_CHOICE, optim_names, "adamw", "the optimizer"},
    {"form", CLI_CHOICE, "loop|foreach|fused", "foreach", "how the step is written: foreach copies all parameters"},
    {"attention", CLI_CHOICE, "sdpa|eager", "sdpa", "eager keeps a T x T matrix a head"},
    {"loss", CLI_CHOICE, loss_names, "upcast", "how head and loss are computed: 12, 6, about 2 or 0 bytes a logit"},
    {"checkpointing", CLI_FLAG, NULL, NULL, "keep only each layer's input; its forward runs again"},
    {"compile", CLI_FLAG, NULL, NULL, "torch.compile on the layers"},
    {"hold-output", CLI_FLAG, NULL, NULL, "the model's output lives through backward"},
    {"release", CLI_FLAG, NULL, NULL, "the optimizer runs inside backward, tensor by tensor"},
    {"lora", CLI_STRING, "TARGETS", NULL, "adapters on q,k,v,o,gate,up,down,head or all; the base is frozen"},
    {"lora-rank", CLI_COUNT, "R", "16", "the adapters' rank"},
    {"lora-dropout", CLI_DOUBLE, "P", "0", "dropout before the adapters"},
    {"base", CLI_CHOICE, base_names, "plain", "how the frozen base is stored"},
    {"ranks", CLI_COUNT, "N", "1", "processes to shard over"},
    {"zero", CLI_COUNT, "STAGE", "3", "ZeRO stage 0 to 3 over the ranks (FSDP: 3)"},
    {"device", CLI_CHOICE, "gpu|cpu", "gpu", "a GPU adds rounding, cached blocks and a context"},
    {"card", CLI_STRING, "NAME", NULL,
     "what this card really offers in place of --memory: rtx-4090, a100-80, h100, ..."},
    {"explain", CLI_STRING, "BUCKET", NULL, "the terms of one bucket with their numbers: activations, state, ..."},
    {"versus", CLI_STRING, "OPTIONS", NULL, "compare with the same model under these options (one quoted word)"},
    {"html", CLI_STRING, "FILE", NULL, "write the estimate as one page with the buckets drawn"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

/* Options of the plan itself that both modes know. */
static const char *const shared[] = {"batch", "seq", "accumulation", "memory", "json", "table", "help"};

static bool is_shared(const char *name)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (strcmp(shared[i], name) == 0)
            return true;
    }
    return false;
}

static bool is_torch(const char *name)
{
    for (const cli_option *o = cli_torch_options; o->name; o++) {
        if (strcmp(o->name, name) == 0)
            return true;
    }
    return false;
}

lst_status cli_torch_mode(const cli_args *args, bool *out, lst_error *err)
{
    *out = cli_choice(args, "for") == 1;
    for (size_t i = 0; i < args->n_options; i++) {
        const char *name = args->options[i]->name;
        if (!args->values[i].given || is_shared(name) || strcmp(name, "for") == 0 || is_torch(name) == *out)
            continue;
        if (*out)
            return lst__fail(err, LST_ERR_ARGUMENT,
                             "--%s has no effect with --for torch; its options are under \"PyTorch\" in --help", name);
        return lst__fail(err, LST_ERR_ARGUMENT, "--%s has no effect without --for torch", name);
    }
    return LST_OK;
}

static lst_status read_targets(const char *text, unsigned *out, lst_error *err)
{
    static const struct {
        const char *name;
        unsigned bit;
    } targets[] = {{"q", LST_TARGET_Q},       {"k", LST_TARGET_K},       {"v", LST_TARGET_V},
                   {"o", LST_TARGET_O},       {"gate", LST_TARGET_GATE}, {"up", LST_TARGET_UP},
                   {"down", LST_TARGET_DOWN}, {"head", LST_TARGET_HEAD}, {"all", LST_TARGET_ALL}};
    *out = 0;
    while (*text) {
        const size_t n = strcspn(text, ",");
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
            if (strlen(targets[i].name) == n && strncmp(text, targets[i].name, n) == 0)
                bit = targets[i].bit;
        }
        if (!bit)
            return lst__fail(err, LST_ERR_ARGUMENT,
                             "--lora: \"%.*s\" is no target; a list of q, k, v, o, gate, up, down, head, or all",
                             (int)n, text);
        *out |= bit;
        text += n + (text[n] == ',');
    }
    return *out ? LST_OK : lst__fail(err, LST_ERR_ARGUMENT, "--lora names no target");
}

static lst_status read_lora(const cli_args *args, lst_torch_run *run, lst_error *err)
{
    static const char *const only[] = {"lora-rank", "lora-dropout", "base"};
    for (size_t i = 0; i < sizeof only / sizeof *only && !cli_given(args, "lora"); i++) {
        if (cli_given(args, only[i]))
            return lst__fail(err, LST_ERR_ARGUMENT, "--%s has no effect without --lora", only[i]);
    }
    if (!cli_given(args, "lora"))
        return LST_OK;
    run->lora_rank = (size_t)cli_count(args, "lora-rank");
    run->lora_dropout = cli_real(args, "lora-dropout");
    run->base = (lst_torch_base)cli_choice(args, "base");
    run->base_upcast = run->base != LST_TORCH_BASE_PLAIN;
    return read_targets(cli_text(args, "lora"), &run->lora, err);
}

static lst_status read_ranks(const cli_args *args, lst_torch_run *run, lst_error *err)
{
    run->ranks = (size_t)cli_count(args, "ranks");
    if (cli_given(args, "zero") && run->ranks < 2)
        return lst__fail(err, LST_ERR_ARGUMENT, "--zero has no effect on one rank; give --ranks N");
    run->zero = run->ranks > 1 ? (size_t)cli_count(args, "zero") : 0;
    if (run->zero > 3)
        return lst__fail(err, LST_ERR_ARGUMENT, "--zero %zu: there are stages 0, 1, 2 and 3", run->zero);
    return LST_OK;
}

lst_status cli_torch_run(const cli_args *args, lst_torch_run *out, lst_error *err)
{
    lst_torch_run_default(out);
    if (args->n_positionals != 1)
        return lst__fail(err, LST_ERR_ARGUMENT, "--for torch needs a MODEL: a file, a folder or a built-in name");
    lst_status status = lst_shape_open(args->positionals[0], &out->shape, err);
    if (status != LST_OK)
        return status;
    out->batch = cli_given(args, "batch") ? (size_t)cli_count(args, "batch") : 1;
    out->seq = cli_given(args, "seq") ? (size_t)cli_count(args, "seq") : 512;
    out->accumulation = cli_given(args, "accumulation") ? (size_t)cli_count(args, "accumulation") : 1;
    out->dtype = (lst_torch_dtype)cli_choice(args, "torch-dtype");
    out->optim = (lst_torch_optim)cli_choice(args, "torch-optimizer");
    out->form = (lst_torch_form)cli_choice(args, "form");
    out->attention = cli_choice(args, "attention") ? LST_TORCH_EAGER : LST_TORCH_SDPA;
    out->loss = (lst_torch_loss)cli_choice(args, "loss");
    out->checkpoint = cli_flag(args, "checkpointing");
    out->compiled = cli_flag(args, "compile");
    out->hold_output = cli_flag(args, "hold-output");
    out->release_grads = cli_flag(args, "release") || out->optim == LST_TORCH_LOMO;
    out->gpu = cli_choice(args, "device") == 0;
    if (cli_given(args, "form") && out->optim != LST_TORCH_ADAMW && out->optim != LST_TORCH_ADAFACTOR)
        return lst__fail(err, LST_ERR_ARGUMENT, "--form has no effect with --torch-optimizer %s: it has one form",
                         cli_text(args, "torch-optimizer"));
    status = read_lora(args, out, err);
    return status == LST_OK ? read_ranks(args, out, err) : status;
}

void cli_torch_assumed(FILE *out, const cli_args *args)
{
    static const char *const decide[] = {"torch-dtype", "torch-optimizer", "form", "attention", "loss", "device"};
    fprintf(out, "Assumed:");
    if (!cli_given(args, "batch"))
        fprintf(out, " --batch 1");
    if (!cli_given(args, "seq"))
        fprintf(out, " --seq 512");
    for (size_t i = 0; i < sizeof decide / sizeof *decide; i++) {
        if (!cli_given(args, decide[i]))
            fprintf(out, " --%s %s", decide[i], cli_text(args, decide[i]));
    }
    if (cli_given(args, "lora") && !cli_given(args, "lora-rank"))
        fprintf(out, " --lora-rank %s", cli_text(args, "lora-rank"));
    if (!cli_flag(args, "checkpointing"))
        fprintf(out, ", no checkpointing");
    fprintf(out, "\n");
}

/* What CUDA reports as the card's memory, in MiB: below the label, which counts 1,000s or includes error correction. */
static const struct {
    const char *name;
    uint64_t mib;
} cards[] = {{"t4", 15102},         {"v100-16", 16151},  {"v100-32", 32501},  {"rtx-3060", 12037}, {"rtx-3090", 24260},
             {"rtx-4060ti", 16072}, {"rtx-4080", 16072}, {"rtx-4090", 24210}, {"rtx-5090", 32110}, {"l4", 22700},
             {"a10", 22731},        {"l40s", 45490},     {"a6000", 48670},    {"a100-40", 40340},  {"a100-80", 81050},
             {"h100", 81000},       {"h200", 143150}};

lst_status cli_card_bytes(const char *name, uint64_t *out, lst_error *err)
{
    char list[300] = "";
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        if (strcasecmp(cards[i].name, name) == 0) {
            *out = cards[i].mib << 20;
            return LST_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", cards[i].name);
    }
    return lst__fail(err, LST_ERR_ARGUMENT, "--card %.40s is not known; known are %s. --memory SIZE takes any size",
                     name, list);
}
