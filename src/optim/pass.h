/* SPDX-License-Identifier: MIT
 *
 * The tile step: the one place where rule, codec and home meet. A pass walks a tensor in tiles that fit in L1, decodes
 * what the rule reads, runs it on float32, and encodes what it wrote. An array that is stored as float32 and needs no
 * scaling is worked on where it lies, without a copy.
 *
 * Tiles are gathered in tasks whose size depends on the tensor alone, and sums are taken tile by tile, task by
 * task, in double: a result cannot depend on the number of threads.
 */
#ifndef LST_OPTIM_PASS_H
#define LST_OPTIM_PASS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "leanstep/optim.h"
#include "numeric/rounding.h"
#include "optim/rule.h"
#include "store/codec.h"
#include "store/weights.h"

/* Everything a step of one tensor needs. */
struct lst__step {
    const lst_tensor *tensor;
    const lst_hyper *hyper;
    int64_t t; /* 1 for the tensor's first step */
    size_t n_elems;
    lst__weights weights;
    const void *grad;
    lst_codec grad_codec;
    lst_grad_scale scale;
    const lst_slot *slots; /* the rule's own, master apart */
    size_t n_slots;
    lst__rounding rounding; /* .slot is set for each array */
    const lst__kernels *kernels;
    lst_pool *pool;
    void *scratch; /* of rule->scratch_bytes() */
};

/* What a pass reads and writes: bits. */
enum lst__use { LST__USE_W = 1, LST__USE_G = 2, LST__USE_S0 = 4 /* << slot */ };
#define LST__USE_SLOTS(n) ((LST__USE_S0 << (n)) - LST__USE_S0)

typedef struct lst__tile {
    size_t first, n;
    float *w;       /* arrays neither read nor written are NULL; those only read must not be changed */
    const float *g; /* unscaled and clipped */
    float *s[LST__RULE_STATES];
} lst__tile;

#define LST__MAX_SUMS 4

typedef struct lst__pass {
    unsigned reads, writes;
    /* Works on one tile and adds to sums[0 .. n_sums). Tiles of one task come in order, by one thread. */
    void (*tile)(const lst__step *step, const void *user, const lst__tile *tile, double *sums);
    const void *user;
    size_t n_sums;
} lst__pass;

/* Elements of a tile, more where a codec's block asks for it; and the number of tasks of a tensor of n elements. */
#define LST__TILE 1024
#define LST__MAX_TILE LST__MAX_BLOCK
#define LST__MAX_TASKS 1024
size_t lst__n_tasks(size_t n_elems);

/* Runs a pass over the whole tensor; *sums (n_sums of them; may be NULL if there are none) are its totals. */
void lst__pass_run(const lst__step *step, const lst__pass *pass, double *sums);
/* One task of it, for a caller that deals tasks of many tensors. */
void lst__pass_task(const lst__step *step, const lst__pass *pass, size_t task, double *sums);

/* A run of the gradient, unscaled and clipped: where it lies, or in the buffer (n floats). For work that goes by
 * rows. */
const float *lst__load_grad(const lst__step *step, size_t first, size_t n, float *buffer);

/* The pass of an element-wise rule; `call` is its user data and must outlive it. */
lst__pass lst__pass_of_call(const lst__rule_call *call, size_t n_slots);

#endif
