/* SPDX-License-Identifier: MIT
 *
 * Arrays with an unreadable page on both sides: a kernel that touches one byte too many dies here.
 */
#ifndef TESTS_KERNELS_GUARDED_H
#define TESTS_KERNELS_GUARDED_H

#include <stddef.h>

enum { GUARDED_BYTES = 4096 };

typedef struct guarded {
    unsigned char *first; /* GUARDED_BYTES usable bytes; the byte before and the byte after are not */
} guarded;

/* Aborts the test program if the system refuses. */
guarded guarded_new(void);
void guarded_free(guarded g);

/* Where an array of `bytes` lies: `skip` bytes behind the first guard page, or `skip` bytes before the last. */
void *guarded_at(guarded g, int at_end, size_t skip, size_t bytes);

#endif
