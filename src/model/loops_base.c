/* SPDX-License-Identifier: MIT */
#include "model/loops_body.h"

static const model_loops table = MODEL_LOOPS_TABLE("base");

const model_loops *model_loops_base(void)
{
    return &table;
}
