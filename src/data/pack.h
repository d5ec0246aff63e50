/* SPDX-License-Identifier: MIT
 *
 * Packing: several examples a row, none of them cut.
 */
#ifndef LST_DATA_PACK_H
#define LST_DATA_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

typedef struct data_packed {
    size_t n_rows;
    size_t *first;   /* [n_rows + 1]: where a row's examples begin in order */
    uint32_t *order; /* examples, row after row */
} data_packed;

/* Best fit decreasing: the longest example first, each into the row in which it leaves the least room (the oldest of
 * equals). lengths[i] is at most `room`. The result depends on the lengths alone. */
LST_MUST_USE lst_status data_pack(data_packed *out, const uint32_t *lengths, size_t n, size_t room, lst_error *err);
void data_packed_free(data_packed *packed);

#endif
