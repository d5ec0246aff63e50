/* SPDX-License-Identifier: MIT
 *
 * leanstep: finds the command and hands it its words.
 */
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/commands.h"

static const cli_command *const commands[] = {
#define CLI_X(name) &cli_command_##name,
    CLI_COMMAND_LIST(CLI_X)
#undef CLI_X
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static void print_usage(FILE *out)
{
    fprintf(out,
            "Leanstep trains neural networks in the memory you have: it plans every byte of a run before it starts.\n\n"
            "  leanstep plan --params 7e9        what 7 billion parameters take, by optimizer and precision\n"
            "  leanstep plan gpt2 --memory 1GiB  how GPT-2 trains in 1 GiB, and what a better way would need\n\n"
            "Commands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-14s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out,
            "\n`leanstep COMMAND --help` shows examples and every option. `leanstep --version` prints the version.\n"
            "Exit status: 0 done (plan: it fits), 1 the run failed (plan: it does not fit), 2 wrong usage.\n");
}

static int fail_command(const char *name)
{
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i]->name;
    const char *near = cli_nearest(name, names, N_COMMANDS);
    fprintf(stderr, "leanstep: there is no command \"%s\"", name);
    if (near)
        fprintf(stderr, "; did you mean \"%s\"?", near);
    fprintf(stderr, "\n`leanstep --help` lists the commands.\n");
    return CLI_USAGE;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    static cli_args args;
    lst_error err;
    if (cli_args_parse(command, argc, argv, &args, &err) != LST_OK)
        return cli_fail(&args, &err);
    if (args.help) {
        cli_help(stdout, command);
        return CLI_OK;
    }
    return command->run(&args);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    bool help = !strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h");
    if (help && argc <= 2) {
        print_usage(argc > 1 ? stdout : stderr);
        return argc > 1 ? CLI_OK : CLI_USAGE;
    }
    if (!strcmp(word, "--version")) {
        printf("leanstep " LEANSTEP_VERSION "\n");
        return CLI_OK;
    }
    const cli_command *command = find_command(help ? argv[2] : word);
    if (!command)
        return fail_command(help ? argv[2] : word);
    if (help) {
        cli_help(stdout, command);
        return CLI_OK;
    }
    int status = run_command(command, argc - 2, argv + 2);
    /* Output that could not be written (a full disk, a closed pipe) is a failure, not a success nobody saw. */
    if (fflush(stdout) != 0 && status == CLI_OK) {
        perror("leanstep: standard output");
        return CLI_FAILED;
    }
    return status;
}
