/* SPDX-License-Identifier: MIT
 *
 * leanstep export: a run's weights as a folder that Hugging Face's tools load.
 */
#include <stdio.h>

#include "base/fail.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "leanstep/pool.h"
#include "plan/gguf_arch.h"
#include "train/export.h"
#include "train/export_gguf.h"
#include "train/hf_folder.h"

static const cli_option options[] = {
    {"out", CLI_STRING, "DIR", NULL, "the folder to write; must not exist (needed)"},
    {"dtype", CLI_CHOICE, "f32|bf16|f16", NULL,
     "of the weights [as the model came; for one that began random, as kept]"},
    {"shard-size", CLI_SIZE, "SIZE", "5000000000", "several files where one would be larger"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static const lst_codec dtypes[] = {LST_CODEC_F32, LST_CODEC_BF16, LST_CODEC_F16};

static void report(const train_export *job, const train_exported *done)
{
    char n[32];
    printf("%s: %s parameters in %s, after step %lld%s.\n", job->out, cli_print_integer(n, sizeof n, done->n_params),
           train_hf_dtype_name(done->codec), (long long)done->step,
           done->averaged  ? "; the average of the weights"
           : done->masters ? "; from the optimizer's float32 weights"
                           : "");
}

static int run(const cli_args *args)
{
    lst_error err;
    lst_pool *pool = NULL;
    train_exported done;
    lst_status status = LST_OK;
    if (!cli_given(args, "out"))
        status = lst__fail(&err, LST_ERR_ARGUMENT, "no folder to write to: give --out DIR");
    else if (cli_count(args, "shard-size") == 0)
        status = lst__fail(&err, LST_ERR_ARGUMENT, "--shard-size 0: expected at least 1 byte");
    if (status == LST_OK)
        status = lst_pool_create(&pool, 0, &err);
    const train_export job = {.from = args->positionals[0],
                              .out = cli_text(args, "out"),
                              .codec = cli_given(args, "dtype") ? dtypes[cli_choice(args, "dtype")] : LST_N_CODECS,
                              .shard_bytes = cli_count(args, "shard-size"),
                              .pool = pool};
    if (status == LST_OK)
        status = lst__is_gguf(job.from) ? train_export_gguf(&job, &done, &err) : train_export_run(&job, &done, &err);
    if (status == LST_OK)
        report(&job, &done);
    lst_pool_destroy(pool);
    return status == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_export = {
    .name = "export",
    .summary = "write a run's weights as a Hugging Face folder",
    .positionals = "RUN|CHECKPOINT|FILE.gguf --out DIR [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples = "  leanstep export runs/demo-1 --out demo-hf\n"
                "  leanstep export runs/demo-1/checkpoint-00000500 --out demo-bf16 --dtype bf16\n",
    .text = "Writes what AutoModelForCausalLM.from_pretrained(DIR) reads: config.json (the model's own but for the "
            "dtype), the\n"
            "weights, and where the model has them tokenizer files and generation_config.json; and trainer_state.json, "
            "which\n"
            "holds the run's losses for Hugging Face's tools. Of schedule-free-adamw the average is written, which is "
            "what to\n"
            "evaluate. --dtype f32 of a run that keeps 16-bit weights writes the optimizer's exact ones, and takes the "
            "run's\n"
            "memory to read them. The folder appears whole or not at all.\n"
            "A GGUF file becomes such a folder too (float32 if not told otherwise), and training goes on from there.\n",
    .tables = {{"Options", options}},
    .run = run,
};
