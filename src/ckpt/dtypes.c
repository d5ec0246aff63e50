/* SPDX-License-Identifier: MIT */
#include "ckpt/dtypes.h"

lst_st_dtype lst__ckpt_dtype(lst_codec codec)
{
    switch (codec) {
    case LST_CODEC_F32:
        return LST_ST_F32;
    case LST_CODEC_BF16:
        return LST_ST_BF16;
    case LST_CODEC_F16:
        return LST_ST_F16;
    case LST_CODEC_LO16:
        return LST_ST_U16;
    default: /* bytes as stored: lo8, and codes with their scales behind them */
        return (unsigned)codec < LST_N_CODECS ? LST_ST_U8 : LST_ST_N_DTYPES;
    }
}

lst_codec lst__ckpt_codec(lst_st_dtype dtype)
{
    switch (dtype) {
    case LST_ST_F32:
        return LST_CODEC_F32;
    case LST_ST_BF16:
        return LST_CODEC_BF16;
    case LST_ST_F16:
        return LST_CODEC_F16;
    default:
        return LST_N_CODECS;
    }
}
