/* SPDX-License-Identifier: MIT
 *
 * How a codec's bytes are called in a file.
 */
#ifndef LST_CKPT_DTYPES_H
#define LST_CKPT_DTYPES_H

#include "io/safetensors.h"
#include "leanstep/codec.h"

/* lo16, the low half of a split weight, is U16; lo8 and block codecs are U8; LST_ST_N_DTYPES for an unknown codec. */
lst_st_dtype lst__ckpt_dtype(lst_codec codec);
/* The codec that reads this dtype as numbers: F32, BF16, F16; LST_N_CODECS for others. */
lst_codec lst__ckpt_codec(lst_st_dtype dtype);

#endif
