/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a safetensors file. What is accepted must tile its data, and every name must be found again.
 */
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int ok)
{
    if (!ok)
        abort();
}

static void check_accepted(const lst_st *st, const uint8_t *data, size_t n_bytes)
{
    size_t n_covered = 0;
    unsigned sum = 0;
    for (size_t i = 0; i < st->n_tensors; i++) {
        const lst_st_tensor *t = &st->tensors[i];
        require(lst__st_find(st, t->name) == t);
        require(t->data >= data + 8 && t->data + t->n_bytes <= data + n_bytes);
        require(t->n_elems * lst__st_dtype_bits(t->dtype) == t->n_bytes * 8);
        size_t n = 1;
        for (size_t d = 0; d < t->n_dims; d++)
            n *= t->dims[d];
        require(n == t->n_elems);
        n_covered += t->n_bytes;
        if (t->n_bytes > 0)
            sum += t->data[0] + t->data[t->n_bytes - 1];
    }
    volatile unsigned used = sum; /* the bytes were really read */
    (void)used;
    uint64_t n_header;
    memcpy(&n_header, data, 8);
    require(n_covered + 8 + n_header == n_bytes);
    for (size_t i = 0; i < st->n_metadata; i++)
        require(lst__st_metadata(st, st->metadata[i].key) == st->metadata[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    lst_st *st = NULL;
    lst_error err = {0};
    if (lst__st_parse(&st, "fuzzed", data, n_bytes, &err) == LST_OK) {
        check_accepted(st, data, n_bytes);
        lst__st_close(st);
    } else {
        require(st == NULL && err.message[0] != '\0');
    }
    return 0;
}
