/* SPDX-License-Identifier: MIT
 *
 * Packing lifetimes into one arena.
 *
 * What lives from the first phase to the last comes first, tensor by tensor. The rest is packed above it, each at the
 * offset where it wastes least among the buffers whose lives it shares (best fit), else on top; largest first, or in
 * another order if that leaves holes.
 *
 * Streams that share an offset modulo 4,096 bytes make a processor take loads for stores it has not finished (only 12
 * bits are compared) and throw lines out of the same sets of its first cache: measured, 9 instead of 34 GB/s. So each
 * kind of persistent buffer has a residue of its own, and a tensor's weight, slots and gradient are told apart by it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "plan/buffers.h"

#define ALIGNMENT 64
#define PAGE 4096
/* Distance of residues: 7 kinds (weight, up to 5 slots, gradient) within a page. */
#define STAGGER 512

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static bool is_persistent(const lst_plan *plan, const lst_buffer *b)
{
    return b->first_phase == 0 && b->last_phase == plan->n_phases - 1;
}

/* The residue modulo PAGE at which a buffer of a tensor is put; -1: any. */
static int residue_of(const lst_buffer *b)
{
    if (b->kind == LST_BUFFER_WEIGHT)
        return 0;
    if (b->kind == LST_BUFFER_SLOT)
        return STAGGER * (1 + b->layer % (LST_MAX_SLOTS + 1));
    return b->kind == LST_BUFFER_GRADIENT ? STAGGER * 7 : -1;
}

/* Small tensors stream for less than a page: padding them would cost more than it saves. */
static size_t next_offset(const lst_buffer *b, size_t top)
{
    int residue = residue_of(b);
    if (residue < 0 || b->bytes < 4 * PAGE)
        return round_up(top, ALIGNMENT);
    size_t page = top / PAGE * PAGE + (size_t)residue;
    return page >= top ? page : page + PAGE;
}

static int compare_tensors(const void *left, const void *right)
{
    const lst_buffer *a = *(lst_buffer *const *)left, *b = *(lst_buffer *const *)right;
    if (a->index != b->index && a->kind <= LST_BUFFER_GRADIENT && b->kind <= LST_BUFFER_GRADIENT)
        return a->index < b->index ? -1 : 1;
    bool a_other = a->kind > LST_BUFFER_GRADIENT, b_other = b->kind > LST_BUFFER_GRADIENT;
    if (a_other != b_other)
        return a_other ? 1 : -1;
    return a < b ? -1 : a > b; /* the plan's order: kind, layer, index */
}

static int compare_firsts(const lst_buffer *a, const lst_buffer *b)
{
    if (a->first_phase != b->first_phase)
        return a->first_phase < b->first_phase ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int compare_sizes(const void *left, const void *right)
{
    const lst_buffer *a = *(lst_buffer *const *)left, *b = *(lst_buffer *const *)right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return compare_firsts(a, b);
}

static int life(const lst_buffer *b)
{
    return b->last_phase - b->first_phase + 1;
}

static int compare_lives(const void *left, const void *right)
{
    const lst_buffer *a = *(lst_buffer *const *)left, *b = *(lst_buffer *const *)right;
    return life(a) != life(b) ? (life(a) > life(b) ? -1 : 1) : compare_sizes(left, right);
}

static int compare_areas(const void *left, const void *right)
{
    const lst_buffer *a = *(lst_buffer *const *)left, *b = *(lst_buffer *const *)right;
    double area_a = (double)a->bytes * life(a), area_b = (double)b->bytes * life(b);
    return area_a != area_b ? (area_a > area_b ? -1 : 1) : compare_firsts(a, b);
}

static int compare_starts(const void *left, const void *right)
{
    const lst_buffer *a = *(lst_buffer *const *)left, *b = *(lst_buffer *const *)right;
    return a->first_phase != b->first_phase ? (a->first_phase < b->first_phase ? -1 : 1) : compare_lives(left, right);
}

typedef int compare_fn(const void *, const void *);

/* Which goes first decides how well the rest packs, and no order is always best: each is tried until one is good. */
static compare_fn *const orders[] = {compare_sizes, compare_areas, compare_lives, compare_starts};

enum { N_ORDERS = sizeof orders / sizeof orders[0] };

static bool share_life(const lst_buffer *a, const lst_buffer *b)
{
    return a->first_phase <= b->last_phase && b->first_phase <= a->last_phase;
}

/* Lowest cost place for b among `placed`, which is sorted by offset: the gap that it fills best, or the top. */
static size_t find_place(const lst_buffer *b, lst_buffer *const *placed, size_t n_placed, size_t bottom)
{
    size_t need = round_up(b->bytes, ALIGNMENT), top = bottom, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (size_t i = 0; i < n_placed; i++) {
        if (!share_life(b, placed[i]))
            continue;
        if (placed[i]->offset > top && placed[i]->offset - top >= need && placed[i]->offset - top < best_gap) {
            best_gap = placed[i]->offset - top;
            best = top;
        }
        size_t end = placed[i]->offset + round_up(placed[i]->bytes, ALIGNMENT);
        if (end > top)
            top = end;
    }
    return best != SIZE_MAX ? best : top;
}

static void insert_sorted(lst_buffer **placed, size_t n_placed, lst_buffer *b)
{
    size_t low = 0, high = n_placed;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (placed[middle]->offset <= b->offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(placed + low + 1, placed + low, (n_placed - low) * sizeof *placed);
    placed[low] = b;
}

static size_t place_persistent(lst_buffer **list, size_t n)
{
    size_t top = 0;
    qsort(list, n, sizeof *list, compare_tensors);
    for (size_t i = 0; i < n; i++) {
        list[i]->offset = next_offset(list[i], top);
        top = list[i]->offset + list[i]->bytes;
    }
    return round_up(top, ALIGNMENT);
}

static size_t place_passing(lst_buffer **list, size_t n, lst_buffer **placed, size_t bottom, compare_fn *order)
{
    size_t top = bottom;
    qsort(list, n, sizeof *list, order);
    for (size_t i = 0; i < n; i++) {
        list[i]->offset = find_place(list[i], placed, i, bottom);
        insert_sorted(placed, i, list[i]);
        size_t end = list[i]->offset + round_up(list[i]->bytes, ALIGNMENT);
        top = end > top ? end : top;
    }
    return top;
}

static size_t place_best(const lst_plan *plan, lst_buffer **list, size_t n, lst_buffer **placed, size_t bottom)
{
    size_t best = SIZE_MAX, best_order = 0, last = 0;
    /* Half a percent above the peak is good enough to stop. */
    size_t good = (size_t)(plan->peak_bytes + plan->peak_bytes / 200);
    for (size_t i = 0; i < N_ORDERS && best > good; i++) {
        size_t top = place_passing(list, n, placed, bottom, orders[i]);
        last = i;
        if (top < best) {
            best = top;
            best_order = i;
        }
    }
    return best_order == last ? best : place_passing(list, n, placed, bottom, orders[best_order]);
}

lst_status lst__plan_layout(lst_plan *plan, lst_error *err)
{
    size_t n = plan->n_buffers, n_persistent = 0, n_passing = 0;
    lst_buffer **list = lst__alloc(2 * n + 1, sizeof *list);
    if (!list)
        return lst__fail_memory(err, "the layout of a plan", 2 * n * sizeof *list);
    for (size_t i = 0; i < n; i++)
        if (is_persistent(plan, &plan->buffers[i]))
            list[n_persistent++] = &plan->buffers[i];
    for (size_t i = 0; i < n; i++)
        if (!is_persistent(plan, &plan->buffers[i]))
            list[n_persistent + n_passing++] = &plan->buffers[i];
    size_t bottom = place_persistent(list, n_persistent);
    plan->arena_bytes = place_best(plan, list + n_persistent, n_passing, list + n, bottom);
    lst__free(list);
    return LST_OK;
}
