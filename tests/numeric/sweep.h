/* SPDX-License-Identifier: MIT
 *
 * How far a sweep over all float32 patterns goes: every 8,191st (and its neighbours) in the short suite, all 2^32 with
 * LEANSTEP_LONG=1.
 */
#ifndef TESTS_NUMERIC_SWEEP_H
#define TESTS_NUMERIC_SWEEP_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t sweep_step(void)
{
    const char *text = getenv("LEANSTEP_LONG");
    return text && *text && *text != '0' ? 1 : 8191;
}

#endif
