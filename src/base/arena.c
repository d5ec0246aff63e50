/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/memory.h"

/* Why everything is touched at once: Linux gives addresses freely and kills a process when it runs out of pages, so a
 * block that was only mapped may fail an hour later. First touch of 1 GiB took 0.75 s in 4 KiB pages and 0.2-0.3 s in
 * huge pages on a Zen 3 machine, half of that with two threads. */

#define HUGE_BYTES ((size_t)2 << 20)
/* Part of the arena that one task touches; fixed, so that tasks do not depend on the number of threads. */
#define TOUCH_BYTES ((size_t)16 << 20)

#define GIB(bytes) ((double)(bytes) / 1073741824.0)
#define GB(bytes) ((double)(bytes) / 1e9)

static void touch_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    const lst_arena *arena = context;
    size_t begin = index * TOUCH_BYTES;
    size_t n = arena->mapped - begin < TOUCH_BYTES ? arena->mapped - begin : TOUCH_BYTES;
#ifdef MADV_POPULATE_WRITE
    if (madvise(arena->base + begin, n, MADV_POPULATE_WRITE) == 0)
        return;
#endif
    for (size_t i = 0; i < n; i += 4096)
        *(volatile unsigned char *)(arena->base + begin + i) = 0;
}

static lst_status fail_reserve(lst_error *err, size_t bytes, uint64_t available, const char *limited_by)
{
    return lst__fail(
        err, LST_ERR_MEMORY,
        "the run needs %.3f GiB (%.3f GB) in one block, but %.3f GiB (%.3f GB) are available to this process "
        "(%s); make the run smaller (leanstep plan --memory lists the ways) or free memory",
        GIB(bytes), GB(bytes), GIB(available), GB(available), limited_by);
}

/* An anonymous mapping of exactly n bytes (whole pages) at a multiple of HUGE_BYTES, or NULL. The slack that alignment
 * needed is given back, so that no huge page can reach beyond the end. */
static unsigned char *map_aligned(size_t n)
{
    size_t asked = n + HUGE_BYTES;
    unsigned char *raw = mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    size_t head = (HUGE_BYTES - (size_t)((uintptr_t)raw % HUGE_BYTES)) % HUGE_BYTES;
    size_t tail = HUGE_BYTES - head;
    if (head > 0)
        munmap(raw, head);
    if (tail > 0)
        munmap(raw + head + n, tail);
    return raw + head;
}

lst_status lst__arena_reserve(lst_arena *arena, size_t bytes, lst_pool *pool, lst_error *err)
{
    lst_memory_limit limit;
    lst_status status = lst__memory_limit(&limit, err);
    if (status != LST_OK)
        return status;
    if (bytes > limit.available_bytes || bytes > SIZE_MAX - 2 * HUGE_BYTES)
        return fail_reserve(err, bytes, limit.available_bytes, limit.limited_by);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped = bytes == 0 ? page : (bytes + page - 1) / page * page;
    unsigned char *base = lst__fault_now() ? NULL : map_aligned(mapped);
    if (base == NULL)
        return fail_reserve(err, bytes, limit.available_bytes,
                            "but the system refused the block: see ulimit -v, overcommit");
    /* Advice only: without huge pages the run is slower and still right. */
    (void)madvise(base, mapped, MADV_HUGEPAGE);
    *arena = (lst_arena){.base = base, .bytes = bytes, .mapped = mapped, .mapping = base};
    lst_pool_run(pool, (mapped + TOUCH_BYTES - 1) / TOUCH_BYTES, touch_task, arena);
    return LST_OK;
}

void lst__arena_release(lst_arena *arena)
{
    if (arena == NULL || arena->mapping == NULL)
        return;
    munmap(arena->mapping, arena->mapped);
    memset(arena, 0, sizeof *arena);
}
