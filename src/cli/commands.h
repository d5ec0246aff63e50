/* SPDX-License-Identifier: MIT
 *
 * The sub-commands. A new one is a line here and a file cmd_<name>.c that defines its cli_command_<name>.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/args.h"

/* In the order of `leanstep --help`. */
#define CLI_COMMAND_LIST(X)                                                                                            \
    X(plan)                                                                                                            \
    X(train)                                                                                                           \
    X(resume)                                                                                                          \
    X(convert_state)                                                                                                   \
    X(export)                                                                                                          \
    X(merge)                                                                                                           \
    X(init)                                                                                                            \
    X(generate)                                                                                                        \
    X(measure)                                                                                                         \
    X(compare)                                                                                                         \
    X(explain)                                                                                                         \
    X(bench)

#define CLI_X(name) extern const cli_command cli_command_##name;
CLI_COMMAND_LIST(CLI_X)
#undef CLI_X

#endif
