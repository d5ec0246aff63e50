/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "cli/explain.h"

static cli_lab lab;

/* How far two weights have moved after 1, 10 and 100 steps with gradients 1 and 0.01. */
static lst_status row(lst_rule rule, double lr, double bytes, lst_error *err)
{
    static const float grads[2] = {1.0f, 0.01f};
    static const int marks[] = {1, 10, 100};
    lst_hyper hyper;
    lst_hyper_default(rule, &hyper);
    hyper.lr = lr;
    hyper.weight_decay = 0;
    lst_status status = cli_lab_open(&lab, rule, LST_WEIGHT_F32, &hyper, 2, 0.0f, err);
    if (status == LST_OK)
        printf("    %-9s %5g %6g ", lst_rule_name(rule), bytes, lr);
    size_t mark = 0;
    for (int step = 1; step <= 100 && status == LST_OK; step++) {
        float w[2];
        status = cli_lab_step(&lab, grads, err);
        if (status == LST_OK && step == marks[mark]) {
            status = cli_lab_read(&lab, w, err);
            printf("  %9.5f %9.5f", (double)w[0], (double)w[1]);
            mark++;
        }
    }
    if (status == LST_OK)
        printf("\n");
    cli_lab_close(&lab);
    return status;
}

/* Steps of weights whose gradients only change their sign, against ones that keep it: Adam's trust in a direction. */
static lst_status noise(double *moved, lst_error *err)
{
    lst_hyper hyper;
    lst_hyper_default(LST_RULE_ADAM, &hyper);
    hyper.lr = 0.01;
    lst_status status = cli_lab_open(&lab, LST_RULE_ADAM, LST_WEIGHT_F32, &hyper, 1, 0.0f, err);
    for (int step = 0; step < 100 && status == LST_OK; step++)
        status = cli_lab_step(&lab, (float[]){step % 2 ? -1.0f : 1.0f}, err);
    float w = 0;
    if (status == LST_OK)
        status = cli_lab_read(&lab, &w, err);
    *moved = (double)w;
    cli_lab_close(&lab);
    return status;
}

lst_status cli_explain_adam(lst_error *err)
{
    double moved = 0;
    printf("Two weights at 0. One has a gradient of 1 at every step, the other of 0.01. How far they have moved:\n\n"
           "    %-9s %5s %6s   %19s  %19s  %19s\n    %-9s %5s %6s   %19s  %19s  %19s\n",
           "", "state", "", "after 1 step", "10 steps", "100 steps", "rule", "bytes", "rate", "g 1    g 0.01",
           "g 1    g 0.01", "g 1    g 0.01");
    lst_status status = row(LST_RULE_SGD, 0.01, 0, err);
    if (status == LST_OK)
        status = row(LST_RULE_MOMENTUM, 0.01, 4, err);
    if (status == LST_OK)
        status = row(LST_RULE_ADAM, 0.01, 8, err);
    if (status == LST_OK)
        status = noise(&moved, err);
    if (status != LST_OK)
        return status;
    printf(
        "\nSGD's step is the gradient's size, so one rate cannot suit both weights: in a transformer gradients of "
        "layers\n"
        "differ by such factors and more. Adam keeps a mean of the gradient (exp_avg) and of its square (exp_avg_sq),\n"
        "4 bytes each, and steps by mean / root of mean square: %g at each step, whatever the gradient's size.\n"
        "Where the gradient only changes its sign, the mean is near 0 and so is the step: 100 steps of +1, -1, +1, "
        "...\n"
        "move the weight by %.5f, not by 1. `leanstep compare` shows what the eight bytes buy on your text.\n",
        0.01, moved);
    return LST_OK;
}
