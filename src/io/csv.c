/* SPDX-License-Identifier: MIT */
#include "io/csv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"

typedef struct parser {
    lst_csv *csv;
    char *in, *out; /* out <= in: cells are unquoted in place */
    size_t n_cells, capacity, line;
} parser;

static bool push(parser *p, char *cell)
{
    if (p->n_cells == p->capacity) {
        const size_t capacity = p->capacity ? 2 * p->capacity : 1024;
        char **grown = lst__realloc(p->csv->cell, capacity, sizeof *grown);
        if (!grown)
            return false;
        p->csv->cell = grown;
        p->capacity = capacity;
    }
    p->csv->cell[p->n_cells++] = cell;
    return true;
}

/* Copies a quoted cell's content down to p->out; false if the quote is not closed. */
static bool unquote(parser *p)
{
    for (p->in++; *p->in; p->in++) {
        if (*p->in == '"') {
            if (p->in[1] != '"') {
                p->in++;
                return true;
            }
            p->in++;
        }
        if (*p->in == '\n')
            p->line++;
        *p->out++ = *p->in;
    }
    return false;
}

static lst_status read_cell(parser *p, lst_error *err)
{
    char *const cell = p->out;
    if (*p->in == '"' && !unquote(p))
        return lst__fail(err, LST_ERR_FORMAT, "%s: line %zu: a quote is opened and never closed", p->csv->path,
                         p->line);
    while (*p->in && *p->in != ',' && *p->in != '\n' && *p->in != '\r')
        *p->out++ = *p->in++;
    if (!push(p, cell))
        return lst__fail_memory(err, p->csv->path, p->capacity * sizeof(char *));
    return LST_OK;
}

/* One row; *more says whether another follows. The end of a cell is written only after what stood there was read. */
static lst_status read_row(parser *p, lst_error *err)
{
    for (;;) {
        const lst_status status = read_cell(p, err);
        if (status != LST_OK)
            return status;
        const char end = *p->in;
        if (end == '\r')
            p->in++;
        if (*p->in)
            p->in++;
        *p->out++ = '\0';
        if (end == ',')
            continue;
        p->line++;
        return LST_OK;
    }
}

static lst_status note_line(parser *p, size_t row, size_t line, lst_error *err)
{
    size_t *grown = lst__realloc(p->csv->line, row + 1, sizeof *grown);
    if (!grown)
        return lst__fail_memory(err, p->csv->path, (row + 1) * sizeof(size_t));
    p->csv->line = grown;
    grown[row] = line;
    return LST_OK;
}

static lst_status parse(lst_csv *csv, lst_error *err)
{
    parser p = {.csv = csv, .in = csv->text, .out = csv->text, .line = 1};
    for (size_t row = 0; *p.in; row++) {
        const size_t before = p.n_cells, line = p.line;
        lst_status status = read_row(&p, err);
        if (status == LST_OK)
            status = note_line(&p, row, line, err);
        if (status != LST_OK)
            return status;
        if (row == 0)
            csv->n_cols = p.n_cells;
        else if (p.n_cells - before != csv->n_cols)
            return lst__fail(err, LST_ERR_FORMAT, "%s: line %zu has %zu cells; the header has %zu", csv->path, line,
                             p.n_cells - before, csv->n_cols);
        csv->n_rows = row;
    }
    return csv->n_cols ? LST_OK : lst__fail(err, LST_ERR_FORMAT, "%s is empty; a header line was expected", csv->path);
}

lst_status lst__csv_read(const char *path, size_t limit_bytes, lst_csv *out, lst_error *err)
{
    lst_csv csv = {.path = lst__strdup(path)};
    if (!csv.path)
        return lst__fail_memory(err, path, strlen(path));
    size_t n_bytes = 0;
    lst_status status = lst__file_read(path, limit_bytes, &csv.text, &n_bytes, err);
    if (status == LST_OK && memchr(csv.text, '\0', n_bytes))
        status = lst__fail(err, LST_ERR_FORMAT, "%s holds a NUL byte: it is no table of text", path);
    if (status == LST_OK)
        status = parse(&csv, err);
    if (status != LST_OK) {
        lst__csv_free(&csv);
        return status;
    }
    *out = csv;
    return LST_OK;
}

void lst__csv_free(lst_csv *csv)
{
    lst__free(csv->path);
    lst__free(csv->text);
    lst__free(csv->cell);
    lst__free(csv->line);
    *csv = (lst_csv){0};
}

size_t lst__csv_find(const lst_csv *csv, const char *column)
{
    for (size_t i = 0; i < csv->n_cols; i++) {
        if (strcmp(csv->cell[i], column) == 0)
            return i;
    }
    return SIZE_MAX;
}

const char *lst__csv_get(const lst_csv *csv, size_t row, const char *column)
{
    const size_t col = lst__csv_find(csv, column);
    return col == SIZE_MAX || row >= csv->n_rows ? NULL : csv->cell[(row + 1) * csv->n_cols + col];
}

static lst_status missing(const lst_csv *csv, const char *column, lst_error *err)
{
    return lst__fail(err, LST_ERR_FORMAT, "%s has no column \"%s\"", csv->path, column);
}

lst_status lst__csv_get_real(const lst_csv *csv, size_t row, const char *column, double *out, lst_error *err)
{
    const char *text = lst__csv_get(csv, row, column);
    if (!text)
        return missing(csv, column, err);
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || *end)
        return lst__fail(err, LST_ERR_FORMAT, "%s: line %zu, column \"%s\": \"%.60s\" is no number", csv->path,
                         csv->line[row + 1], column, text);
    *out = value;
    return LST_OK;
}

lst_status lst__csv_get_u64(const lst_csv *csv, size_t row, const char *column, uint64_t *out, lst_error *err)
{
    const char *text = lst__csv_get(csv, row, column);
    if (!text)
        return missing(csv, column, err);
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        return lst__fail(err, LST_ERR_FORMAT, "%s: line %zu, column \"%s\": \"%.60s\" is no whole number", csv->path,
                         csv->line[row + 1], column, text);
    *out = value;
    return LST_OK;
}
