/* SPDX-License-Identifier: MIT
 *
 * leanstep convert-state: optimizer state for and from other programs.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "leanstep/ckpt.h"

#define LST_X(id, name, text) "|" name
static const cli_option options[] = {
    {"to", CLI_CHOICE, LST_CKPT_LAYOUT_LIST(LST_X), NULL, "whose names and forms the new file has (needed)"},
    {"out", CLI_STRING, "FILE", NULL, "the new file; it must not be there yet (needed)"},
    {"state", CLI_CHOICE, "f32|q8|q4|q8-dynamic|q8-dynamic-2048", NULL,
     "code the moments anew [as they are; f32 for torch]"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};
#undef LST_X

static const lst_codec states[] = {LST_CODEC_F32, LST_CODEC_Q8, LST_CODEC_Q4, LST_CODEC_Q8_DYNAMIC,
                                   LST_CODEC_Q8_DYNAMIC_2048};

/* FROM may be a checkpoint's folder, or a run's. */
static lst_status find_file(const char *from, char **out, lst_error *err)
{
    char *newest = NULL;
    *out = NULL;
    if (!lst__is_dir(from))
        *out = lst__strdup(from);
    else {
        *out = lst__path_join(from, LST_CKPT_OPTIM);
        if (*out && !lst__is_file(*out)) {
            lst__free(*out);
            *out = NULL;
            lst_status status = lst_ckpt_latest(from, &newest, NULL, err);
            if (status != LST_OK)
                return status;
            *out = lst__path_join(newest, LST_CKPT_OPTIM);
            lst_ckpt_free(newest);
        }
    }
    return *out ? LST_OK : lst__fail_memory(err, from, strlen(from));
}

static lst_status convert(const cli_args *args, lst_error *err)
{
    static const char *const needed[] = {"to", "out"};
    for (size_t i = 0; i < 2; i++)
        if (!cli_given(args, needed[i]))
            return lst__fail(err, LST_ERR_ARGUMENT, "--%s is needed", needed[i]);
    const char *out = cli_text(args, "out");
    const lst_ckpt_layout layout = (lst_ckpt_layout)cli_choice(args, "to");
    char *from;
    if (lst__is_file(out) || lst__is_dir(out))
        return lst__fail(err, LST_ERR_STATE, "%s is there already; remove it, or give another --out", out);
    lst_status status = find_file(args->positionals[0], &from, err);
    if (status != LST_OK)
        return status;
    status = lst_ckpt_convert_optim(from, out, layout,
                                    cli_given(args, "state") ? states[cli_choice(args, "state")] : LST_N_CODECS, err);
    if (status == LST_OK)
        printf("%s: optimizer state as %s keeps it, from %s\n", out, lst_ckpt_layout_name(layout), from);
    lst__free(from);
    return status;
}

static int run(const cli_args *args)
{
    lst_error err;
    return convert(args, &err) == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_convert_state = {
    .name = "convert-state",
    .summary = "optimizer state for bitsandbytes or PyTorch, and back",
    .positionals = "FROM --to LAYOUT --out FILE [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples = "  leanstep convert-state runs/demo-1 --to torch --out adamw.safetensors\n"
                "  leanstep convert-state runs/demo-1 --to bitsandbytes --out adamw8bit.safetensors\n"
                "  leanstep convert-state adamw8bit.safetensors --to leanstep --out optimizer.safetensors\n"
                "  leanstep convert-state adamw.safetensors --to leanstep --state q8 --out optimizer.safetensors\n",
    .text = "FROM is an optimizer.safetensors of any of these layouts, a checkpoint, or a run (then its newest "
            "checkpoint). In the\n"
            "new file a tensor is called state.PARAMETER.NAME, with PyTorch's names (exp_avg, exp_avg_sq, "
            "momentum_buffer, step)\n"
            "or bitsandbytes' (state1, absmax1, qmap1, ..., step); `param_groups` of the metadata is PyTorch's, as "
            "JSON, with\n"
            "parameters by name. Moments that keep their codec keep their bytes: to bitsandbytes and back is the "
            "same file bit for\n"
            "bit. bitsandbytes reads --state q8-dynamic and f32; any other is refused unless --state says what to "
            "code it as.\n",
    .tables = {{"Options", options}},
    .run = run,
};
