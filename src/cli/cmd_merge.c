/* SPDX-License-Identifier: MIT
 *
 * leanstep merge: a model and a LoRA adapter made into one model.
 */
#include <stdio.h>

#include "base/fail.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "train/hf_folder.h"
#include "train/merge.h"

static const cli_option options[] = {
    {"out", CLI_STRING, "DIR", NULL, "the folder to write; must not exist (needed)"},
    {"dtype", CLI_CHOICE, "f32|bf16|f16", NULL, "of the weights [as the base says]"},
    {"shard-size", CLI_SIZE, "SIZE", "5000000000", "several files where one would be larger"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static const lst_codec dtypes[] = {LST_CODEC_F32, LST_CODEC_BF16, LST_CODEC_F16};

static int run(const cli_args *args)
{
    lst_error err;
    train_merged done;
    lst_status status = LST_OK;
    if (!cli_given(args, "out"))
        status = lst__fail(&err, LST_ERR_ARGUMENT, "no folder to write to: give --out DIR");
    else if (cli_count(args, "shard-size") == 0)
        status = lst__fail(&err, LST_ERR_ARGUMENT, "--shard-size 0: expected at least 1 byte");
    const train_merge job = {.base = args->positionals[0],
                             .adapter = args->positionals[1],
                             .out = cli_text(args, "out"),
                             .codec = cli_given(args, "dtype") ? dtypes[cli_choice(args, "dtype")] : LST_N_CODECS,
                             .shard_bytes = cli_count(args, "shard-size")};
    if (status == LST_OK)
        status = train_merge_adapter(&job, &done, &err);
    if (status != LST_OK)
        return cli_fail(args, &err);
    printf("%s: %zu matrices changed by %g B A of rank %zu; weights in %s.\n", job.out, done.n_changed, done.scale,
           done.rank, train_hf_dtype_name(done.codec));
    return CLI_OK;
}

const cli_command cli_command_merge = {
    .name = "merge",
    .summary = "make a model and a LoRA adapter into one model",
    .positionals = "BASE ADAPTER --out DIR [options]",
    .min_positionals = 2,
    .max_positionals = 2,
    .examples = "  leanstep merge SmolLM2-135M my-adapter --out merged\n",
    .text = "BASE is a Hugging Face folder; ADAPTER a folder as PEFT saves it: adapter_config.json and\n"
            "adapter_model.safetensors with LoRA of linear layers. Writes a Hugging Face folder in which each matrix W "
            "with an\n"
            "adapter is W + s B A, computed in double and rounded once (s = alpha / r, or alpha / sqrt(r) for rsLoRA); "
            "all\n"
            "else is the base's. DoRA, trained biases and modules, embeddings, and a head that is the embedding are "
            "refused\n"
            "by name. The folder appears whole or not at all.\n",
    .tables = {{"Options", options}},
    .run = run,
};
