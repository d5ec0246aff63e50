/* SPDX-License-Identifier: MIT */
#include "cli/levers.h"

#include "cli/print.h"

#define MAX_LEVERS 24

lst_status cli_print_levers(FILE *out, const lst_plan *plan, lst_error *err)
{
    lst_lever levers[MAX_LEVERS];
    size_t n = MAX_LEVERS;
    lst_status status = lst_plan_levers(plan, levers, &n, err);
    if (status != LST_OK || n == 0)
        return status;
    fprintf(out, "\nWhat would help, each alone, most bytes first:\n\n  %11s  %11s  %-28s %s\n", "saves", "then",
            "option", "what it does; its price");
    for (size_t i = 0; i < n; i++) {
        char saves[32], then[32];
        fprintf(out, "  %11s  %11s  %-28s %s; %s\n", cli_print_binary(saves, sizeof saves, levers[i].saves),
                cli_print_binary(then, sizeof then, levers[i].arena_bytes), levers[i].option, levers[i].what,
                levers[i].price);
    }
    return LST_OK;
}
