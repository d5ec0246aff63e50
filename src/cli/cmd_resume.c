/* SPDX-License-Identifier: MIT
 *
 * leanstep resume: goes on with a run from its newest checkpoint.
 */
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/run_options.h"

static const cli_option options[] = {
    {"steps", CLI_COUNT, "N", NULL, "a new total: the schedule is then that of N steps [as the run began]"},
    {"threads", CLI_COUNT, "N", NULL, "speed and scratch memory, never the numbers [as the run began]"},
    {"data", CLI_STRING, "PATH", NULL, "where the data are now, if they moved; they must be the same"},
    {"progress", CLI_CHOICE, CLI_PROGRESS_CHOICES, "auto", "a line written over, plain lines, or JSON lines"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static int run(const cli_args *args)
{
    char data[TRAIN_MAX_PATH];
    train_changes changes = {0};
    train_run *training;
    lst_error err;
    lst_status status = LST_OK;
    if (cli_given(args, "steps"))
        changes.total_steps = (int64_t)cli_count(args, "steps");
    if (cli_given(args, "threads"))
        changes.threads = (size_t)cli_count(args, "threads");
    if (cli_given(args, "data")) {
        status = cli_absolute(cli_text(args, "data"), data, sizeof data, &err);
        changes.data = data;
    }
    if (status == LST_OK)
        status = train_run_resume(&training, args->positionals[0], &changes, &err);
    if (status != LST_OK)
        return cli_fail(args, &err);
    if (cli_choice(args, "progress") != CLI_PROGRESS_JSON)
        printf("Going on after step %lld of %lld.\n", (long long)training->step,
               (long long)training->settings.schedule.total_steps);
    return cli_run(args, training);
}

const cli_command cli_command_resume = {
    .name = "resume",
    .summary = "go on with a run from its newest checkpoint, bit for bit",
    .positionals = "RUN [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples = "  leanstep resume runs/demo-1\n"
                "  leanstep resume runs/demo-1 --steps 4000          longer than was asked at first\n",
    .text = "RUN is a folder that `leanstep train` has made. Everything is taken from its settings.json. Data that "
            "have changed,\n"
            "or a checkpoint of another model, are refused. Lines of metrics.jsonl beyond the checkpoint are dropped "
            "and come again.\n",
    .tables = {{"Options", options}},
    .run = run,
};
