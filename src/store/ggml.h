/* SPDX-License-Identifier: MIT
 *
 * ggml's block formats: how GGUF files keep quantized weights. A block of 32 or 256 values shares one or two f16
 * scales, in the K formats also small integer scales of its parts. Decoding is exact: each product and sum is rounded
 * to float32 in the order that ggml's own scalar code has, without fused multiply-add.
 */
#ifndef LST_STORE_GGML_H
#define LST_STORE_GGML_H

#include <stddef.h>

/* X(identifier, name, ggml's number of the type, values a block, bytes a block, function that decodes one) */
#define LST__GGML_LIST(X)                                                                                              \
    X(Q4_0, "Q4_0", 2, 32, 18, decode_q4_0)                                                                            \
    X(Q4_1, "Q4_1", 3, 32, 20, decode_q4_1)                                                                            \
    X(Q5_0, "Q5_0", 6, 32, 22, decode_q5_0)                                                                            \
    X(Q5_1, "Q5_1", 7, 32, 24, decode_q5_1)                                                                            \
    X(Q8_0, "Q8_0", 8, 32, 34, decode_q8_0)                                                                            \
    X(Q2_K, "Q2_K", 10, 256, 84, decode_q2_k)                                                                          \
    X(Q3_K, "Q3_K", 11, 256, 110, decode_q3_k)                                                                         \
    X(Q4_K, "Q4_K", 12, 256, 144, decode_q4_k)                                                                         \
    X(Q5_K, "Q5_K", 13, 256, 176, decode_q5_k)                                                                         \
    X(Q6_K, "Q6_K", 14, 256, 210, decode_q6_k)                                                                         \
    X(IQ4_NL, "IQ4_NL", 20, 32, 18, decode_iq4_nl)

typedef enum lst__ggml {
#define LST_X(id, name, number, values, bytes, decode) LST__GGML_##id,
    LST__GGML_LIST(LST_X)
#undef LST_X
        LST__N_GGML
} lst__ggml;

typedef struct lst__ggml_format {
    const char *name;
    unsigned number; /* in a GGUF file */
    size_t values, bytes;
    void (*decode)(const unsigned char *block, float *out); /* one block */
} lst__ggml_format;

extern const lst__ggml_format lst__ggml_formats[LST__N_GGML];

/* Q8_0, the one quantized format that is written: scale = largest magnitude / 127 in f16, codes rounded half away from
 * zero by the scale before it was rounded, as ggml does. */
void lst__ggml_encode_q8_0(const float values[32], unsigned char out[34]);

#endif
