/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/explain.h"

lst_status cli_lab_open(cli_lab *lab, lst_rule rule, lst_weight_form weights, const lst_hyper *hyper, size_t n,
                        float value, lst_error *err)
{
    static float values[CLI_LAB_WEIGHTS];
    const lst_optim_options options = {
        .struct_size = sizeof options, .rule = rule, .weights = weights, .n_groups = 1, .groups = hyper, .seed = 1};
    const lst_tensor tensor = {.name = "w", .n_dims = 1, .dims = {n}};
    memset(lab, 0, sizeof *lab);
    lab->n = n;
    for (size_t i = 0; i < n; i++)
        values[i] = value;
    lst_status status = lst_optim_create(&lab->optim, &options, &tensor, 1, err);
    if (status == LST_OK)
        status = lst_optim_bind_weights(lab->optim, 0, lab->weights, err);
    if (status == LST_OK)
        status = lst_optim_bind(lab->optim, lab->state, sizeof lab->state, err);
    if (status == LST_OK)
        status = lst_optim_reset(lab->optim, err);
    return status == LST_OK ? lst_optim_set_weights_f32(lab->optim, 0, values, err) : status;
}

lst_status cli_lab_step(cli_lab *lab, const float *grads, lst_error *err)
{
    const void *all[1] = {grads};
    return lst_optim_step(lab->optim, all, (lst_grad_scale){1, 1}, err);
}

lst_status cli_lab_read(const cli_lab *lab, float *out, lst_error *err)
{
    return lst_optim_get_weights_f32(lab->optim, 0, out, err);
}

void cli_lab_close(cli_lab *lab)
{
    lst_optim_destroy(lab->optim);
    lab->optim = NULL;
}
