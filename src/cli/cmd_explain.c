/* SPDX-License-Identifier: MIT
 *
 * leanstep explain: what formats and rules do to real bits, computed when asked with the code that trains.
 */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/explain.h"

static const struct {
    const char *name, *text;
    lst_status (*show)(lst_error *err);
} topics[] = {
#define CLI_X(name, text) {#name, text, cli_explain_##name},
    CLI_EXPLAIN_LIST(CLI_X)
#undef CLI_X
};

enum { N_TOPICS = sizeof topics / sizeof topics[0] };

static lst_status show(const char *topic, lst_error *err)
{
    char list[128] = "";
    for (size_t i = 0; i < N_TOPICS; i++) {
        if (strcmp(topics[i].name, topic) == 0)
            return topics[i].show(err);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", topics[i].name);
    }
    return lst__fail(err, LST_ERR_ARGUMENT, "there is no topic \"%s\"; there are: %s", topic, list);
}

static int run(const cli_args *args)
{
    lst_error err;
    if (args->n_positionals == 0) {
        for (size_t i = 0; i < N_TOPICS; i++)
            printf("leanstep explain %-7s %s\n", topics[i].name, topics[i].text);
        return CLI_OK;
    }
    return show(args->positionals[0], &err) == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_explain = {
    .name = "explain",
    .summary = "bf16, Adam, block scales, weight decay: shown on real numbers",
    .positionals = "[bf16 | adam | blocks | decay]",
    .max_positionals = 1,
    .examples = "  leanstep explain            the topics\n"
                "  leanstep explain bf16       an update of 0.0001 on a weight of 0.5\n"
                "  leanstep explain blocks     one outlier under one scale, and under block scales\n",
    .text = "Nothing is quoted: the numbers are computed when asked, by the codecs and rules that train.\n",
    .run = run,
};
