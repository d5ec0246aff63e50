/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cgroup.h"
#include "base/fail.h"

static _Atomic uint64_t anon_peak;

/* One "Key:  123 kB" line wanted from a file of /proc. */
typedef struct wanted {
    const char *key;
    uint64_t bytes;
    bool found;
} wanted;

static void match_line(const char *line, wanted *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(list[i].key);
        if (strncmp(line, list[i].key, length) == 0 && line[length] == ':') {
            list[i].bytes = (uint64_t)strtoull(line + length + 1, NULL, 10) * 1024;
            list[i].found = true;
        }
    }
}

static lst_status read_proc(const char *path, wanted *list, size_t n, lst_error *err)
{
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return lst__fail_errno(err, errno, "cannot open %s, which tells how much memory is used", path);
    char line[256];
    while (fgets(line, sizeof line, in) != NULL)
        match_line(line, list, n);
    fclose(in);
    for (size_t i = 0; i < n; i++)
        if (!list[i].found)
            return lst__fail(err, LST_ERR_UNSUPPORTED, "%s has no line \"%s:\"; Linux 4.5 or newer is needed", path,
                             list[i].key);
    return LST_OK;
}

static uint64_t raise_peak(uint64_t now)
{
    uint64_t peak = atomic_load(&anon_peak);
    while (now > peak && !atomic_compare_exchange_weak(&anon_peak, &peak, now)) {
    }
    return now > peak ? now : peak;
}

lst_status lst__memory_use(lst_memory_use *out, lst_error *err)
{
    wanted list[] = {{.key = "VmHWM"}, {.key = "RssAnon"}, {.key = "RssFile"}, {.key = "RssShmem"}};
    lst_status status = read_proc("/proc/self/status", list, 4, err);
    if (status != LST_OK)
        return status;
    uint64_t anon = list[1].bytes + list[3].bytes;
    *out = (lst_memory_use){.anon_bytes = anon,
                            .file_bytes = list[2].bytes,
                            .peak_bytes = list[0].bytes,
                            .anon_peak_bytes = raise_peak(anon)};
    return LST_OK;
}

void lst__memory_peak_reset(void)
{
    atomic_store(&anon_peak, 0);
}

/* Lowers *available to limit - used if that is less, and remembers who said so. */
static void bound(lst_memory_limit *out, uint64_t limit, uint64_t used, const char *who)
{
    uint64_t left = limit > used ? limit - used : 0;
    if (left >= out->available_bytes)
        return;
    out->available_bytes = left;
    out->limited_by = who;
}

static void bound_by_rlimit(lst_memory_limit *out, int resource, uint64_t used, const char *who)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bound(out, (uint64_t)limit.rlim_cur, used, who);
}

lst_status lst__memory_limit(lst_memory_limit *out, lst_error *err)
{
    wanted machine[] = {{.key = "MemTotal"}, {.key = "MemAvailable"}};
    wanted self[] = {{.key = "VmSize"}, {.key = "VmData"}};
    lst_status status = read_proc("/proc/meminfo", machine, 2, err);
    if (status == LST_OK)
        status = read_proc("/proc/self/status", self, 2, err);
    if (status != LST_OK)
        return status;
    lst_cgroup group;
    lst__cgroup_read(&group);
    lst_memory_limit limit = {.total_bytes = machine[0].bytes,
                              .available_bytes = machine[1].bytes,
                              .cgroup_bytes = group.memory_limit_bytes,
                              .limited_by = "memory of the machine"};
    bound(&limit, group.memory_free_bytes, 0, "cgroup limit");
    bound_by_rlimit(&limit, RLIMIT_AS, self[0].bytes, "RLIMIT_AS");
    bound_by_rlimit(&limit, RLIMIT_DATA, self[1].bytes, "RLIMIT_DATA");
    *out = limit;
    return LST_OK;
}

/* ---- the watch ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t thread;
    unsigned interval_ms;
    bool running, stop;
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void *watch_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&watch.mutex);
    while (!watch.stop) {
        lst_memory_use use;
        lst_status status = lst__memory_use(&use, NULL);
        if (status != LST_OK)
            break;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)(watch.interval_ms % 1000) * 1000000L;
        until.tv_sec += (time_t)(watch.interval_ms / 1000) + until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&watch.wake, &watch.mutex, &until);
    }
    pthread_mutex_unlock(&watch.mutex);
    return NULL;
}

lst_status lst__memory_watch_start(unsigned interval_ms, lst_error *err)
{
    if (watch.running)
        return lst__fail(err, LST_ERR_STATE, "the memory watch runs already; stop it first");
    if (interval_ms == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "the memory watch needs an interval of at least 1 ms");
    watch.interval_ms = interval_ms;
    watch.stop = false;
    int error = pthread_create(&watch.thread, NULL, watch_main, NULL);
    if (error != 0)
        return lst__fail_errno(err, error, "cannot start the thread that watches memory");
    watch.running = true;
    return LST_OK;
}

void lst__memory_watch_stop(void)
{
    if (!watch.running)
        return;
    pthread_mutex_lock(&watch.mutex);
    watch.stop = true;
    pthread_cond_signal(&watch.wake);
    pthread_mutex_unlock(&watch.mutex);
    pthread_join(watch.thread, NULL);
    watch.running = false;
}
