/* SPDX-License-Identifier: MIT
 *
 * The options of `plan --for torch`: what decides the bytes of a PyTorch run, with its defaults.
 */
#ifndef CLI_TORCH_OPTIONS_H
#define CLI_TORCH_OPTIONS_H

#include "cli/args.h"
#include "leanstep/estimate.h"

extern const cli_option cli_torch_options[];

/* Whether --for torch is given; in either mode, an option of the other one is refused as without effect. */
LST_MUST_USE lst_status cli_torch_mode(const cli_args *args, bool *out, lst_error *err);
/* The run of a command line, and a line for every default that was taken. */
LST_MUST_USE lst_status cli_torch_run(const cli_args *args, lst_torch_run *out, lst_error *err);
void cli_torch_assumed(FILE *out, const cli_args *args);

/* What a card really offers, by name; LST_ERR_ARGUMENT lists the names. */
LST_MUST_USE lst_status cli_card_bytes(const char *name, uint64_t *out, lst_error *err);

#endif
