/* SPDX-License-Identifier: MIT
 *
 * What the operating system says about memory: of this process, of the machine, of the cgroup.
 */
#ifndef LST_BASE_MEMORY_H
#define LST_BASE_MEMORY_H

#include <stdint.h>

#include "leanstep/status.h"

typedef struct lst_memory_use {
    uint64_t anon_bytes;      /* resident anonymous memory now (RssAnon + RssShmem) */
    uint64_t file_bytes;      /* resident file-backed memory now (RssFile): the kernel can take it back */
    uint64_t peak_bytes;      /* most resident ever, file-backed included (VmHWM) */
    uint64_t anon_peak_bytes; /* most anonymous ever seen by lst__memory_use calls or the watch of this process */
} lst_memory_use;

LST_MUST_USE lst_status lst__memory_use(lst_memory_use *out, lst_error *err);
/* Forgets the anonymous maximum seen so far (a measurement starts). */
void lst__memory_peak_reset(void);

/* A thread that looks every interval_ms (about 30 microseconds a look), so that a peak between two calls of
 * lst__memory_use is seen. One at a time; stop is allowed when none runs. */
LST_MUST_USE lst_status lst__memory_watch_start(unsigned interval_ms, lst_error *err);
void lst__memory_watch_stop(void);

typedef struct lst_memory_limit {
    uint64_t total_bytes; /* of the machine (MemTotal) */
    uint64_t
        available_bytes;    /* really available to this process: min(MemAvailable, cgroup limit - cgroup use, RLIMIT_AS,
                               * RLIMIT_DATA). Page cache that the cgroup could drop counts as available */
    uint64_t cgroup_bytes;  /* the cgroup's limit (v1 or v2), UINT64_MAX if none */
    const char *limited_by; /* "memory of the machine", "cgroup limit", "RLIMIT_AS", "RLIMIT_DATA" */
} lst_memory_limit;

LST_MUST_USE lst_status lst__memory_limit(lst_memory_limit *out, lst_error *err);

#endif
