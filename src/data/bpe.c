/* SPDX-License-Identifier: MIT
 *
 * The word is a doubly linked list; pairs that have a rank wait in a binary heap ordered by (rank, position). A merge
 * makes up to two new pairs and leaves stale ones behind, which are known by their ids when they come up. So a word of
 * n bytes takes O(n log n), however long: a file without a space is one word.
 */
#include "data/bpe.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"

lst_status data_ids_add(data_ids *list, int32_t id, lst_error *err)
{
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity * 2 + 64;
        int32_t *grown = lst__realloc(list->ids, capacity, sizeof *grown);
        if (!grown)
            return lst__fail_memory(err, "a list of tokens", capacity * sizeof *grown);
        list->ids = grown;
        list->capacity = capacity;
    }
    list->ids[list->n++] = id;
    return LST_OK;
}

lst_status data_bpe_make(data_bpe *out, size_t n_merges, lst_error *err)
{
    size_t n_places = 16;
    while (n_places < 2 * n_merges)
        n_places *= 2;
    *out = (data_bpe){.n_places = n_places, .merges = lst__alloc(n_places, sizeof *out->merges)};
    if (!out->merges)
        return lst__fail_memory(err, "the table of merges", n_places * sizeof *out->merges);
    for (size_t i = 0; i < n_places; i++)
        out->merges[i].left = out->merges[i].right = -1;
    return LST_OK;
}

void data_bpe_free(data_bpe *bpe)
{
    lst__free(bpe->merges);
    lst__free(bpe->nodes);
    lst__free(bpe->heap);
    *bpe = (data_bpe){0};
}

/* The pair's place, or the empty one where it belongs. */
static data_merge *place_of(const data_bpe *bpe, int32_t left, int32_t right)
{
    size_t i = lst__random_mix((uint64_t)(uint32_t)left << 32 | (uint32_t)right) & (bpe->n_places - 1);
    while (bpe->merges[i].left >= 0 && (bpe->merges[i].left != left || bpe->merges[i].right != right))
        i = (i + 1) & (bpe->n_places - 1);
    return &bpe->merges[i];
}

void data_bpe_add_merge(data_bpe *bpe, int32_t left, int32_t right, int32_t rank, int32_t result)
{
    data_merge *place = place_of(bpe, left, right);
    if (place->left < 0)
        *place = (data_merge){left, right, rank, result};
}

static bool before(const data_bpe_pair *a, const data_bpe_pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(data_bpe *bpe, data_bpe_pair pair)
{
    size_t i = bpe->heap_n++;
    for (; i > 0 && before(&pair, &bpe->heap[(i - 1) / 2]); i = (i - 1) / 2)
        bpe->heap[i] = bpe->heap[(i - 1) / 2];
    bpe->heap[i] = pair;
}

static data_bpe_pair heap_pop(data_bpe *bpe)
{
    const data_bpe_pair top = bpe->heap[0], last = bpe->heap[--bpe->heap_n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= bpe->heap_n)
            break;
        if (child + 1 < bpe->heap_n && before(&bpe->heap[child + 1], &bpe->heap[child]))
            child++;
        if (!before(&bpe->heap[child], &last))
            break;
        bpe->heap[i] = bpe->heap[child];
        i = child;
    }
    bpe->heap[i] = last;
    return top;
}

/* Queues the pair that begins at node `at`, if it has a rank. */
static void queue_pair(data_bpe *bpe, int32_t at)
{
    const int32_t next = at < 0 ? -1 : bpe->nodes[at].next;
    if (next < 0)
        return;
    const data_merge *m = place_of(bpe, bpe->nodes[at].id, bpe->nodes[next].id);
    if (m->left >= 0)
        heap_push(bpe, (data_bpe_pair){m->rank, at, m->left, m->right, m->result});
}

/* n nodes; each merge removes one and queues at most two pairs, so n - 1 + 2 (n - 1) entries are enough. */
static lst_status make_room(data_bpe *bpe, size_t n, lst_error *err)
{
    if (n > INT32_MAX)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "a word of %zu bytes: at most %d are read as one", n, INT32_MAX);
    if (n <= bpe->node_room)
        return LST_OK;
    data_bpe_node *nodes = lst__realloc(bpe->nodes, n, sizeof *nodes);
    if (nodes)
        bpe->nodes = nodes;
    data_bpe_pair *heap = nodes ? lst__realloc(bpe->heap, 3 * n, sizeof *heap) : NULL;
    if (!heap)
        return lst__fail_memory(err, "a word's byte pairs", n * (sizeof *nodes + 3 * sizeof *heap));
    bpe->heap = heap;
    bpe->node_room = n;
    return LST_OK;
}

lst_status data_bpe_encode(data_bpe *bpe, const char *word, size_t n, data_ids *out, lst_error *err)
{
    lst_status status = make_room(bpe, n, err);
    if (status != LST_OK)
        return status;
    size_t kept = 0; /* bytes without a token are left out, as the reference does */
    for (size_t i = 0; i < n; i++) {
        const int32_t id = bpe->byte_ids[(unsigned char)word[i]];
        if (id >= 0) {
            bpe->nodes[kept] = (data_bpe_node){id, (int32_t)kept - 1, (int32_t)kept + 1};
            kept++;
        }
    }
    if (kept == 0)
        return LST_OK;
    bpe->nodes[kept - 1].next = -1;
    n = kept;
    bpe->heap_n = 0;
    for (size_t i = 0; i + 1 < n; i++)
        queue_pair(bpe, (int32_t)i);
    while (bpe->heap_n > 0) {
        const data_bpe_pair pair = heap_pop(bpe);
        data_bpe_node *left = &bpe->nodes[pair.at];
        if (left->id != pair.left || left->next < 0 || bpe->nodes[left->next].id != pair.right)
            continue;
        data_bpe_node *right = &bpe->nodes[left->next];
        left->id = pair.result;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0)
            bpe->nodes[left->next].previous = pair.at;
        queue_pair(bpe, left->previous);
        queue_pair(bpe, pair.at);
    }
    for (int32_t i = n > 0 ? 0 : -1; i >= 0 && status == LST_OK; i = bpe->nodes[i].next)
        status = data_ids_add(out, bpe->nodes[i].id, err);
    return status;
}
