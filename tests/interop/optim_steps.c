/* SPDX-License-Identifier: MIT
 *
 * optim_steps RULE N_ELEMS N_STEPS [FIELD=VALUE...] < floats > floats
 *
 * Reads N_ELEMS float32 weights, then N_ELEMS gradients for each step; steps them with libleanstep as one tensor;
 * writes the weights. test_optim.py compares what comes out with torch.optim.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leanstep/leanstep.h"

static int fail(const char *message)
{
    fprintf(stderr, "optim_steps: %s\n", message);
    return 1;
}

static int set_field(lst_hyper *hyper, const char *word)
{
    const struct {
        const char *name;
        double *field;
    } fields[] = {{"lr=", &hyper->lr},   {"beta1=", &hyper->beta1},       {"beta2=", &hyper->beta2},
                  {"eps=", &hyper->eps}, {"momentum=", &hyper->momentum}, {"weight_decay=", &hyper->weight_decay}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        size_t n = strlen(fields[i].name);
        if (!strncmp(word, fields[i].name, n)) {
            *fields[i].field = strtod(word + n, NULL);
            return 0;
        }
    }
    return fail(word);
}

static int steps(lst_optim *optim, float *weights, float *grad, size_t n_elems, size_t n_steps, lst_error *err)
{
    size_t bytes = lst_optim_block_bytes(optim);
    void *block = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    lst_status status = lst_optim_bind(optim, block, bytes, err);
    if (status == LST_OK)
        status = lst_optim_bind_weights(optim, 0, weights, err);
    if (status == LST_OK)
        status = lst_optim_reset(optim, err);
    for (size_t step = 0; status == LST_OK && step < n_steps; step++) {
        if (fread(grad, sizeof *grad, n_elems, stdin) != n_elems)
            return fail("too few gradients");
        const void *grads[] = {grad};
        status = lst_optim_step(optim, grads, (lst_grad_scale){1.0f, 1.0f}, err);
    }
    free(block);
    return status == LST_OK ? 0 : fail(err->message);
}

int main(int argc, char **argv)
{
    lst_error err;
    lst_optim_options options = {.struct_size = sizeof options, .n_groups = 1};
    lst_hyper hyper;
    if (argc < 4 || lst_rule_find(argv[1], &options.rule, &err) != LST_OK)
        return fail(argc < 4 ? "too few words" : err.message);
    lst_hyper_default(options.rule, &hyper);
    for (int i = 4; i < argc; i++)
        if (set_field(&hyper, argv[i]))
            return 1;
    options.groups = &hyper;
    size_t n_elems = strtoull(argv[2], NULL, 10), n_steps = strtoull(argv[3], NULL, 10);
    lst_tensor tensor = {.name = "weights", .n_dims = 1, .dims = {n_elems}};
    float *weights = malloc(n_elems * sizeof *weights), *grad = malloc(n_elems * sizeof *grad);
    lst_optim *optim = NULL;
    if (!weights || !grad || fread(weights, sizeof *weights, n_elems, stdin) != n_elems)
        return fail("too few weights");
    if (lst_optim_create(&optim, &options, &tensor, 1, &err) != LST_OK)
        return fail(err.message);
    int status = steps(optim, weights, grad, n_elems, n_steps, &err);
    lst_optim_destroy(optim);
    if (status == 0 && fwrite(weights, sizeof *weights, n_elems, stdout) != n_elems)
        status = fail("cannot write");
    free(weights);
    free(grad);
    return status;
}
