/* SPDX-License-Identifier: MIT
 *
 * Lines to examples: encoded, cut to what a row holds, added to the store.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/dataset.h"
#include "data/example.h"

typedef struct reading {
    data_set *set;
    const data_request *request;
    data_encoder *encoder;
    data_ids ids, mask;
} reading;

static void count(data_counts *c, const data_record *record, const reading *r)
{
    const uint64_t n = r->ids.n;
    size_t bin = 0;
    while (bin + 1 < DATA_N_LENGTHS && n >> (bin + 1))
        bin++;
    c->lengths[bin]++;
    c->forms[record->form]++;
    c->n_tokens += n;
    for (size_t i = 1; i < n; i++)
        c->n_counted += r->mask.ids[i] != 0;
    c->longest = n > c->longest ? n : c->longest;
    c->shortest = c->n_lines == 0 || n < c->shortest ? n : c->shortest;
    c->n_lines++;
}

/* Tokens [first, first + n): the first one is context alone. */
static lst_status add_piece(reading *r, size_t first, size_t n, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = first; i < first + n && status == LST_OK; i++) {
        const uint32_t counts = i > first && r->mask.ids[i] ? DATA_COUNTS : 0, token = (uint32_t)r->ids.ids[i] | counts;
        status = data_store_add(&r->set->store, &token, 1, err);
    }
    const uint32_t line = (uint32_t)(r->set->counts.n_lines - 1);
    return status == LST_OK ? data_examples_add(&r->set->examples, line, err) : status;
}

/* A text longer than a row becomes several, each beginning with the last token of the one before. */
static lst_status add_text(reading *r, lst_error *err)
{
    const size_t seq = r->request->seq, n = r->ids.n;
    lst_status status = LST_OK;
    for (size_t first = 0; first + 1 < n && status == LST_OK; first += seq)
        status = add_piece(r, first, n - first < seq + 1 ? n - first : seq + 1, err);
    r->set->counts.n_split += n > seq + 1;
    return status;
}

/* Others lose their end: context without its answer, or an answer without its context, teaches little. */
static lst_status add_cut(reading *r, lst_error *err)
{
    const size_t room = r->request->seq + 1;
    data_counts *c = &r->set->counts;
    bool left = false;
    if (r->ids.n <= room)
        return add_piece(r, 0, r->ids.n, err);
    for (size_t i = 1; i < room; i++)
        left |= r->mask.ids[i] != 0;
    c->n_cut++;
    c->n_cut_tokens += r->ids.n - room;
    c->n_left_out += !left;
    return left ? add_piece(r, 0, room, err) : LST_OK;
}

static lst_status add_line(reading *r, const data_lines *line, lst_error *err)
{
    data_record record;
    if (r->set->counts.n_lines == UINT32_MAX)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: more than %u examples", line->where, UINT32_MAX);
    lst_status status = data_record_parse(&record, line->where, line->text, line->n, err);
    if (status != LST_OK)
        return status;
    status = data_example_encode(r->encoder, &record, r->request->loss_all, line->where, &r->ids, &r->mask, err);
    if (status == LST_OK) {
        count(&r->set->counts, &record, r);
        status = record.form == DATA_FORM_TEXT ? add_text(r, err) : add_cut(r, err);
    }
    data_record_free(&record);
    return status;
}

static lst_status add_file(reading *r, size_t file, lst_error *err)
{
    data_lines lines;
    data_lines_start(&lines, &r->set->corpus, file);
    lst_status status;
    for (;;) {
        bool more;
        status = data_lines_next(&lines, &more, err);
        if (status != LST_OK || !more)
            break;
        status = add_line(r, &lines, err);
        if (status != LST_OK)
            break;
    }
    data_lines_end(&lines);
    return status;
}

lst_status data__read_examples(data_set *set, const data_request *request, data_encoder *encoder, lst_error *err)
{
    reading r = {.set = set, .request = request, .encoder = encoder};
    set->examples.store = &set->store;
    lst_status status = LST_OK;
    for (size_t i = 0; i < set->corpus.n_files && status == LST_OK; i++)
        status = add_file(&r, i, err);
    lst__free(r.ids.ids);
    lst__free(r.mask.ids);
    if (status == LST_OK)
        status = data_store_flush(&set->store, err);
    if (status == LST_OK && set->examples.n == 0 && set->counts.n_lines > 0)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "%s: with --seq %zu nothing is left of any example that could be learned: what counts comes "
                         "later. Give a longer --seq.",
                         set->corpus.root, request->seq);
    if (status == LST_OK && set->examples.n == 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s holds no examples: every line is blank", set->corpus.root);
    return status;
}
