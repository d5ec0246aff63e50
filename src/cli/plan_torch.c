/* SPDX-License-Identifier: MIT */
#include "cli/plan_torch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/print.h"
#include "cli/torch_options.h"

static lst_status read_limit(const cli_args *args, uint64_t *out, lst_error *err)
{
    *out = 0;
    lst_status status = cli_not_both(args, "memory", "card", "both say what there is", err);
    if (status == LST_OK && cli_given(args, "card"))
        status = cli_card_bytes(cli_text(args, "card"), out, err);
    if (status == LST_OK && cli_given(args, "memory"))
        *out = cli_count(args, "memory");
    return status;
}

/* ---- tables ---- */

static lst_status print_table_row(const lst_torch_run *run, const char *name, lst_error *err)
{
    lst_estimate *e = NULL;
    char state[32], peak[32], need[32];
    const lst_status status = lst_torch_estimate(&e, run, err);
    if (status != LST_OK)
        return status;
    printf("  %-20s %14s %16s %16s  %s\n", name, cli_print_binary(state, sizeof state, e->state_bytes),
           cli_print_binary(peak, sizeof peak, e->steady.peak),
           cli_print_binary(need, sizeof need, cli_torch_need(run, e)), e->steady.peak_phase);
    lst_estimate_destroy(e);
    return LST_OK;
}

static lst_status print_optimizers(const lst_torch_run *run, lst_error *err)
{
    static const char *const names[] = {
#define LST_X(id, name, text) name,
        LST_TORCH_OPTIM_LIST(LST_X)
#undef LST_X
    };
    lst_status status = LST_OK;
    printf("\n  %-20s %14s %16s %16s  %s\n", "optimizer", "state", "peak, tensors", "needed", "peak in");
    for (int i = 0; i < LST_N_TORCH_OPTIMS && status == LST_OK; i++) {
        lst_torch_run r = *run;
        r.optim = (lst_torch_optim)i;
        if (i == LST_TORCH_LOMO && r.accumulation == 1)
            r.release_grads = true;
        if (i == LST_TORCH_BADAM)
            r.blocks = r.shape.layers;
        status = print_table_row(&r, names[i], err);
    }
    return status;
}

static lst_status print_ranks(const lst_torch_run *run, lst_error *err)
{
    lst_status status = LST_OK;
    printf("\n  %-20s %14s %16s %16s  %s\n", "ranks, ZeRO stage", "state", "peak, tensors", "needed", "peak in");
    for (size_t ranks = 1; ranks <= 64 && status == LST_OK; ranks *= 2) {
        for (size_t stage = ranks == 1 ? 0 : 1; stage <= (ranks == 1 ? 0u : 3u) && status == LST_OK; stage++) {
            char name[40];
            lst_torch_run r = *run;
            r.ranks = ranks;
            r.zero = stage;
            snprintf(name, sizeof name, "%zu, stage %zu", ranks, stage);
            status = print_table_row(&r, name, err);
        }
    }
    return status;
}

/* ---- verdict ---- */

static void print_levers(const lst_torch_run *run, uint64_t need)
{
    cli_torch_lever levers[CLI_TORCH_MAX_LEVERS];
    const size_t n = cli_torch_levers(run, need, levers);
    printf("\nEach of these alone, most bytes first:\n");
    for (size_t i = 0; i < n; i++) {
        char saved[32], left[32];
        printf("  saves %11s, needs %11s  %-34s %s (%s)\n",
               cli_print_binary(saved, sizeof saved, need - levers[i].need),
               cli_print_binary(left, sizeof left, levers[i].need), levers[i].option, levers[i].what, levers[i].price);
    }
}

static void print_verdict(const lst_torch_run *run, const lst_estimate *e, uint64_t limit)
{
    const uint64_t need = cli_torch_need(run, e);
    const bool fits = need <= limit;
    char text[100], rest[100];
    printf("\n%s %s: %s %s; the estimate is good to about %.0f %%.\n", fits ? "Fits in" : "Does not fit in",
           cli_print_bytes(text, sizeof text, limit),
           cli_print_bytes(rest, sizeof rest, fits ? limit - need : need - limit), fits ? "to spare" : "too much",
           100 * e->uncertainty);
    const size_t batch = cli_torch_largest(run, limit, false), seq = cli_torch_largest(run, limit, true);
    printf("Largest micro-batch at this sequence: %zu. Longest sequence at this batch: %zu.\n", batch, seq);
    print_levers(run, need);
}

/* ---- another run beside it ---- */

typedef struct words {
    char *text;
    int n;
    char *word[64];
} words;

static lst_status split_words(const char *model, const char *options, words *out, lst_error *err)
{
    static const char mode[] = "--for torch ";
    const size_t n = strlen(options) + sizeof mode;
    out->text = lst__alloc(n + 1, 1);
    if (!out->text)
        return lst__fail_memory(err, "--versus", n);
    snprintf(out->text, n + 1, "%s%s", mode, options);
    char *rest = NULL;
    out->word[out->n++] = (char *)(uintptr_t)model;
    for (char *word = strtok_r(out->text, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
        if (out->n == (int)(sizeof out->word / sizeof *out->word))
            return lst__fail(err, LST_ERR_ARGUMENT, "--versus holds more than 60 words");
        out->word[out->n++] = word;
    }
    return LST_OK;
}

static void print_versus(const lst_estimate *a, const lst_estimate *b)
{
    const struct {
        const char *what;
        uint64_t a, b;
    } rows[] = {{"weights", a->weight_bytes, b->weight_bytes},
                {"gradients", a->grad_bytes, b->grad_bytes},
                {"state", a->state_bytes, b->state_bytes},
                {"activations kept", a->kept_bytes, b->kept_bytes},
                {"after the loss", a->steady.after_loss, b->steady.after_loss},
                {"peak in backward", a->steady.bwd_peak, b->steady.bwd_peak},
                {"peak in the optimizer", a->steady.opt_peak, b->steady.opt_peak},
                {"peak", a->steady.peak, b->steady.peak},
                {"on the device", a->device_bytes, b->device_bytes}};
    printf("\n  %-24s %14s %14s %16s\n", "", "A", "B", "B - A");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char x[32], y[32], d[32];
        const bool less = rows[i].b < rows[i].a;
        printf("  %-24s %14s %14s %c%15s\n", rows[i].what, cli_print_binary(x, sizeof x, rows[i].a),
               cli_print_binary(y, sizeof y, rows[i].b), less ? '-' : '+',
               cli_print_binary(d, sizeof d, less ? rows[i].a - rows[i].b : rows[i].b - rows[i].a));
    }
}

static lst_status versus(const cli_args *args, const lst_estimate *a, lst_error *err)
{
    static cli_args other;
    words w = {0};
    lst_torch_run run;
    lst_estimate *b = NULL;
    lst_status status = split_words(args->positionals[0], cli_text(args, "versus"), &w, err);
    if (status == LST_OK)
        status = cli_args_parse(args->command, w.n, w.word, &other, err);
    bool torch = false;
    if (status == LST_OK)
        status = cli_torch_mode(&other, &torch, err);
    if (status == LST_OK)
        status = cli_torch_run(&other, &run, err);
    if (status == LST_OK)
        status = lst_torch_estimate(&b, &run, err);
    if (status == LST_OK) {
        printf("\nA: as given. B: %s\n", cli_text(args, "versus"));
        print_versus(a, b);
    }
    lst_estimate_destroy(b);
    lst__free(w.text);
    return status;
}

static lst_status print_more(const cli_args *args, const lst_torch_run *run, const lst_estimate *e, uint64_t limit,
                             lst_error *err)
{
    lst_status status = LST_OK;
    if (cli_given(args, "explain"))
        cli_torch_explain(stdout, e, cli_text(args, "explain"));
    if (status == LST_OK && cli_given(args, "table"))
        status = cli_choice(args, "table") ? print_ranks(run, err) : print_optimizers(run, err);
    if (status == LST_OK && cli_given(args, "versus"))
        status = versus(args, e, err);
    if (status == LST_OK && limit)
        print_verdict(run, e, limit);
    return status;
}

static lst_status print_all(const cli_args *args, const lst_torch_run *run, const lst_estimate *e, uint64_t limit,
                            lst_error *err)
{
    if (cli_given(args, "html")) {
        const lst_status status = cli_torch_html(cli_text(args, "html"), run, e, limit, err);
        if (status != LST_OK)
            return status;
    }
    if (!cli_flag(args, "json")) {
        cli_torch_print(stdout, run, e);
        printf("\n");
        cli_torch_assumed(stdout, args);
        return print_more(args, run, e, limit, err);
    }
    json_t *object = cli_torch_json(run, e, limit);
    const int failed = object ? json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;
    json_decref(object);
    printf("\n");
    return failed ? lst__fail(err, LST_ERR_IO, "the estimate could not be written as JSON") : LST_OK;
}

int cli_plan_torch(const cli_args *args)
{
    lst_torch_run run;
    lst_estimate *e = NULL;
    lst_error err;
    uint64_t limit = 0;
    lst_status status = read_limit(args, &limit, &err);
    if (status == LST_OK)
        status = cli_torch_run(args, &run, &err);
    if (status == LST_OK && cli_given(args, "explain"))
        status = cli_torch_bucket(cli_text(args, "explain"), &err);
    if (status == LST_OK && cli_flag(args, "json") &&
        (cli_given(args, "table") || cli_given(args, "explain") || cli_given(args, "versus")))
        status = lst__fail(&err, LST_ERR_ARGUMENT,
                           "--json writes the estimate itself; --table, --explain and --versus do "
                           "not go with it");
    if (status == LST_OK)
        status = lst_torch_estimate(&e, &run, &err);
    if (status == LST_OK)
        status = print_all(args, &run, e, limit, &err);
    const int result = status != LST_OK                           ? cli_fail(args, &err)
                       : limit && cli_torch_need(&run, e) > limit ? CLI_FAILED
                                                                  : CLI_OK;
    lst_estimate_destroy(e);
    return result;
}
