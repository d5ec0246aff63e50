/* SPDX-License-Identifier: MIT
 *
 * The door for small memory (tables, names, handles). Everything whose size grows with model, batch or data is in
 * the arena instead. Both doors share one fault hook: the n-th allocation from now on fails once.
 */
#ifndef LST_BASE_ALLOC_H
#define LST_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

/* Zeroed memory for n items of size bytes (overflow-checked), or NULL. */
void *lst__alloc(size_t n, size_t size);
/* As realloc for an array that grows; the new part is not zeroed. NULL on failure, the old block stays. */
void *lst__realloc(void *old, size_t n, size_t size);
char *lst__strdup(const char *text);
void lst__free(void *memory);

/* For tests: the n-th allocation from now (1: the next) fails; 0 switches the hook off. Arenas count too. */
void lst__fault_arm(uint64_t n);
/* Whether the armed fault has struck; and how many allocations were made since arming. */
uint64_t lst__fault_count(void);
int lst__fault_struck(void);
/* For base/ itself: nonzero if this allocation must fail. */
int lst__fault_now(void);

/* LST_ERR_MEMORY with a sentence that says what `what` needed how many bytes. */
LST_MUST_USE lst_status lst__fail_memory(lst_error *err, const char *what, uint64_t bytes);

#endif
