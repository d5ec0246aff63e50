/* SPDX-License-Identifier: MIT
 *
 * What a person, a log or a program sees of a run as it goes: one line that is written over on a terminal, a plain line
 * now and then in a log, JSON lines on request.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "train/loop.h"

#define CLI_PROGRESS_CHOICES "auto|line|plain|json|none"

typedef enum cli_progress_mode {
    CLI_PROGRESS_AUTO, /* a line on a terminal, plain elsewhere */
    CLI_PROGRESS_LINE,
    CLI_PROGRESS_PLAIN,
    CLI_PROGRESS_JSON, /* one object a step, on standard output */
    CLI_PROGRESS_NONE
} cli_progress_mode;

typedef struct cli_progress {
    cli_progress_mode mode; /* never AUTO once started */
    FILE *out;
    bool line_open;   /* a line without its line feed stands on the terminal */
    uint64_t last_ns; /* when something was printed */
} cli_progress;

void cli_progress_start(cli_progress *progress, cli_progress_mode mode);
/* The observer to hand to train_loop; it stops at a signal (cli/interrupt.h). */
train_observer cli_progress_observer(cli_progress *progress);
/* Ends the line on a terminal. */
void cli_progress_end(cli_progress *progress);

#endif
