/* SPDX-License-Identifier: MIT */
#include "data/pack.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define NONE UINT32_MAX

typedef struct packing {
    size_t n, room;
    const uint32_t *lengths;
    uint32_t *sorted;   /* [n]: examples, longest first, then in their order */
    uint32_t *row_of;   /* [n] */
    uint32_t *head;     /* [room + 1]: oldest row with so much room left */
    uint32_t *tail;     /* [room + 1] */
    uint32_t *next;     /* [n]: rows of equal room */
    uint64_t *occupied; /* a bit for each room that some row has */
    size_t n_rows;
} packing;

/* By counting: lengths are bounded. `head` serves as the counters. */
static void sort_by_length(packing *p)
{
    memset(p->head, 0, (p->room + 1) * sizeof *p->head);
    for (size_t i = 0; i < p->n; i++)
        p->head[p->lengths[i]]++;
    uint32_t at = 0;
    for (size_t length = p->room + 1; length-- > 0;) {
        const uint32_t count = p->head[length];
        p->head[length] = at;
        at += count;
    }
    for (size_t i = 0; i < p->n; i++)
        p->sorted[p->head[p->lengths[i]]++] = (uint32_t)i;
}

static void put_row(packing *p, uint32_t row, size_t left)
{
    p->next[row] = NONE;
    if (p->head[left] == NONE)
        p->head[left] = row;
    else
        p->next[p->tail[left]] = row;
    p->tail[left] = row;
    p->occupied[left / 64] |= (uint64_t)1 << (left % 64);
}

static uint32_t take_row(packing *p, size_t left)
{
    const uint32_t row = p->head[left];
    p->head[left] = p->next[row];
    if (p->head[left] == NONE)
        p->occupied[left / 64] &= ~((uint64_t)1 << (left % 64));
    return row;
}

/* The least room of any row that is at least `length`; room + 1: none. */
static size_t best_room(const packing *p, size_t length)
{
    size_t word = length / 64;
    uint64_t bits = p->occupied[word] & ~(uint64_t)0 << (length % 64);
    while (bits == 0 && ++word <= p->room / 64)
        bits = p->occupied[word];
    if (bits == 0)
        return p->room + 1;
    size_t bit = 0;
    while (!(bits >> bit & 1))
        bit++;
    return word * 64 + bit;
}

static void fill_rows(packing *p)
{
    memset(p->head, 0xff, (p->room + 1) * sizeof *p->head);
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t example = p->sorted[i];
        const size_t length = p->lengths[example], found = best_room(p, length);
        const bool fresh = found > p->room;
        const uint32_t row = fresh ? (uint32_t)p->n_rows++ : take_row(p, found);
        p->row_of[example] = row;
        put_row(p, row, (fresh ? p->room : found) - length);
    }
}

/* Rows one after another; in a row, longest first. */
static lst_status list_rows(const packing *p, data_packed *out, lst_error *err)
{
    out->n_rows = p->n_rows;
    out->first = lst__alloc(p->n_rows + 2, sizeof *out->first);
    out->order = lst__alloc(p->n, sizeof *out->order);
    if (!out->first || !out->order)
        return lst__fail_memory(err, "the rows of examples", p->n * sizeof *out->order);
    for (size_t i = 0; i < p->n; i++)
        out->first[p->row_of[i] + 2]++;
    for (size_t row = 1; row <= p->n_rows; row++)
        out->first[row + 1] += out->first[row];
    for (size_t i = 0; i < p->n; i++)
        out->order[out->first[p->row_of[p->sorted[i]] + 1]++] = p->sorted[i];
    return LST_OK;
}

lst_status data_pack(data_packed *out, const uint32_t *lengths, size_t n, size_t room, lst_error *err)
{
    packing p = {.n = n, .room = room, .lengths = lengths};
    data_packed packed = {0};
    p.sorted = lst__alloc(n, sizeof *p.sorted);
    p.row_of = lst__alloc(n, sizeof *p.row_of);
    p.next = lst__alloc(n, sizeof *p.next);
    p.head = lst__alloc(room + 1, sizeof *p.head);
    p.tail = lst__alloc(room + 1, sizeof *p.tail);
    p.occupied = lst__alloc(room / 64 + 1, sizeof *p.occupied);
    lst_status status = LST_OK;
    if (!p.sorted || !p.row_of || !p.next || !p.head || !p.tail || !p.occupied)
        status = lst__fail_memory(err, "packing", 3 * n * sizeof(uint32_t));
    if (status == LST_OK) {
        sort_by_length(&p);
        fill_rows(&p);
        status = list_rows(&p, &packed, err);
    }
    lst__free(p.sorted);
    lst__free(p.row_of);
    lst__free(p.next);
    lst__free(p.head);
    lst__free(p.tail);
    lst__free(p.occupied);
    if (status == LST_OK)
        *out = packed;
    else
        data_packed_free(&packed);
    return status;
}

void data_packed_free(data_packed *packed)
{
    lst__free(packed->first);
    lst__free(packed->order);
    *packed = (data_packed){0};
}
