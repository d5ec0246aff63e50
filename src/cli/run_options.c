/* SPDX-License-Identifier: MIT */
#include "cli/run_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define LST_X(id, name) "|" name
const cli_option cli_run_options[] = {
    {"data", CLI_STRING, "PATH", NULL, "text, JSON lines or tokens: a file or a folder (needed)"},
    {"out", CLI_STRING, "RUN", NULL, "the run's folder; must not exist [runs/MODEL-N]"},
    {"memory", CLI_SIZE, "SIZE", NULL, "what the run may take: 512MiB, 2GiB [what the machine has available]"},
    {"steps", CLI_COUNT, "N", NULL, "optimizer steps [1000]"},
    {"epochs", CLI_DOUBLE, "X", NULL, "the length in passes over the text, instead of --steps"},
    {"schedule", CLI_CHOICE, LST_SCHEDULE_LIST(LST_X), NULL,
     "how the rate goes after warm-up [cosine; constant for a rule that sets its rate itself]"},
    {"warmup", CLI_COUNT, "N", NULL, "steps in which the rate grows to --lr [a tenth of the run, at most 100]"},
    {"min-rate", CLI_DOUBLE, "X", NULL,
     "floor of the rate, as a part of --lr: *_min_lr, polynomial, warmup_stable_decay"},
    {"cycles", CLI_DOUBLE, "X", NULL, "cosine [0.5], cosine_with_restarts [1]"},
    {"power", CLI_DOUBLE, "X", NULL, "polynomial [1]"},
    {"decay-steps", CLI_COUNT, "N", NULL, "warmup_stable_decay: steps of the fall at the end"},
    {"decay", CLI_CHOICE, LST_DECAY_LIST(LST_X), NULL, "warmup_stable_decay: how it falls [cosine]"},
    {"seed", CLI_COUNT, "N", "1", "of first weights, split, order and sampling"},
    {"valid-fraction", CLI_DOUBLE, "X", "0.05", "of the text kept for validation, by document"},
    {"eval-every", CLI_COUNT, "N", "100", "steps between validations; 0: only at start and end"},
    {"eval-sequences", CLI_COUNT, "N", "64", "sequences of a validation, the same every time"},
    {"save-every", CLI_COUNT, "N", "200", "steps between checkpoints; 0: only at the end"},
    {"keep", CLI_COUNT, "N", "2", "checkpoints that stay"},
    {"sample-prompt", CLI_STRING, "TEXT", NULL, "what the sample at the end begins with [the start of a document]"},
    {"sample-tokens", CLI_COUNT, "N", "300", "length of the sample; 0: none"},
    {"temperature", CLI_DOUBLE, "X", "0.8", "of the sample; 0: always the likeliest"},
    {"top-k", CLI_COUNT, "N", "40", "the sample chooses among so many; 0: all"},
    {"progress", CLI_CHOICE, CLI_PROGRESS_CHOICES, "auto", "a line written over, plain lines, or JSON lines"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};
#undef LST_X

lst_status cli_absolute(const char *path, char *out, size_t n, lst_error *err)
{
    char *absolute = realpath(path, NULL);
    const char *use = absolute ? absolute : path;
    lst_status status = LST_OK;
    if (strlen(use) >= n)
        status = lst__fail(err, LST_ERR_ARGUMENT, "the path %.60s... is longer than %zu bytes", use, n - 1);
    else
        strcpy(out, use);
    free(absolute);
    return status;
}

static void read_schedule(const cli_args *args, train_settings *s)
{
    const bool own = train_keeps_own_rate(&s->recipe);
    lst_schedule *schedule = &s->schedule;
    schedule->kind = cli_given(args, "schedule") ? (lst_schedule_kind)cli_choice(args, "schedule")
                     : own                       ? LST_SCHEDULE_CONSTANT
                                                 : LST_SCHEDULE_COSINE;
    schedule->warmup_steps = cli_given(args, "warmup") ? (int64_t)cli_count(args, "warmup") : own ? 0 : -1;
    schedule->min_rate = cli_given(args, "min-rate") ? cli_real(args, "min-rate") : 0;
    schedule->cycles = cli_given(args, "cycles") ? cli_real(args, "cycles") : 0;
    schedule->power = cli_given(args, "power") ? cli_real(args, "power") : 0;
    schedule->decay_steps = cli_given(args, "decay-steps") ? (int64_t)cli_count(args, "decay-steps") : 0;
    schedule->decay = cli_given(args, "decay") ? (lst_decay_kind)cli_choice(args, "decay") : LST_DECAY_COSINE;
}

lst_status cli_run_settings(const cli_args *args, train_settings *s, lst_error *err)
{
    if (!cli_given(args, "data"))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "no text to train on: give --data PATH, a text file or a folder of them");
    lst_status status = cli_not_both(args, "steps", "epochs", "each says how long the run is; give one", err);
    if (status == LST_OK)
        status = cli_absolute(cli_text(args, "data"), s->data, sizeof s->data, err);
    if (status != LST_OK)
        return status;
    const char *prompt = cli_given(args, "sample-prompt") ? cli_text(args, "sample-prompt") : "";
    if (strlen(prompt) >= sizeof s->prompt)
        return lst__fail(err, LST_ERR_ARGUMENT, "--sample-prompt is longer than %zu bytes", sizeof s->prompt - 1);
    strcpy(s->prompt, prompt);
    s->memory_limit = cli_given(args, "memory") ? cli_count(args, "memory") : 0;
    if (cli_given(args, "steps"))
        s->schedule.total_steps = (int64_t)cli_count(args, "steps");
    if (cli_given(args, "steps") && s->schedule.total_steps == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "--steps 0: expected at least 1");
    if (cli_given(args, "epochs")) {
        s->schedule.total_steps = 0;
        s->epochs = cli_real(args, "epochs");
    }
    read_schedule(args, s);
    s->seed = cli_count(args, "seed");
    s->valid_fraction = cli_real(args, "valid-fraction");
    s->eval_every = (size_t)cli_count(args, "eval-every");
    s->eval_sequences = (size_t)cli_count(args, "eval-sequences");
    s->save_every = (size_t)cli_count(args, "save-every");
    s->keep = (size_t)cli_count(args, "keep");
    s->sample_tokens = (size_t)cli_count(args, "sample-tokens");
    s->temperature = cli_real(args, "temperature");
    s->top_k = (size_t)cli_count(args, "top-k");
    if (s->temperature == 0 && !cli_given(args, "top-k"))
        s->top_k = 0; /* a default must not contradict an option that was given */
    return LST_OK;
}
