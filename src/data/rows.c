/* SPDX-License-Identifier: MIT */
#include "data/rows.h"

#include "base/alloc.h"
#include "base/fail.h"

lst_status data_examples_add(data_examples *examples, uint32_t line, lst_error *err)
{
    if (examples->n + 2 > examples->capacity) {
        const size_t room = examples->capacity * 2 + 1024;
        uint64_t *starts = lst__realloc(examples->starts, room, sizeof *starts);
        if (starts)
            examples->starts = starts;
        uint32_t *lines = lst__realloc(examples->lines, room, sizeof *lines);
        if (lines)
            examples->lines = lines;
        if (!starts || !lines)
            return lst__fail_memory(err, "the list of examples", room * (sizeof *starts + sizeof *lines));
        examples->capacity = room;
        examples->starts[0] = 0;
    }
    examples->lines[examples->n] = line;
    examples->starts[++examples->n] = examples->store->n;
    return LST_OK;
}

void data_examples_free(data_examples *examples)
{
    lst__free(examples->starts);
    lst__free(examples->lines);
    *examples = (data_examples){0};
}

static uint32_t length_of(const data_examples *examples, size_t i)
{
    return (uint32_t)(examples->starts[i + 1] - examples->starts[i]);
}

/* One example a row, in their order. */
static lst_status one_each(data_packed *out, size_t n, lst_error *err)
{
    out->n_rows = n;
    out->first = lst__alloc(n + 1, sizeof *out->first);
    out->order = lst__alloc(n, sizeof *out->order);
    if (!out->first || !out->order)
        return lst__fail_memory(err, "the rows of examples", n * (sizeof *out->first + sizeof *out->order));
    for (size_t i = 0; i < n; i++) {
        out->order[i] = (uint32_t)i;
        out->first[i + 1] = i + 1;
    }
    return LST_OK;
}

static lst_status arrange(data_rows *rows, const uint32_t *chosen, size_t n, bool pack, lst_error *err)
{
    uint32_t *lengths = lst__alloc(n, sizeof *lengths);
    rows->buffer = lst__alloc(rows->seq + 1, sizeof *rows->buffer);
    if (!lengths || !rows->buffer) {
        lst__free(lengths);
        return lst__fail_memory(err, "the rows of examples", n * sizeof *lengths);
    }
    for (size_t i = 0; i < n; i++) {
        lengths[i] = length_of(rows->examples, chosen[i]);
        rows->n_tokens += lengths[i];
    }
    lst_status status =
        pack ? data_pack(&rows->packed, lengths, n, rows->seq + 1, err) : one_each(&rows->packed, n, err);
    for (size_t i = 0; i < n && status == LST_OK; i++)
        rows->packed.order[i] = chosen[rows->packed.order[i]];
    lst__free(lengths);
    return status;
}

lst_status data_rows_make(data_rows *out, const data_examples *examples, const uint32_t *chosen, size_t n, size_t seq,
                          bool pack, int32_t fill, lst_error *err)
{
    data_rows rows = {.examples = examples, .seq = seq, .fill = fill, .n_examples = n};
    lst_status status = arrange(&rows, chosen, n, pack, err);
    if (status != LST_OK) {
        data_rows_free(&rows);
        return status;
    }
    *out = rows;
    return LST_OK;
}

void data_rows_free(data_rows *rows)
{
    data_packed_free(&rows->packed);
    lst__free(rows->buffer);
    *rows = (data_rows){0};
}

lst_status data_rows_read(const data_rows *rows, uint64_t row, int32_t *ids, int32_t *labels, lst_error *err)
{
    const data_packed *packed = &rows->packed;
    uint32_t *tokens = rows->buffer;
    size_t n = 0;
    for (size_t i = packed->first[row]; i < packed->first[row + 1]; i++) {
        const uint32_t example = packed->order[i], length = length_of(rows->examples, example);
        lst_status status =
            data_store_read(rows->examples->store, rows->examples->starts[example], length, tokens + n, err);
        if (status != LST_OK)
            return status;
        n += length;
    }
    for (size_t t = 0; t < rows->seq; t++) {
        ids[t] = t < n ? (int32_t)(tokens[t] & ~DATA_COUNTS) : rows->fill;
        const bool counts = t + 1 < n && tokens[t + 1] & DATA_COUNTS;
        labels[t] = counts ? (int32_t)(tokens[t + 1] & ~DATA_COUNTS) : DATA_IGNORE;
    }
    return LST_OK;
}
