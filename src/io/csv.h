/* SPDX-License-Identifier: MIT
 *
 * Tables with a header line: comma-separated values, quotes doubled inside quotes, a row may span lines.
 */
#ifndef LST_IO_CSV_H
#define LST_IO_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

typedef struct lst_csv {
    char *path;
    char *text; /* the cells' storage */
    size_t n_cols, n_rows;
    char **cell;  /* the header's row first, then n_rows rows */
    size_t *line; /* of each row */
} lst_csv;

/* At most limit_bytes. Every row must have as many cells as the header. */
LST_MUST_USE lst_status lst__csv_read(const char *path, size_t limit_bytes, lst_csv *out, lst_error *err);
void lst__csv_free(lst_csv *csv);
/* SIZE_MAX if there is no such column. */
size_t lst__csv_find(const lst_csv *csv, const char *column);
/* A row's cell by column name, or NULL. */
const char *lst__csv_get(const lst_csv *csv, size_t row, const char *column);
/* Numbers; the message names file, line and column. */
LST_MUST_USE lst_status lst__csv_get_u64(const lst_csv *csv, size_t row, const char *column, uint64_t *out,
                                         lst_error *err);
LST_MUST_USE lst_status lst__csv_get_real(const lst_csv *csv, size_t row, const char *column, double *out,
                                          lst_error *err);

#endif
