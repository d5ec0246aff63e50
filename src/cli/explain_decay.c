/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cli/explain.h"

static cli_lab lab;

enum { STEPS = 1000 };

/* Two weights at 1; gradients of +-10 and +-0.1 in turn, so that decay alone has a direction. */
static lst_status row(lst_rule rule, lst_error *err)
{
    lst_hyper hyper;
    float w[2];
    lst_hyper_default(rule, &hyper);
    hyper.lr = 0.001;
    hyper.weight_decay = 0.1;
    lst_status status = cli_lab_open(&lab, rule, LST_WEIGHT_F32, &hyper, 2, 1.0f, err);
    for (int step = 0; step < STEPS && status == LST_OK; step++) {
        const float sign = step % 2 ? -1.0f : 1.0f;
        status = cli_lab_step(&lab, (float[]){10 * sign, 0.1f * sign}, err);
    }
    if (status == LST_OK)
        status = cli_lab_read(&lab, w, err);
    if (status == LST_OK)
        printf("    %-6s %-28s %8.4f %8.4f\n", lst_rule_name(rule),
               rule == LST_RULE_ADAMW ? "decoupled: w *= 1 - lr*decay" : "in the gradient: g += decay*w", (double)w[0],
               (double)w[1]);
    cli_lab_close(&lab);
    return status;
}

lst_status cli_explain_decay(lst_error *err)
{
    printf(
        "Two weights at 1. Their gradients are noise: +10, -10, +10, ... and +0.1, -0.1, ... Decay 0.1, rate 0.001,\n"
        "%d steps. What is left of them:\n\n    %-6s %-28s %8s %8s\n",
        (int)STEPS, "rule", "where decay goes", "g 10", "g 0.1");
    lst_status status = row(LST_RULE_ADAM, err);
    if (status == LST_OK)
        status = row(LST_RULE_ADAMW, err);
    if (status == LST_OK)
        printf("\nDecoupled decay takes the same share of both: (1 - 0.0001)^%d = 0.905. Decay that is added to the "
               "gradient\n"
               "is divided by the root of the mean square with it: the weight of large gradients hardly decays, the "
               "one of\n"
               "small gradients is driven by decay at half of Adam's full step. That is why AdamW is not Adam with "
               "decay.\n",
               (int)STEPS);
    return status;
}
