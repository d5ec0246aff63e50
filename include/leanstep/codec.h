/* SPDX-License-Identifier: MIT
 *
 * Codecs: how a tensor's numbers are stored.
 */
#ifndef LEANSTEP_CODEC_H
#define LEANSTEP_CODEC_H

#include <stddef.h>

#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, name, what it is) */
#define LST_CODEC_LIST(X)                                                                                              \
    X(F32, "f32", "IEEE binary32, 4 bytes")                                                                            \
    X(BF16, "bf16", "upper half of binary32, 2 bytes")                                                                 \
    X(F16, "f16", "IEEE binary16, 2 bytes")                                                                            \
    X(LO16, "lo16", "low half of a split32 weight, 2 bytes")                                                           \
    X(LO8, "lo8", "low byte of a split24 weight, 1 byte")                                                              \
    X(Q8, "q8", "8-bit floats, a shared exponent for 32, stochastic, 1 + 1/32 bytes")                                  \
    X(Q8U, "q8u", "q8 for numbers of at least 0: never from above 0 to 0")                                             \
    X(Q4, "q4", "4-bit floats, a shared exponent for 16, stochastic, 1/2 + 1/16 bytes")                                \
    X(Q4U, "q4u", "q4 for numbers of at least 0: never from above 0 to 0")                                             \
    X(Q8_DYNAMIC, "q8-dynamic", "bitsandbytes' signed map, float32 scale for 256, nearest, 1 + 4/256 bytes")           \
    X(Q8_DYNAMIC_U, "q8-dynamic-u", "bitsandbytes' unsigned map, float32 scale for 256, nearest")                      \
    X(Q8_DYNAMIC_2048, "q8-dynamic-2048", "bitsandbytes' signed map, float32 scale for 2,048, nearest")                \
    X(Q8_DYNAMIC_2048_U, "q8-dynamic-2048-u", "bitsandbytes' unsigned map, float32 scale for 2,048, nearest")          \
    X(Q8_FLASH, "q8-flash", "FlashOptim's companding, float16 scale for 32, nearest: to compare with")                 \
    X(Q8_FLASH_U, "q8-flash-u", "FlashOptim's companding for numbers of at least 0")

typedef enum lst_codec {
#define LST_X(id, name, text) LST_CODEC_##id,
    LST_CODEC_LIST(LST_X)
#undef LST_X
        LST_N_CODECS
} lst_codec;

LST_API const char *lst_codec_name(lst_codec codec);
/* Bytes that n_elems values take, scales and tail blocks included. The one formula: plan and allocator call it. */
LST_API size_t lst_codec_bytes(lst_codec codec, size_t n_elems);
/* Values that are coded together: 1, or the size of a block. A part of a tensor that begins at a multiple of it can be
 * read or written alone. */
LST_API size_t lst_codec_block(lst_codec codec);
/* The codec's form for numbers of at least 0, such as second moments ("q8u" for "q8"); itself where one form does for
 * both. */
LST_API lst_codec lst_codec_unsigned(lst_codec codec);

/* Weight forms: how a parameter is kept so that small updates survive.
 * X(identifier, name, codec of the weights used by the model, codec of the "master" part or -1, what it is) */
#define LST_WEIGHT_FORM_LIST(X)                                                                                        \
    X(F32, "f32", LST_CODEC_F32, -1, "float32 weights, no master")                                                     \
    X(BF16_MASTER, "bf16+master", LST_CODEC_BF16, LST_CODEC_F32, "bf16 weights, float32 master")                       \
    X(F16_MASTER, "f16+master", LST_CODEC_F16, LST_CODEC_F32, "f16 weights, float32 master")                           \
    X(SPLIT32, "split32", LST_CODEC_BF16, LST_CODEC_LO16,                                                              \
      "bf16 weights + the 16 bits they lack: a float32 master, bit for bit")                                           \
    X(SPLIT24, "split24", LST_CODEC_BF16, LST_CODEC_LO8, "bf16 weights + 8 bits more, rounded stochastically")         \
    X(BF16_SR, "bf16-sr", LST_CODEC_BF16, -1, "bf16 weights rounded stochastically, no master")                        \
    X(BF16_NEAREST, "bf16-nearest", LST_CODEC_BF16, -1,                                                                \
      "bf16 weights rounded to nearest, no master: deletes small updates")

typedef enum lst_weight_form {
#define LST_X(id, name, weight, master, text) LST_WEIGHT_##id,
    LST_WEIGHT_FORM_LIST(LST_X)
#undef LST_X
        LST_N_WEIGHT_FORMS
} lst_weight_form;

LST_API const char *lst_weight_form_name(lst_weight_form form);
LST_API lst_codec lst_weight_form_codec(lst_weight_form form);
/* Codec of the master part, or LST_N_CODECS where there is none. */
LST_API lst_codec lst_weight_form_master(lst_weight_form form);

#ifdef __cplusplus
}
#endif
#endif
