/* SPDX-License-Identifier: MIT */
#ifndef LST_BASE_CLOCK_H
#define LST_BASE_CLOCK_H

#include <stdint.h>

uint64_t lst__clock_ns(void); /* monotonic */

#endif
