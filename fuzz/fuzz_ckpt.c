/* SPDX-License-Identifier: MIT
 *
 * Any bytes as optimizer.safetensors, and as weights, for a small AdamW. What is refused must not have changed a byte
 * of state; what is accepted must be possible to save and load again. And as state of any layout, to convert.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "leanstep/ckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { N_TENSORS = 2, BLOCK_BYTES = 65536 };

static lst_optim *optim;
static _Alignas(64) unsigned char block[BLOCK_BYTES], before[BLOCK_BYTES];
static _Alignas(64) float weights[N_TENSORS][64];
static const lst_tensor tensors[N_TENSORS] = {{.name = "w", .n_dims = 2, .dims = {2, 3}},
                                              {.name = "b", .n_dims = 0, .group = 1}};

static void require(int ok)
{
    if (!ok)
        abort();
}

static void create(void)
{
    lst_hyper groups[2];
    lst_hyper_default(LST_RULE_ADAMW, &groups[0]);
    groups[1] = groups[0];
    groups[1].weight_decay = 0;
    lst_optim_options options = {
        .struct_size = sizeof options, .rule = LST_RULE_ADAMW, .n_groups = 2, .groups = groups, .seed = 7};
    require(lst_optim_create(&optim, &options, tensors, N_TENSORS, NULL) == LST_OK);
    require(lst_optim_bind(optim, block, sizeof block, NULL) == LST_OK);
    for (size_t i = 0; i < N_TENSORS; i++)
        require(lst_optim_bind_weights(optim, i, weights[i], NULL) == LST_OK);
    require(lst_optim_reset(optim, NULL) == LST_OK);
}

static void try_weights(const char *path)
{
    lst_ckpt_tensor list[N_TENSORS];
    for (size_t i = 0; i < N_TENSORS; i++) {
        list[i] = (lst_ckpt_tensor){
            .name = tensors[i].name, .codec = LST_CODEC_F32, .n_dims = tensors[i].n_dims, .memory = weights[i]};
        memcpy(list[i].dims, tensors[i].dims, sizeof list[i].dims);
    }
    lst_error err = {0};
    if (lst_ckpt_load_weights(path, list, N_TENSORS, NULL, &err) != LST_OK)
        require(err.message[0] != '\0');
}

static void try_state(const char *path)
{
    lst_error err = {0};
    memcpy(before, block, sizeof block);
    if (lst_ckpt_load_optim(path, optim, &err) != LST_OK) {
        require(err.message[0] != '\0' && memcmp(before, block, sizeof block) == 0);
        return;
    }
    require(lst_optim_steps(optim, 0) >= 0 && lst_optim_begun(optim) >= 0);
    char *trainer;
    require(lst_ckpt_read_trainer(path, &trainer, NULL) == LST_OK);
    lst_ckpt_free(trainer);
}

/* As state of another layout: what is refused says why, what is written is read again. */
static void try_convert(const char *path)
{
    static char to[64], again[72];
    snprintf(to, sizeof to, "/tmp/lst_fuzz_convert_%d", (int)getpid());
    snprintf(again, sizeof again, "%s_again", to);
    for (unsigned layout = 0; layout < LST_N_CKPT_LAYOUTS; layout++) {
        lst_error err = {0};
        if (lst_ckpt_convert_optim(path, to, (lst_ckpt_layout)layout, LST_N_CODECS, &err) != LST_OK) {
            require(err.message[0] != '\0');
            continue;
        }
        require(lst_ckpt_convert_optim(to, again, (lst_ckpt_layout)layout, LST_N_CODECS, &err) == LST_OK);
        unlink(to);
        unlink(again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (optim == NULL)
        create();
    int fd = memfd_create("fuzzed", 0);
    require(fd >= 0);
    require(write(fd, data, n_bytes) == (ssize_t)n_bytes);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    try_weights(path);
    try_state(path);
    try_convert(path);
    close(fd);
    return 0;
}
