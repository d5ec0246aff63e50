/* SPDX-License-Identifier: MIT
 *
 * FlashOptim's 8-bit format, to read what it wrote and to compare with: companding (a softsign for signed numbers, a
 * root for numbers of at least 0) under a float16 scale for 32 values, rounded to nearest.
 *
 *     signed      a = max(largest |x|, 1e-12);   z = x / a;   code = floor(127 * (2 z / (1 + |z|)) + 1/2)
 *     unsigned    r = sqrt(x), a = max(largest r, 1e-12);     code = floor(255 * (r / a) + 1/2)
 *     scale = f16(a);    decoded: y = code / 127, y / (2 - |y|) * scale    or    (code / 255 * scale)^2
 *
 * A scale below 2^-25 becomes 0 (the group is lost) and one from 65,520 on infinite: that is the format.
 */
#ifndef LST_NUMERIC_FLASH8_H
#define LST_NUMERIC_FLASH8_H

#include <math.h>
#include <stdint.h>

#define LST__FLASH8_GROUP 32

/* What a group's largest value is taken of: |x|, or the root. */
static inline float lst__flash8_size(float x, int is_signed)
{
    return is_signed ? fabsf(x) : sqrtf(x);
}

/* The code of x under a = max(largest size, 1e-12). A NaN gets code 0 (its group's scale is a NaN). */
static inline uint8_t lst__flash8_encode(float x, float a, int is_signed)
{
    float z = (is_signed ? x : sqrtf(x)) / a;
    float y = is_signed ? 2.0f * z / (1.0f + fabsf(z)) : z;
    float code = floorf(y * (is_signed ? 127.0f : 255.0f) + 0.5f);
    return (uint8_t)(int)(code == code ? code : 0.0f);
}

static inline float lst__flash8_decode(uint8_t code, float scale, int is_signed)
{
    if (is_signed) {
        float y = (float)(int8_t)code / 127.0f;
        return y / (2.0f - fabsf(y)) * scale;
    }
    float root = (float)code / 255.0f * scale;
    return root * root;
}

#endif
