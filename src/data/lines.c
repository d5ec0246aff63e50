/* SPDX-License-Identifier: MIT
 *
 * Lines of a file, read in pieces: no more is held than the longest line and one piece.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/jsonl.h"

#define PIECE ((size_t)64 << 10)

void data_lines_start(data_lines *out, data_corpus *corpus, size_t file)
{
    *out = (data_lines){.corpus = corpus, .file = file};
}

void data_lines_end(data_lines *lines)
{
    lst__free(lines->buffer);
    lines->buffer = NULL;
}

static void name_line(data_lines *l)
{
    const char *root = l->corpus->root, *key = l->corpus->is_dir ? l->corpus->files[l->file].key : "";
    int used = snprintf(l->where, sizeof l->where, "%s%s%s:%zu", root, key[0] ? "/" : "", key, l->number);
    if (used < 0 || (size_t)used >= sizeof l->where)
        snprintf(l->where, sizeof l->where, "%.200s:%zu", l->corpus->files[l->file].key, l->number);
}

/* Reads one more piece behind what is held. */
static lst_status read_more(data_lines *l, lst_error *err)
{
    const uint64_t left = l->corpus->files[l->file].n_bytes - l->offset;
    const size_t n = left < PIECE ? (size_t)left : PIECE;
    if (l->begin > 0) {
        memmove(l->buffer, l->buffer + l->begin, l->held);
        l->begin = 0;
    }
    if (l->held > DATA_MAX_LINE)
        return lst__fail(err, LST_ERR_FORMAT, "%s: the line is longer than %zu bytes: is this a file of JSON lines?",
                         l->where, DATA_MAX_LINE);
    if (l->room < l->held + n) {
        const size_t room = 2 * l->held + PIECE;
        char *grown = lst__realloc(l->buffer, room, 1);
        if (!grown)
            return lst__fail_memory(err, "a line", room);
        l->buffer = grown;
        l->room = room;
    }
    lst_status status = data_corpus_read(l->corpus, l->file, l->offset, l->buffer + l->held, n, err);
    l->held += n;
    l->offset += n;
    return status;
}

static bool is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r", text[i]))
            return false;
    return true;
}

/* The line that begins at `begin`: the bytes before its line feed, which may be the end of the file. */
static lst_status find_end(data_lines *l, size_t *n, bool *more, lst_error *err)
{
    size_t seen = 0;
    for (;;) {
        const char *from = l->buffer + l->begin;
        const char *feed = l->held > seen ? memchr(from + seen, '\n', l->held - seen) : NULL;
        const bool at_end = l->offset == l->corpus->files[l->file].n_bytes;
        *n = feed ? (size_t)(feed - from) : l->held;
        *more = feed || l->held > 0;
        if (feed || at_end)
            return LST_OK;
        seen = l->held;
        lst_status status = read_more(l, err);
        if (status != LST_OK)
            return status;
    }
}

lst_status data_lines_next(data_lines *lines, bool *more, lst_error *err)
{
    for (;;) {
        size_t n;
        lines->number++;
        name_line(lines);
        lst_status status = find_end(lines, &n, more, err);
        if (status != LST_OK || !*more)
            return status;
        lines->text = lines->buffer + lines->begin;
        lines->n = n;
        const size_t taken = n < lines->held ? n + 1 : n; /* with its line feed */
        lines->begin += taken;
        lines->held -= taken;
        if (lines->number == 1 && n >= 3 && memcmp(lines->text, "\xef\xbb\xbf", 3) == 0) {
            lines->text += 3; /* a byte order mark */
            lines->n -= 3;
        }
        if (!is_blank(lines->text, lines->n))
            return LST_OK;
    }
}
