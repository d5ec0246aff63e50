/* SPDX-License-Identifier: MIT
 *
 * What the control groups around this process allow, version 1 or 2. A limit of any ancestor binds, so all of them are
 * asked and the tightest answer counts.
 */
#ifndef LST_BASE_CGROUP_H
#define LST_BASE_CGROUP_H

#include <stdint.h>

typedef struct lst_cgroup {
    uint64_t memory_limit_bytes; /* the smallest limit; UINT64_MAX if there is none */
    uint64_t memory_free_bytes;  /* the smallest (limit - use + page cache it could drop); UINT64_MAX if no limit */
    double cpus;                 /* the smallest CPU quota, in processors; 0 if there is none */
} lst_cgroup;

/* Of this process. What cannot be read counts as no limit: there may be no control groups at all. */
void lst__cgroup_read(lst_cgroup *out);
/* The same with the two places named, for tests: the file like /proc/self/cgroup, the folder like /sys/fs/cgroup. */
void lst__cgroup_read_at(const char *membership_path, const char *mount_path, lst_cgroup *out);

#endif
