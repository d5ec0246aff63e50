/* SPDX-License-Identifier: MIT
 *
 * The table of codecs, and the public questions that it answers.
 */
#include "store/codec.h"

static const lst__codec_traits *const traits[LST_N_CODECS] = {
    [LST_CODEC_F32] = &lst__codec_f32,
    [LST_CODEC_BF16] = &lst__codec_bf16,
    [LST_CODEC_F16] = &lst__codec_f16,
    [LST_CODEC_LO16] = &lst__codec_lo16,
};

const lst__codec_traits *lst__codec(lst_codec codec)
{
    return traits[codec];
}

const char *lst_codec_name(lst_codec codec)
{
    static const char *const names[LST_N_CODECS] = {
#define LST_X(id, name, text) name,
        LST_CODEC_LIST(LST_X)
#undef LST_X
    };
    return (unsigned)codec < LST_N_CODECS ? names[codec] : "unknown";
}

size_t lst_codec_bytes(lst_codec codec, size_t n_elems)
{
    return (unsigned)codec < LST_N_CODECS ? lst__codec(codec)->bytes(n_elems) : 0;
}
