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
    [LST_CODEC_LO8] = &lst__codec_lo8,
    [LST_CODEC_Q8] = &lst__codec_q8,
    [LST_CODEC_Q8U] = &lst__codec_q8u,
    [LST_CODEC_Q4] = &lst__codec_q4,
    [LST_CODEC_Q4U] = &lst__codec_q4u,
    [LST_CODEC_Q8_DYNAMIC] = &lst__codec_q8_dynamic,
    [LST_CODEC_Q8_DYNAMIC_U] = &lst__codec_q8_dynamic_u,
    [LST_CODEC_Q8_DYNAMIC_2048] = &lst__codec_q8_dynamic_2048,
    [LST_CODEC_Q8_DYNAMIC_2048_U] = &lst__codec_q8_dynamic_2048_u,
    [LST_CODEC_Q8_FLASH] = &lst__codec_q8_flash,
    [LST_CODEC_Q8_FLASH_U] = &lst__codec_q8_flash_u,
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

size_t lst_codec_block(lst_codec codec)
{
    return (unsigned)codec < LST_N_CODECS ? lst__codec(codec)->block : 1;
}

lst_codec lst_codec_unsigned(lst_codec codec)
{
    switch (codec) {
    case LST_CODEC_Q8:
        return LST_CODEC_Q8U;
    case LST_CODEC_Q4:
        return LST_CODEC_Q4U;
    case LST_CODEC_Q8_DYNAMIC:
        return LST_CODEC_Q8_DYNAMIC_U;
    case LST_CODEC_Q8_DYNAMIC_2048:
        return LST_CODEC_Q8_DYNAMIC_2048_U;
    case LST_CODEC_Q8_FLASH:
        return LST_CODEC_Q8_FLASH_U;
    default:
        return codec;
    }
}
