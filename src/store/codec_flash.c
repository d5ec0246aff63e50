/* SPDX-License-Identifier: MIT
 *
 * FlashOptim's 8-bit format (numeric/flash8.h), for comparison: the buffer holds the codes of the whole tensor, then
 * at the next even byte one float16 scale for each 32 values. Not a fast path.
 */
#include "store/codec.h"

#include <stdint.h>

#include "numeric/f16.h"
#include "numeric/flash8.h"

static size_t scales_at(size_t n_elems)
{
    return n_elems + n_elems % 2;
}

static size_t bytes(size_t n_elems)
{
    const size_t groups = n_elems / LST__FLASH8_GROUP + (n_elems % LST__FLASH8_GROUP != 0);
    return n_elems > SIZE_MAX / 2 ? SIZE_MAX : scales_at(n_elems) + groups * sizeof(uint16_t);
}

static void encode(int is_signed, uint8_t *memory, size_t n_elems, size_t first, size_t n, const float *in)
{
    uint16_t *scales = (uint16_t *)(void *)(memory + scales_at(n_elems));
    for (size_t done = 0; done < n; done += LST__FLASH8_GROUP) {
        const size_t span = n - done < LST__FLASH8_GROUP ? n - done : LST__FLASH8_GROUP;
        float a = 1e-12f;
        for (size_t i = done; i < done + span; i++) {
            const float size = lst__flash8_size(in[i], is_signed);
            if (a == a && !(size <= a)) /* larger, or a NaN, which stays */
                a = size;
        }
        for (size_t i = done; i < done + span; i++)
            memory[first + i] = lst__flash8_encode(in[i], a, is_signed);
        scales[(first + done) / LST__FLASH8_GROUP] = lst__f16_from_f32(a);
    }
}

static void decode(int is_signed, const uint8_t *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    const uint16_t *scales = (const uint16_t *)(const void *)(memory + scales_at(n_elems));
    for (size_t i = 0; i < n; i++) {
        const float scale = lst__f16_to_f32(scales[(first + i) / LST__FLASH8_GROUP]);
        out[i] = lst__flash8_decode(memory[first + i], scale, is_signed);
    }
}

static void encode_flash8(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                          const lst__rounding *rounding)
{
    (void)rounding;
    encode(1, memory, n_elems, first, n, in);
}

static void encode_flash8u(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                           const lst__rounding *rounding)
{
    (void)rounding;
    encode(0, memory, n_elems, first, n, in);
}

static void decode_flash8(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    decode(1, memory, n_elems, first, n, out);
}

static void decode_flash8u(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    decode(0, memory, n_elems, first, n, out);
}

const lst__codec_traits lst__codec_q8_flash = {LST__FLASH8_GROUP, bytes, decode_flash8, encode_flash8};
const lst__codec_traits lst__codec_q8_flash_u = {LST__FLASH8_GROUP, bytes, decode_flash8u, encode_flash8u};
