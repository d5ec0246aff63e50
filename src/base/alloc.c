/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

static _Atomic uint64_t fault_at;
static _Atomic uint64_t fault_made;
static atomic_int fault_hit;

void lst__fault_arm(uint64_t n)
{
    atomic_store(&fault_hit, 0);
    atomic_store(&fault_made, 0);
    atomic_store(&fault_at, n);
}

uint64_t lst__fault_count(void)
{
    return atomic_load(&fault_made);
}

int lst__fault_struck(void)
{
    return atomic_load(&fault_hit);
}

int lst__fault_now(void)
{
    uint64_t at = atomic_load_explicit(&fault_at, memory_order_relaxed);
    if (at == 0)
        return 0;
    if (atomic_fetch_add(&fault_made, 1) + 1 != at)
        return 0;
    atomic_store(&fault_hit, 1);
    return 1;
}

void *lst__alloc(size_t n, size_t size)
{
    if (lst__fault_now())
        return NULL;
    return n == 0 || size == 0 ? calloc(1, 1) : calloc(n, size);
}

void *lst__realloc(void *old, size_t n, size_t size)
{
    if (lst__fault_now())
        return NULL;
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    return realloc(old, bytes == 0 ? 1 : bytes);
}

char *lst__strdup(const char *text)
{
    size_t n_bytes = strlen(text) + 1;
    char *copy = lst__alloc(n_bytes, 1);
    if (copy != NULL)
        memcpy(copy, text, n_bytes);
    return copy;
}

void lst__free(void *memory)
{
    free(memory);
}

lst_status lst__fail_memory(lst_error *err, const char *what, uint64_t bytes)
{
    return lst__fail(err, LST_ERR_MEMORY, "no memory: %s needs %llu bytes and the system did not give them", what,
                     (unsigned long long)bytes);
}
