/* SPDX-License-Identifier: MIT */
#include "kernels/guarded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

guarded guarded_new(void)
{
    size_t page = page_bytes();
    size_t inner = (GUARDED_BYTES + page - 1) / page * page;
    unsigned char *map = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map + page, inner, PROT_READ | PROT_WRITE) != 0)
        abort();
    return (guarded){.first = map + page};
}

void guarded_free(guarded g)
{
    size_t page = page_bytes();
    munmap(g.first - page, (GUARDED_BYTES + page - 1) / page * page + 2 * page);
}

void *guarded_at(guarded g, int at_end, size_t skip, size_t bytes)
{
    size_t page = page_bytes();
    size_t inner = (GUARDED_BYTES + page - 1) / page * page;
    return at_end ? g.first + inner - skip - bytes : g.first + skip;
}
