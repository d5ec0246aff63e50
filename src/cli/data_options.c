/* SPDX-License-Identifier: MIT */
#include "cli/data_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/files.h"
#include "cli/run_options.h"
#include "data/bytes.h"

#define DATA_X(id, name, text) "|" name
const cli_option cli_data_options[] = {
    {"tokenizer", CLI_STRING, "DIR", NULL,
     "a folder with tokenizer.json, or `bytes` [MODEL's folder if it has one; else bytes]"},
    {"chat", CLI_CHOICE, DATA_CHAT_LIST(DATA_X), NULL,
     "the template of messages [as recognised in tokenizer_config.json]"},
    {"pack", CLI_FLAG, NULL, NULL, "several examples a row, as many as fit; none is cut for it"},
    {"loss", CLI_CHOICE, "completions|all", "completions",
     "of examples: what is learned, answers alone or prompts too"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};
#undef DATA_X

static const char *chat_name(const cli_args *args)
{
    return cli_given(args, "chat") ? data_chat_name((data_chat)cli_choice(args, "chat")) : "";
}

static void read_flags(const cli_args *args, cli_data_choice *out)
{
    strcpy(out->chat, chat_name(args));
    out->pack = cli_flag(args, "pack");
    out->loss_all = cli_choice(args, "loss") == 1;
}

/* A folder that was named must have a tokenizer. */
static lst_status use_folder(const char *folder, cli_data_choice *out, lst_error *err)
{
    if (!data_has_tokenizer(folder))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "--tokenizer %s: expected a folder with tokenizer.json, or `bytes` for text byte by byte",
                         folder);
    return cli_absolute(folder, out->tokenizer, sizeof out->tokenizer, err);
}

lst_status cli_data_choose(const cli_args *args, const char *given, const lst_arch *arch, bool has_weights,
                           cli_data_choice *out, lst_error *err)
{
    memset(out, 0, sizeof *out);
    read_flags(args, out);
    const char *named = cli_given(args, "tokenizer") ? cli_text(args, "tokenizer") : NULL;
    if (named && strcmp(named, "bytes") == 0)
        return LST_OK;
    if (named)
        return use_folder(named, out, err);
    if (lst__is_dir(given) && data_has_tokenizer(given))
        return cli_absolute(given, out->tokenizer, sizeof out->tokenizer, err);
    if (has_weights && arch->vocab != DATA_BYTES_VOCAB)
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s has weights for a vocabulary of %zu tokens and no tokenizer.json: put the model's beside "
                         "them, name its folder with --tokenizer, or give --tokenizer bytes",
                         given, arch->vocab);
    return LST_OK;
}
