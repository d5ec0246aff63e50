/* SPDX-License-Identifier: MIT
 *
 * How data become tokens: the same words in train, data and eval, and the same lines about what was found.
 */
#ifndef CLI_DATA_OPTIONS_H
#define CLI_DATA_OPTIONS_H

#include "cli/args.h"
#include "cli/model_source.h"
#include "data/dataset.h"

/* --tokenizer, --chat, --pack, --loss: a table, under the title "Data". */
extern const cli_option cli_data_options[];
#define CLI_DATA_HELP                                                                                                  \
    "Data are a text file or a folder of them; a file of JSON lines (.jsonl) with {\"text\"}, {\"prompt\", "           \
    "\"completion\"},\n"                                                                                               \
    "{\"messages\"}, ShareGPT's {\"conversations\"} or Alpaca's {\"instruction\", \"input\", \"output\"}, or a "       \
    "folder of "                                                                                                       \
    "such files;\n"                                                                                                    \
    "or a token file of llm.c's. A JSON line is an example and gets a row of --seq tokens, padded with what does not " \
    "count;\n"                                                                                                         \
    "completions and what assistants say count. A {\"text\"} that is longer becomes several rows; of other examples "  \
    "the end\n"                                                                                                        \
    "is cut off, which is said and counted. --pack puts several whole examples into a row; they see those before "     \
    "them.\n"

/* What the options ask of the data. */
typedef struct cli_data_choice {
    char tokenizer[TRAIN_MAX_PATH]; /* the folder, absolute; "": bytes */
    char chat[TRAIN_MAX_CHAT];      /* "": what is recognised */
    bool pack, loss_all;
} cli_data_choice;

/* `given` is the folder, file or name given as MODEL. Its own tokenizer is used where it is a folder with one. Weights
 * for a vocabulary that is not bytes need a tokenizer. */
LST_MUST_USE lst_status cli_data_choose(const cli_args *args, const char *given, const lst_arch *arch, bool has_weights,
                                        cli_data_choice *out, lst_error *err);
/* What was found in `path` and what becomes of it. */
void cli_print_data(const char *path, const data_set *set, const data_encoder *encoder, bool loss_all);

#endif
