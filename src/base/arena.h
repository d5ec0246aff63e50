/* SPDX-License-Identifier: MIT
 *
 * One block of memory, reserved once: huge pages asked for, every page touched before it is used, so that a run
 * that has started cannot run out of memory.
 */
#ifndef LST_BASE_ARENA_H
#define LST_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/pool.h"
#include "leanstep/status.h"

typedef struct lst_arena {
    unsigned char *base; /* aligned to 2 MiB */
    size_t bytes;        /* as asked for */
    size_t mapped;       /* what the system mapped: bytes rounded up to whole pages */
    void *mapping;
} lst_arena;

/* Zeroed. Touches all pages with the pool's threads (pool may be NULL). LST_ERR_MEMORY names bytes asked and there. */
LST_MUST_USE lst_status lst__arena_reserve(lst_arena *arena, size_t bytes, lst_pool *pool, lst_error *err);
void lst__arena_release(lst_arena *arena);

#endif
