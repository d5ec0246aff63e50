/* SPDX-License-Identifier: MIT
 *
 * Ctrl-C and SIGTERM: the first asks the run to finish its step, save and stop; the second ends the program at once.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

/* Installs the handlers. A signal that is ignored (nohup) stays ignored. */
void cli_interrupt_watch(void);
/* The signal that came, or 0. The exit status of a stopped run is 128 + this: 130 for Ctrl-C, 143 for SIGTERM. */
int cli_interrupt_signal(void);

#endif
