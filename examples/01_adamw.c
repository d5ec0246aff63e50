/* SPDX-License-Identifier: MIT
 * AdamW on plain arrays: the state's bytes are known before they exist, and taken once. Fits y = 3a - 2b + 0.5.
 *     cc 01_adamw.c $(pkg-config --cflags --libs leanstep) -o 01_adamw && ./01_adamw */
#include <stdio.h>
#include <stdlib.h>

#include "leanstep/optim.h"

#define TRY(call)                                                                                                      \
    if ((call) != LST_OK)                                                                                              \
    return fprintf(stderr, "%s\n", err.message)

int main(void)
{
    lst_error err;
    lst_hyper groups[2]; /* weights decay, biases do not */
    lst_hyper_default(LST_RULE_ADAMW, &groups[0]);
    groups[0].lr = 0.05, groups[0].weight_decay = 1e-4;
    groups[1] = groups[0], groups[1].weight_decay = 0;
    const lst_tensor tensors[2] = {{.name = "weight", .n_dims = 1, .dims = {2}, .group = 0},
                                   {.name = "bias", .n_dims = 0, .group = 1}};
    const lst_optim_options options = {.struct_size = sizeof options,
                                       .rule = LST_RULE_ADAMW,
                                       .weights = LST_WEIGHT_F32,
                                       .grads = LST_CODEC_F32,
                                       .state = LST_CODEC_F32,
                                       .n_groups = 2,
                                       .groups = groups};
    float w[2] = {0, 0}, bias = 0, gw[2], gb;
    const void *grads[2] = {gw, &gb};
    lst_optim *optim;
    TRY(lst_optim_create(&optim, &options, tensors, 2, &err));
    const size_t bytes = lst_optim_block_bytes(optim); /* the plan: nothing is allocated later */
    void *state = aligned_alloc(64, (bytes + 63) / 64 * 64);
    printf("state: %zu bytes for 3 parameters\n", lst_optim_state_bytes(optim));
    TRY(lst_optim_bind(optim, state, bytes, &err));
    TRY(lst_optim_bind_weights(optim, 0, w, &err));
    TRY(lst_optim_bind_weights(optim, 1, &bias, &err));
    TRY(lst_optim_reset(optim, &err));
    for (int step = 0; step < 1000; step++) {
        const float a = (float)(step % 7) / 3 - 1, b = (float)(step % 5) / 2 - 1; /* one example a step */
        const float error = w[0] * a + w[1] * b + bias - (3 * a - 2 * b + 0.5f);
        gw[0] = error * a, gw[1] = error * b, gb = error;
        TRY(lst_optim_step(optim, grads, (lst_grad_scale){1, 1}, &err));
    }
    printf("y = %.2f a + %.2f b + %.2f\n", (double)w[0], (double)w[1], (double)bias);
    lst_optim_destroy(optim);
    free(state);
    return !(w[0] > 2.9f && w[0] < 3.1f && w[1] > -2.1f && w[1] < -1.9f && bias > 0.4f && bias < 0.6f);
}
