/* SPDX-License-Identifier: MIT
 *
 * Codecs as the tile step sees them: a table of traits, one row a codec. A codec turns the stored bytes of a run of
 * values into float32 and back; what the numbers mean is said in docs/numerics.md.
 *
 * A tensor of n_elems values occupies one buffer of bytes(n_elems). A codec with scales keeps all codes first, then the
 * scales (float32 scales at the next multiple of 4 bytes), so that both stream; that is why every call takes n_elems
 * beside the run. To add a codec: a line in LST_CODEC_LIST, a codec_*.c with its row, a line in codec.c.
 *
 * There is no interface for where bytes live yet: it would only forward a pointer. A paged home can come in below the
 * calls of the tile step, which always name a whole buffer and the run [first, first + n) in it.
 */
#ifndef LST_STORE_CODEC_H
#define LST_STORE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "leanstep/codec.h"
#include "numeric/rounding.h"

typedef struct lst__codec_traits {
    /* Values that are coded together (1: none). A run starts at a multiple of it and ends at one, or at n_elems. It
     * is a power of two, at most LST__MAX_BLOCK: a tile of a multiple of that suits every codec. */
    size_t block;
    /* Bytes of n_elems values, or SIZE_MAX if that does not fit in a size_t. */
    size_t (*bytes)(size_t n_elems);
    /* Both NULL for a codec that is only a part of a weight (lo16): store/weights.h handles those. */
    void (*decode)(const void *memory, size_t n_elems, size_t first, size_t n, float *out);
    /* `rounding` is read by codecs that round stochastically; the value at index i draws its bits from
     * (rounding, i), wherever the runs are cut. NULL draws as {0} does. */
    void (*encode)(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                   const lst__rounding *rounding);
} lst__codec_traits;

#define LST__MAX_BLOCK 2048

/* Never NULL for a codec below LST_N_CODECS. */
const lst__codec_traits *lst__codec(lst_codec codec);

/* Where the codes and the base bytes of a run of q8 or q8u lie that begins at `first`, a multiple of 32. */
void lst__q8_run(void *memory, size_t n_elems, size_t first, uint8_t **codes, uint8_t **bases);

/* Rows, one a file of their own. */
extern const lst__codec_traits lst__codec_f32, lst__codec_bf16, lst__codec_f16, lst__codec_lo16, lst__codec_lo8;
extern const lst__codec_traits lst__codec_q8, lst__codec_q8u, lst__codec_q4, lst__codec_q4u;
extern const lst__codec_traits lst__codec_q8_dynamic, lst__codec_q8_dynamic_u;
extern const lst__codec_traits lst__codec_q8_dynamic_2048, lst__codec_q8_dynamic_2048_u;
extern const lst__codec_traits lst__codec_q8_flash, lst__codec_q8_flash_u;

#endif
