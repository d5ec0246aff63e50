/* SPDX-License-Identifier: MIT
 *
 * A second moment kept as one number a row and one a column: what the two Adafactors share. A tensor of two or more
 * dimensions is a batch of matrices of its last two; everything before them is the batch.
 */
#ifndef LST_OPTIM_FACTORED_H
#define LST_OPTIM_FACTORED_H

#include "optim/pass.h"

typedef struct lst__factored {
    const lst__step *step;
    size_t batch, rows, columns; /* batch * rows * columns = elements */
    float *row, *column;         /* statistics: [batch][rows], [batch][columns]; row NULL: columns alone */
    double keep, take, added;    /* statistic = keep*statistic + take*(mean of g*g + added) */
} lst__factored;

/* The shape of a tensor of at least two dimensions. */
void lst__factored_shape(const lst_tensor *tensor, lst__factored *out);
/* Updates both statistics with the gradient of the step. */
void lst__factored_update(const lst__factored *f);
/* Mean of the row statistics of one matrix of the batch, in double. */
double lst__factored_row_mean(const lst__factored *f, size_t matrix);

/* The run of elements of one row that begins at a tile's element `at`. */
typedef struct lst__row_run {
    size_t row;    /* over the whole batch */
    size_t matrix; /* of the batch */
    size_t column; /* first */
    size_t n;
} lst__row_run;
lst__row_run lst__row_run_at(const lst__factored *f, const lst__tile *tile, size_t at);

#endif
