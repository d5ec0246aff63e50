/* SPDX-License-Identifier: MIT
 *
 * leanstep generate: text from a run or a folder with a model.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "data/bytes.h"
#include "leanstep/ckpt.h"
#include "leanstep/ledger.h"
#include "leanstep/pool.h"
#include "plan/activations.h"
#include "train/checkpoint.h"
#include "train/sample.h"

static const cli_option options[] = {
    {"prompt", CLI_STRING, "TEXT", NULL, "what the text begins with [the start of a document]"},
    {"tokens", CLI_COUNT, "N", "400", "how many bytes to write at most"},
    {"temperature", CLI_DOUBLE, "X", "0.8", "0: always the likeliest; 1: as the model's probabilities are"},
    {"top-k", CLI_COUNT, "N", "40", "choose among so many; 0: all"},
    {"seed", CLI_COUNT, "N", "1", "another number, another text"},
    {"threads", CLI_COUNT, "N", NULL, "speed, never the text [all there are]"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

/* Where the weights lie, what model they are, and how many positions it was trained on. */
typedef struct source {
    char *weights; /* lst_ckpt_free */
    lst_arch arch;
    lst_weight_form form;
    size_t positions;
} source;

#define MAX_POSITIONS 1024 /* of a folder that does not say how long its sequences were */

static bool is_run(const char *folder)
{
    char *path = lst__path_join(folder, "settings.json");
    bool found = path && lst__is_file(path);
    lst__free(path);
    return found;
}

static lst_status find_run(const char *folder, source *out, lst_error *err)
{
    static train_settings settings;
    lst_status status = train_read_settings(folder, &settings, err);
    if (status != LST_OK)
        return status;
    out->arch = settings.arch;
    out->form = settings.recipe.weights;
    out->positions = settings.recipe.seq;
    return lst_ckpt_latest(folder, &out->weights, NULL, err);
}

static lst_status find_folder(const char *folder, source *out, lst_error *err)
{
    lst_status status = train_read_config(folder, &out->arch, err);
    if (status != LST_OK)
        return status;
    if (out->arch.vocab != DATA_BYTES_VOCAB)
        return lst__fail(
            err, LST_ERR_UNSUPPORTED,
            "%s has a vocabulary of %zu tokens, and text is written byte by byte (%d tokens): the model's own "
            "tokenizer is not used yet",
            folder, out->arch.vocab, DATA_BYTES_VOCAB);
    out->form = LST_WEIGHT_F32;
    out->positions = out->arch.max_positions < MAX_POSITIONS ? out->arch.max_positions : MAX_POSITIONS;
    out->weights = lst__strdup(folder);
    return out->weights ? LST_OK : lst__fail_memory(err, "a name", strlen(folder) + 1);
}

static lst_status find_source(const char *folder, source *out, lst_error *err)
{
    memset(out, 0, sizeof *out);
    if (!lst__is_dir(folder))
        return lst__fail(err, LST_ERR_IO,
                         "%s is not a folder: expected one that `leanstep train` has made, or one with config.json and "
                         "model.safetensors",
                         folder);
    return is_run(folder) ? find_run(folder, out, err) : find_folder(folder, out, err);
}

static void put_byte(void *user, char byte)
{
    (void)user;
    putchar(byte);
    fflush(stdout);
}

static lst_status write_text(const cli_args *args, model *m, lst_error *err)
{
    model_sampling sampling = {.max_tokens = (size_t)cli_count(args, "tokens"),
                               .temperature = cli_real(args, "temperature"),
                               .top_k = (size_t)cli_count(args, "top-k"),
                               .seed = cli_count(args, "seed")};
    if (sampling.temperature == 0 && !cli_given(args, "top-k"))
        sampling.top_k = 0; /* the likeliest needs no choice: a default must not contradict an option that was given */
    const char *prompt = cli_given(args, "prompt") ? cli_text(args, "prompt") : "";
    fputs(prompt, stdout);
    lst_status status = train_sample(m, prompt, &sampling, put_byte, NULL, err);
    putchar('\n');
    return status;
}

static lst_status generate(const cli_args *args, const source *from, lst_pool *pool, lst_error *err)
{
    lst_plan *plan = NULL;
    lst_arena arena = {0};
    static lst_ledger ledger;
    model *m = NULL;
    lst_ledger_init(&ledger);
    lst_status status =
        lst__plan_generation(&plan, &from->arch, from->form, from->positions, lst_pool_threads(pool), err);
    if (status == LST_OK)
        status = lst__arena_reserve(&arena, plan->arena_bytes, pool, err);
    if (status == LST_OK)
        status = model_create(&m, plan, arena.base, &ledger, pool, err);
    if (status == LST_OK)
        status = train_load_model(from->weights, plan, m, err);
    if (status == LST_OK)
        status = write_text(args, m, err);
    model_destroy(m);
    if (arena.base)
        lst__arena_release(&arena);
    lst_plan_destroy(plan);
    return status;
}

static int run(const cli_args *args)
{
    lst_error err;
    lst_pool *pool = NULL;
    source from;
    lst_status status = find_source(args->positionals[0], &from, &err);
    if (status == LST_OK && !(cli_real(args, "temperature") >= 0))
        status =
            lst__fail(&err, LST_ERR_ARGUMENT, "--temperature %g: expected 0 or more", cli_real(args, "temperature"));
    if (status == LST_OK)
        status = lst_pool_create(&pool, cli_given(args, "threads") ? (size_t)cli_count(args, "threads") : 0, &err);
    if (status == LST_OK)
        status = generate(args, &from, pool, &err);
    lst_pool_destroy(pool);
    lst_ckpt_free(from.weights);
    return status == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_generate = {
    .name = "generate",
    .summary = "let a trained model write",
    .positionals = "RUN|DIR [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples = "  leanstep generate runs/demo-1 --prompt 'static int '\n"
                "  leanstep generate runs/demo-1/checkpoint-00000500 --temperature 0\n",
    .text = "RUN is a folder that `leanstep train` has made: its newest checkpoint is used. DIR is a folder with "
            "config.json and\n"
            "model.safetensors of a byte-level model. The same seed gives the same text, for any number of threads.\n",
    .tables = {{"Options", options}},
    .run = run,
};
