/* SPDX-License-Identifier: MIT
 *
 * Tokens on disk: what a text was encoded as, written once at the start of a run and read row by row. So data of any
 * size cost no memory. The file has no name: whatever ends the process, nothing is left of it.
 *
 * A token is 4 bytes: its id, and in the top bit whether it counts (whether something is to be learned by predicting
 * it).
 */
#ifndef LST_DATA_STORE_H
#define LST_DATA_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

#define DATA_COUNTS 0x80000000u

typedef struct data_store {
    int fd;
    uint64_t n;       /* tokens, the pending ones included */
    size_t n_pending; /* not written yet */
    uint32_t *pending;
    const char *folder; /* for messages; must outlive the store */
} data_store;

/* In `folder`, which must exist. */
LST_MUST_USE lst_status data_store_open(data_store *out, const char *folder, lst_error *err);
void data_store_close(data_store *store);
LST_MUST_USE lst_status data_store_add(data_store *store, const uint32_t *tokens, size_t n, lst_error *err);
/* Before the first read. */
LST_MUST_USE lst_status data_store_flush(data_store *store, lst_error *err);
LST_MUST_USE lst_status data_store_read(const data_store *store, uint64_t first, size_t n, uint32_t *out,
                                        lst_error *err);

#endif
