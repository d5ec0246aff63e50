/* SPDX-License-Identifier: MIT
 *
 * How much of a long test to run. Under a sanitizer, and with instruction sets taken away, a program is ten to fifty
 * times slower and its numbers are the same: such runs go through the same code with fewer repetitions. The plain run
 * always does everything.
 */
#ifndef TESTS_REDUCED_H
#define TESTS_REDUCED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool tests_reduced(void)
{
    return getenv("LEANSTEP_SANITIZED") || getenv("LEANSTEP_DISABLE_CPU");
}

/* `all` in a plain run, else `few`. */
static inline int tests_count(int all, int few)
{
    return tests_reduced() ? few : all;
}

#endif
