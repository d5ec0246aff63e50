/* SPDX-License-Identifier: MIT
 *
 * Weight forms as the tile step sees them: how the float32 value of a parameter is read from, and written to, the
 * weights that the model uses and the part kept beside them (float32 master, low half).
 */
#ifndef LST_STORE_WEIGHTS_H
#define LST_STORE_WEIGHTS_H

#include <stddef.h>

#include "leanstep/codec.h"
#include "numeric/rounding.h"

/* One parameter's buffers. `master` is NULL for a form without one. */
typedef struct lst__weights {
    lst_weight_form form;
    size_t n_elems;
    void *weights;
    void *master;
} lst__weights;

/* The float32 value that the optimizer works on: the master where there is one. */
void lst__weights_decode(const lst__weights *w, size_t first, size_t n, float *out);

/* Writes weights and master. `rounding` is read by forms that round stochastically; NULL draws as {0} does. */
void lst__weights_encode(const lst__weights *w, size_t first, size_t n, const float *in, const lst__rounding *rounding);

/* The weights as the model sees them, whatever the master says: to start a master from given weights. */
void lst__weights_decode_visible(const lst__weights *w, size_t first, size_t n, float *out);

#endif
