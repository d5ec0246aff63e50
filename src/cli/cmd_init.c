/* SPDX-License-Identifier: MIT
 *
 * leanstep init: a folder with random weights of a shape, however large.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/writer.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/model_arg.h"
#include "cli/print.h"
#include "leanstep/pool.h"
#include "model/model.h"
#include "train/hf_folder.h"
#include "train/new_folder.h"

static const cli_option options[] = {
    {"out", CLI_STRING, "DIR", NULL, "the folder to write; must not exist (needed)"},
    {"dtype", CLI_CHOICE, "f32|bf16|f16", "bf16", "of the weights"},
    {"seed", CLI_COUNT, "N", "1", "another number, other weights"},
    {"shard-size", CLI_SIZE, "SIZE", "5000000000", "several files where one would be larger"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static const lst_codec dtypes[] = {LST_CODEC_F32, LST_CODEC_BF16, LST_CODEC_F16};

static lst_status values(void *context, size_t tensor, size_t first, size_t n, float *out, lst_error *err)
{
    (void)err;
    model_init_part(context, tensor, first, n, out);
    return LST_OK;
}

static lst_status write_text(const char *dir, const char *name, const char *text, lst_error *err)
{
    lst_writer *writer;
    char *path = lst__path_join(dir, name);
    lst_status status = path ? lst__writer_open(&writer, path, err) : lst__fail_memory(err, name, strlen(dir) + 32);
    lst__free(path);
    if (status != LST_OK)
        return status;
    status = lst__writer_write(writer, text, strlen(text), err);
    if (status == LST_OK)
        return lst__writer_commit(writer, err);
    lst__writer_abort(writer);
    return status;
}

static lst_status write_files(void *context, const char *dir, lst_error *err)
{
    const train_hf_weights *weights = context;
    char *text;
    lst_status status = lst_arch_to_config(weights->arch, train_hf_dtype_name(weights->codec), &text, err);
    if (status == LST_OK) {
        status = write_text(dir, "config.json", text, err);
        free(text);
    }
    if (status == LST_OK)
        status = train_hf_write_weights(dir, weights, err);
    return status;
}

static lst_status write_folder(const char *out, train_hf_weights *weights, lst_error *err)
{
    if (train_refuse_existing(out, err) != LST_OK)
        return LST_ERR_STATE;
    return train_new_folder(out, write_files, weights, err);
}

static lst_status check_options(const cli_args *args, lst_error *err)
{
    if (!cli_given(args, "out"))
        return lst__fail(err, LST_ERR_ARGUMENT, "no folder to write to: give --out DIR");
    if (cli_count(args, "shard-size") == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "--shard-size 0: expected at least 1 byte");
    return LST_OK;
}

static int run(const cli_args *args)
{
    lst_error err;
    lst_arch arch;
    char n[32];
    lst_pool *pool = NULL;
    lst_status status = check_options(args, &err);
    if (status == LST_OK)
        status = cli_model_arch(args->positionals[0], &arch, &err);
    if (status == LST_OK)
        status = lst_pool_create(&pool, 0, &err);
    model_init init = {&arch, cli_count(args, "seed"), pool};
    train_hf_weights weights = {.arch = &arch,
                                .codec = dtypes[cli_choice(args, "dtype")],
                                .shard_bytes = cli_count(args, "shard-size"),
                                .values = values,
                                .context = &init};
    if (status == LST_OK)
        status = write_folder(cli_text(args, "out"), &weights, &err);
    if (status == LST_OK)
        printf("%s: %s random parameters in %s.\n", cli_text(args, "out"),
               cli_print_integer(n, sizeof n, lst_arch_params(&arch)), train_hf_dtype_name(weights.codec));
    lst_pool_destroy(pool);
    return status == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_init = {
    .name = "init",
    .summary = "write random weights of any shape as a Hugging Face folder",
    .positionals = "MODEL --out DIR [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples = "  leanstep init qwen2.5-1.5b --out qwen-random\n"
                "  leanstep init my-model/config.json --out fresh --dtype f32 --seed 7\n",
    .text = "MODEL is a config.json, a folder that holds one, or a built-in name (`leanstep plan --help` lists them). "
            "The weights are\n"
            "those that `leanstep train` begins with for the same seed, rounded to --dtype. They are written as they "
            "are drawn:\n"
            "memory does not grow with the model. No tokenizer is written.\n",
    .tables = {{"Options", options}},
    .run = run,
};
