/* SPDX-License-Identifier: MIT */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In a container the path of membership may be the host's while the mount shows only our part of the tree. Then the
 * deeper folders do not exist and the walk up ends at the mount itself, which holds the container's own limits. */

enum { PATH_BYTES = 4096 };

/* The file's first line that starts with key ("" for the first line), from behind the key. */
static bool read_line(const char *dir, const char *file, const char *key, char *out, size_t out_bytes)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, in) != NULL) {
        found = strncmp(line, key, strlen(key)) == 0;
        if (found)
            snprintf(out, out_bytes, "%s", line + strlen(key));
    }
    fclose(in);
    return found;
}

/* A byte count; "max" and absence give `otherwise`. */
static uint64_t read_bytes(const char *dir, const char *file, const char *key, uint64_t otherwise)
{
    char text[64];
    if (!read_line(dir, file, key, text, sizeof text))
        return otherwise;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return end == text ? otherwise : value;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void note_memory(lst_cgroup *out, uint64_t limit, uint64_t use, uint64_t cache)
{
    /* Version 1 says "no limit" with a number near 2^63. */
    if (limit >= UINT64_MAX / 4)
        return;
    uint64_t held = use > cache ? use - cache : 0;
    out->memory_limit_bytes = min_u64(out->memory_limit_bytes, limit);
    out->memory_free_bytes = min_u64(out->memory_free_bytes, limit > held ? limit - held : 0);
}

static void note_cpus(lst_cgroup *out, double quota_us, double period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return;
    double cpus = quota_us / period_us;
    if (out->cpus == 0 || cpus < out->cpus)
        out->cpus = cpus;
}

static void read_v2(const char *dir, lst_cgroup *out)
{
    uint64_t limit =
        min_u64(read_bytes(dir, "memory.max", "", UINT64_MAX), read_bytes(dir, "memory.high", "", UINT64_MAX));
    note_memory(out, limit, read_bytes(dir, "memory.current", "", 0),
                read_bytes(dir, "memory.stat", "inactive_file ", 0));
    char text[128];
    double quota_us, period_us;
    if (read_line(dir, "cpu.max", "", text, sizeof text) && sscanf(text, "%lf %lf", &quota_us, &period_us) == 2)
        note_cpus(out, quota_us, period_us);
}

static void read_v1_memory(const char *dir, lst_cgroup *out)
{
    note_memory(out, read_bytes(dir, "memory.limit_in_bytes", "", UINT64_MAX),
                read_bytes(dir, "memory.usage_in_bytes", "", 0),
                read_bytes(dir, "memory.stat", "total_inactive_file ", 0));
}

static void read_v1_cpu(const char *dir, lst_cgroup *out)
{
    char text[64];
    double quota_us = 0, period_us = 0;
    if (read_line(dir, "cpu.cfs_quota_us", "", text, sizeof text))
        quota_us = strtod(text, NULL);
    if (read_line(dir, "cpu.cfs_period_us", "", text, sizeof text))
        period_us = strtod(text, NULL);
    note_cpus(out, quota_us, period_us);
}

/* Calls read for mount+group and each of its ancestors up to the mount. */
static void walk_up(const char *mount, const char *group, void (*read)(const char *, lst_cgroup *), lst_cgroup *out)
{
    char dir[PATH_BYTES];
    if ((size_t)snprintf(dir, sizeof dir, "%s%s", mount, group) >= sizeof dir)
        snprintf(dir, sizeof dir, "%s", mount);
    size_t stop = strlen(mount);
    while (strlen(dir) > stop) {
        read(dir, out);
        char *slash = strrchr(dir + stop, '/');
        if (slash == NULL)
            break;
        *slash = '\0';
    }
    read(mount, out);
}

static bool has_controller(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* One line of membership, "N:controllers:path"; version 2 has no controllers. */
static void read_membership(char *line, const char *mount_path, lst_cgroup *out)
{
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL)
        return;
    *controllers++ = '\0';
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    char mount[PATH_BYTES];
    if (*controllers == '\0') {
        walk_up(mount_path, group, read_v2, out);
        snprintf(mount, sizeof mount, "%s/unified", mount_path);
        walk_up(mount, group, read_v2, out);
    }
    if (has_controller(controllers, "memory")) {
        snprintf(mount, sizeof mount, "%s/memory", mount_path);
        walk_up(mount, group, read_v1_memory, out);
    }
    if (has_controller(controllers, "cpu")) {
        snprintf(mount, sizeof mount, "%s/%s", mount_path, controllers);
        walk_up(mount, group, read_v1_cpu, out);
        snprintf(mount, sizeof mount, "%s/cpu", mount_path);
        walk_up(mount, group, read_v1_cpu, out);
    }
}

void lst__cgroup_read_at(const char *membership_path, const char *mount_path, lst_cgroup *out)
{
    *out = (lst_cgroup){.memory_limit_bytes = UINT64_MAX, .memory_free_bytes = UINT64_MAX, .cpus = 0};
    FILE *in = fopen(membership_path, "re");
    if (in == NULL)
        return;
    char line[PATH_BYTES];
    while (fgets(line, sizeof line, in) != NULL)
        read_membership(line, mount_path, out);
    fclose(in);
}

void lst__cgroup_read(lst_cgroup *out)
{
    lst__cgroup_read_at("/proc/self/cgroup", "/sys/fs/cgroup", out);
}
