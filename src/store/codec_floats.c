/* SPDX-License-Identifier: MIT
 *
 * Codecs of small floats under shared exponents: q8, q8u, q4, q4u. The buffer holds the codes of the whole tensor (q4:
 * two a byte), then one base byte for each group. numeric/q8.h and numeric/q4.h say what the numbers mean.
 */
#include "store/codec.h"

#include <stdint.h>

#include "kernels/kernels.h"
#include "numeric/q4.h"
#include "numeric/q8.h"
#include "store/draws.h"

/* Values a group, and the bytes that the codes of 32 values take. */
typedef struct layout {
    size_t group, bytes_of_32;
} layout;

static const layout q8_layout = {LST__Q8_GROUP, 32}, q4_layout = {LST__Q4_GROUP, 16};

static size_t code_bytes(layout l, size_t n)
{
    const size_t tail = n % 32;
    return n / 32 * l.bytes_of_32 + (tail < l.bytes_of_32 ? tail : l.bytes_of_32);
}

static size_t bytes(layout l, size_t n)
{
    const size_t codes = code_bytes(l, n), groups = n / l.group + (n % l.group != 0);
    return codes > SIZE_MAX - groups ? SIZE_MAX : codes + groups;
}

static void encode(lst__blocks_encode *kernel, layout l, uint8_t *memory, size_t n_elems, size_t first, size_t n,
                   const float *in, const lst__rounding *rounding)
{
    uint8_t *bases = memory + code_bytes(l, n_elems);
    for (size_t done = 0; done < n;) {
        const size_t at = first + done;
        const lst__draws d = lst__draws_of(rounding, at, n - done);
        kernel(in + done, memory + code_bytes(l, at), bases + at / l.group, d.n, d.key, d.first);
        done += d.n;
    }
}

static void decode(lst__blocks_decode *kernel, layout l, const uint8_t *memory, size_t n_elems, size_t first, size_t n,
                   float *out)
{
    kernel(memory + code_bytes(l, first), memory + code_bytes(l, n_elems) + first / l.group, out, n);
}

static size_t bytes_q8(size_t n)
{
    return bytes(q8_layout, n);
}

static size_t bytes_q4(size_t n)
{
    return bytes(q4_layout, n);
}

static void encode_q8(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                      const lst__rounding *rounding)
{
    encode(lst__kernels_get()->f32_to_q8, q8_layout, memory, n_elems, first, n, in, rounding);
}

static void encode_q8u(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                       const lst__rounding *rounding)
{
    encode(lst__kernels_get()->f32_to_q8u, q8_layout, memory, n_elems, first, n, in, rounding);
}

static void encode_q4(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                      const lst__rounding *rounding)
{
    encode(lst__kernels_get()->f32_to_q4, q4_layout, memory, n_elems, first, n, in, rounding);
}

static void encode_q4u(void *memory, size_t n_elems, size_t first, size_t n, const float *in,
                       const lst__rounding *rounding)
{
    encode(lst__kernels_get()->f32_to_q4u, q4_layout, memory, n_elems, first, n, in, rounding);
}

static void decode_q8(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    decode(lst__kernels_get()->q8_to_f32, q8_layout, memory, n_elems, first, n, out);
}

static void decode_q8u(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    decode(lst__kernels_get()->q8u_to_f32, q8_layout, memory, n_elems, first, n, out);
}

static void decode_q4(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    decode(lst__kernels_get()->q4_to_f32, q4_layout, memory, n_elems, first, n, out);
}

static void decode_q4u(const void *memory, size_t n_elems, size_t first, size_t n, float *out)
{
    decode(lst__kernels_get()->q4u_to_f32, q4_layout, memory, n_elems, first, n, out);
}

void lst__q8_run(void *memory, size_t n_elems, size_t first, uint8_t **codes, uint8_t **bases)
{
    *codes = (uint8_t *)memory + code_bytes(q8_layout, first);
    *bases = (uint8_t *)memory + code_bytes(q8_layout, n_elems) + first / q8_layout.group;
}

/* Runs are cut at 32 for q4 too: two groups, whose draws are made together. */
const lst__codec_traits lst__codec_q8 = {LST__Q8_GROUP, bytes_q8, decode_q8, encode_q8};
const lst__codec_traits lst__codec_q8u = {LST__Q8_GROUP, bytes_q8, decode_q8u, encode_q8u};
const lst__codec_traits lst__codec_q4 = {2 * LST__Q4_GROUP, bytes_q4, decode_q4, encode_q4};
const lst__codec_traits lst__codec_q4u = {2 * LST__Q4_GROUP, bytes_q4, decode_q4u, encode_q4u};
