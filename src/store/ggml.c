/* SPDX-License-Identifier: MIT */
#include "store/ggml.h"

#include <math.h>
#include <stdint.h>

#include "numeric/f16.h"

static uint16_t word_at(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static float scale_at(const unsigned char *p)
{
    return lst__f16_to_f32(word_at(p));
}

static int signed_byte(unsigned char byte)
{
    return byte < 128 ? byte : (int)byte - 256;
}

/* ---- 32 values: the low nibbles are the first half of the block, the high ones the second ---- */

static void decode_q4_0(const unsigned char *b, float *out)
{
    const float d = scale_at(b);
    for (int i = 0; i < 16; i++) {
        out[i] = (float)((b[2 + i] & 15) - 8) * d;
        out[i + 16] = (float)((b[2 + i] >> 4) - 8) * d;
    }
}

static void decode_q4_1(const unsigned char *b, float *out)
{
    const float d = scale_at(b), low = scale_at(b + 2);
    for (int i = 0; i < 16; i++) {
        out[i] = (float)(b[4 + i] & 15) * d + low;
        out[i + 16] = (float)(b[4 + i] >> 4) * d + low;
    }
}

/* The fifth bits of values 0 .. 31 are one little-endian word. */
static int fifth_bit(const unsigned char *bits, int i)
{
    return (bits[i / 8] >> (i % 8) & 1) << 4;
}

static void decode_q5_0(const unsigned char *b, float *out)
{
    const float d = scale_at(b);
    for (int i = 0; i < 16; i++) {
        out[i] = (float)(((b[6 + i] & 15) | fifth_bit(b + 2, i)) - 16) * d;
        out[i + 16] = (float)(((b[6 + i] >> 4) | fifth_bit(b + 2, i + 16)) - 16) * d;
    }
}

static void decode_q5_1(const unsigned char *b, float *out)
{
    const float d = scale_at(b), low = scale_at(b + 2);
    for (int i = 0; i < 16; i++) {
        out[i] = (float)((b[8 + i] & 15) | fifth_bit(b + 4, i)) * d + low;
        out[i + 16] = (float)((b[8 + i] >> 4) | fifth_bit(b + 4, i + 16)) * d + low;
    }
}

static void decode_q8_0(const unsigned char *b, float *out)
{
    const float d = scale_at(b);
    for (int i = 0; i < 32; i++)
        out[i] = (float)signed_byte(b[2 + i]) * d;
}

/* Sixteen levels, denser near zero. */
static void decode_iq4_nl(const unsigned char *b, float *out)
{
    static const signed char levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    const float d = scale_at(b);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)levels[b[2 + i] & 15];
        out[i + 16] = d * (float)levels[b[2 + i] >> 4];
    }
}

/* ---- 256 values ---- */

/* Two halves of 128; in each, four groups of 32 take two bits of the same 32 bytes, with a scale for each 16. */
static void decode_q2_k(const unsigned char *b, float *out)
{
    const unsigned char *scales = b, *codes = b + 16;
    const float d = scale_at(b + 80), dmin = scale_at(b + 82);
    for (int i = 0; i < 256; i++) {
        const int group = i / 32 % 4, scale = scales[i / 16];
        const int code = codes[i / 128 * 32 + i % 32] >> (2 * group) & 3;
        out[i] = d * (float)(scale & 15) * (float)code - dmin * (float)(scale >> 4);
    }
}

/* Six-bit scales: four low bits of number s in byte s % 8 (a nibble), two high bits in byte 8 + s % 4. */
static int q3_scale(const unsigned char *packed, int s)
{
    const int low = packed[s % 8] >> (s < 8 ? 0 : 4) & 15, high = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
    return (low | high << 4) - 32;
}

static void decode_q3_k(const unsigned char *b, float *out)
{
    const unsigned char *high = b, *codes = b + 32, *packed = b + 96;
    const float d = scale_at(b + 108);
    for (int i = 0; i < 256; i++) {
        const int group = i / 32 % 4;
        const int low = codes[i / 128 * 32 + i % 32] >> (2 * group) & 3;
        const int code = low - (high[i % 32] >> (i / 32) & 1 ? 0 : 4);
        out[i] = d * (float)q3_scale(packed, i / 16) * (float)code;
    }
}

/* Six-bit scales and minima of eight parts in 12 bytes: parts 0-3 in bytes 0-3 and 4-7, parts 4-7 in the nibbles of
 * bytes
 * 8-11 with their high bits above those of parts 0-3. */
static void q4_scale(const unsigned char *packed, int part, int *scale, int *low)
{
    if (part < 4) {
        *scale = packed[part] & 63;
        *low = packed[part + 4] & 63;
        return;
    }
    *scale = (packed[part + 4] & 15) | packed[part - 4] >> 6 << 4;
    *low = packed[part + 4] >> 4 | packed[part] >> 6 << 4;
}

/* Q4_K, and Q5_K with a fifth bit of each value in `fifth`: eight parts of 32, two parts to 32 bytes. */
static void decode_k_parts(const unsigned char *b, const unsigned char *fifth, const unsigned char *codes, float *out)
{
    const float d = scale_at(b), dmin = scale_at(b + 2);
    for (int part = 0; part < 8; part++) {
        int scale, low;
        q4_scale(b + 4, part, &scale, &low);
        const float step = d * (float)scale, shift = dmin * (float)low;
        for (int i = 0; i < 32; i++) {
            int code = codes[part / 2 * 32 + i] >> (part % 2 * 4) & 15;
            if (fifth)
                code += (fifth[i] >> part & 1) << 4;
            out[part * 32 + i] = step * (float)code - shift;
        }
    }
}

static void decode_q4_k(const unsigned char *b, float *out)
{
    decode_k_parts(b, 0, b + 16, out);
}

static void decode_q5_k(const unsigned char *b, float *out)
{
    decode_k_parts(b, b + 16, b + 48, out);
}

/* Two halves of 128, in each four groups of 32: four low bits from nibbles, two high bits from 32 bytes. */
static void decode_q6_k(const unsigned char *b, float *out)
{
    const unsigned char *low = b, *high = b + 128, *scales = b + 192;
    const float d = scale_at(b + 208);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, group = i / 32 % 4, at = i % 32;
        const int nibble = low[half * 64 + group % 2 * 32 + at] >> (group / 2 * 4) & 15;
        const int code = (nibble | (high[half * 32 + at] >> (2 * group) & 3) << 4) - 32;
        out[i] = d * (float)signed_byte(scales[i / 16]) * (float)code;
    }
}

const lst__ggml_format lst__ggml_formats[LST__N_GGML] = {
#define LST_X(id, name, number, values, bytes, decode) {name, number, values, bytes, decode},
    LST__GGML_LIST(LST_X)
#undef LST_X
};

void lst__ggml_encode_q8_0(const float values[32], unsigned char out[34])
{
    float largest = 0.0f;
    for (int i = 0; i < 32; i++)
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    const float d = largest / 127.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
    const uint16_t half = lst__f16_from_f32(d);
    out[0] = (unsigned char)(half & 255);
    out[1] = (unsigned char)(half >> 8);
    for (int i = 0; i < 32; i++)
        out[2 + i] = (unsigned char)(int)roundf(values[i] * inverse);
}
