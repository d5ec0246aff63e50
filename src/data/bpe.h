/* SPDX-License-Identifier: MIT
 *
 * Byte-pair encoding of one word: its bytes become tokens, then the pair of neighbours with the lowest rank is merged,
 * leftmost first among equals, until no pair has a rank (Sennrich et al. 2016; on bytes as in GPT-2).
 */
#ifndef DATA_BPE_H
#define DATA_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

/* Ids that grow. Start with {0}; release with lst__free(list.ids). */
typedef struct data_ids {
    int32_t *ids;
    size_t n, capacity;
} data_ids;
LST_MUST_USE lst_status data_ids_add(data_ids *list, int32_t id, lst_error *err);

typedef struct data_merge {
    int32_t left, right; /* -1, -1: an empty place of the table */
    int32_t rank, result;
} data_merge;

typedef struct data_bpe_node {
    int32_t id, previous, next; /* neighbours in the word, -1 at its ends */
} data_bpe_node;

typedef struct data_bpe_pair {
    int32_t rank, at;    /* node of the left half */
    int32_t left, right; /* ids when it was queued: stale if the nodes have changed since */
    int32_t result;
} data_bpe_pair;

typedef struct data_bpe {
    int32_t byte_ids[256];
    size_t n_places; /* of the hash table: a power of two, at most half full */
    data_merge *merges;
    /* scratch of the word at work */
    size_t node_room, heap_room, heap_n;
    data_bpe_node *nodes;
    data_bpe_pair *heap;
} data_bpe;

/* An empty table with room for n_merges. byte_ids is the caller's to fill; -1: no token has this byte. */
LST_MUST_USE lst_status data_bpe_make(data_bpe *out, size_t n_merges, lst_error *err);
void data_bpe_free(data_bpe *bpe);
/* A pair merged before keeps its lower rank. */
void data_bpe_add_merge(data_bpe *bpe, int32_t left, int32_t right, int32_t rank, int32_t result);
/* Appends the tokens of a word of n bytes. */
LST_MUST_USE lst_status data_bpe_encode(data_bpe *bpe, const char *word, size_t n, data_ids *out, lst_error *err);

#endif
