/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "cli/explain.h"
#include "numeric/bf16.h"

static cli_lab lab;

#define UPDATE 1e-4f
enum { STEPS = 2000 };

static void neighbours(void)
{
    const uint16_t half = lst__bf16_from_f32(0.5f);
    const double below = (double)lst__bf16_to_f32((uint16_t)(half - 1)), at = (double)lst__bf16_to_f32(half),
                 above = (double)lst__bf16_to_f32((uint16_t)(half + 1));
    printf("A bf16 number has 8 significant bits. The three around 0.5, with their bits:\n\n"
           "    %04x  %-11.9g   %.6f below\n    %04x  %.9g\n    %04x  %-11.9g   %.6f above\n\n",
           half - 1, below, at - below, half, at, half + 1, above, above - at);
    printf(
        "An update of %g is less than half the way to either: 0.5 + %g is rounded back to %.9g (%04x), and deleted.\n"
        "So is the next, and the next. In float32 they add up:\n\n",
        (double)UPDATE, (double)UPDATE, (double)lst__bf16_to_f32(lst__bf16_from_f32(0.5f + UPDATE)),
        lst__bf16_from_f32(0.5f + UPDATE));
}

/* Mean and standard deviation of the weights. */
static lst_status measure(double *mean, double *deviation, lst_error *err)
{
    static float w[CLI_LAB_WEIGHTS];
    double sum = 0, squares = 0;
    lst_status status = cli_lab_read(&lab, w, err);
    if (status != LST_OK)
        return status;
    for (size_t i = 0; i < CLI_LAB_WEIGHTS; i++)
        sum += (double)w[i];
    *mean = sum / CLI_LAB_WEIGHTS;
    for (size_t i = 0; i < CLI_LAB_WEIGHTS; i++)
        squares += ((double)w[i] - *mean) * ((double)w[i] - *mean);
    *deviation = sqrt(squares / CLI_LAB_WEIGHTS);
    return LST_OK;
}

static lst_status row(lst_weight_form form, double bytes, const char *story, lst_error *err)
{
    static float grads[CLI_LAB_WEIGHTS];
    lst_hyper hyper;
    double first = 0, last = 0, deviation = 0;
    lst_hyper_default(LST_RULE_SGD, &hyper);
    hyper.lr = (double)UPDATE;
    for (size_t i = 0; i < CLI_LAB_WEIGHTS; i++)
        grads[i] = -1;
    lst_status status = cli_lab_open(&lab, LST_RULE_SGD, form, &hyper, CLI_LAB_WEIGHTS, 0.5f, err);
    for (int step = 0; step < STEPS && status == LST_OK; step++) {
        status = cli_lab_step(&lab, grads, err);
        if (step == 0 && status == LST_OK)
            status = measure(&first, &deviation, err);
    }
    if (status == LST_OK)
        status = measure(&last, &deviation, err);
    if (status == LST_OK)
        printf("    %-13s %5g  %10.6f  %10.6f  %9.6f  %8.6f  %s\n", lst_weight_form_name(form), bytes, first, last,
               last - 0.5, deviation, story);
    cli_lab_close(&lab);
    return status;
}

lst_status cli_explain_bf16(lst_error *err)
{
    static const struct {
        lst_weight_form form;
        double bytes;
        const char *story;
    } rows[] = {{LST_WEIGHT_F32, 4, "23 bits below the first"},
                {LST_WEIGHT_BF16_NEAREST, 2, "every update deleted"},
                {LST_WEIGHT_BF16_MASTER, 6, "a float32 copy beside the bf16 weight"},
                {LST_WEIGHT_SPLIT32, 4, "the 16 bits that bf16 lacks, kept beside it: float32, bit for bit"},
                {LST_WEIGHT_SPLIT24, 3, "8 of them; the rest is rounded stochastically"},
                {LST_WEIGHT_BF16_SR, 2, "stochastic: 1 update in 39 moves a weight by 39 updates"}};
    neighbours();
    printf("    %-13s %5s  %10s  %10s  %9s  %8s\n", "weights", "bytes", "1 step", "2000 steps", "moved", "spread");
    lst_status status = LST_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == LST_OK; i++)
        status = row(rows[i].form, rows[i].bytes, rows[i].story, err);
    printf("\nMeans over %d weights, each stepped by SGD with a gradient of -1 and a rate of %g; spread is their "
           "standard\n"
           "deviation: what stochastic rounding adds as noise. bytes: weight and master together, by --weights.\n",
           (int)CLI_LAB_WEIGHTS, (double)UPDATE);
    return status;
}
