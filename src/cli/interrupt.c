/* SPDX-License-Identifier: MIT */
#include "cli/interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void handle(int number)
{
    static const char message[] = "\nFinishing this step, then saving. Once more ends at once, without saving.\n";
    if (caught)
        _exit(128 + number);
    caught = number;
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
}

void cli_interrupt_watch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action, before;
        memset(&action, 0, sizeof action);
        action.sa_handler = handle;
        action.sa_flags = SA_RESTART;
        sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

int cli_interrupt_signal(void)
{
    return caught;
}
