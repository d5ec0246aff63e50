/* SPDX-License-Identifier: MIT
 *
 * A model in its arena, as the tests of this room want it.
 */
#ifndef TESTS_MODEL_FIXTURE_H
#define TESTS_MODEL_FIXTURE_H

#include "base/arena.h"
#include "leanstep/ledger.h"
#include "leanstep/plan.h"
#include "leanstep/pool.h"
#include "model/model.h"

typedef struct fixture {
    lst_plan *plan;
    lst_arena arena;
    lst_ledger ledger;
    lst_pool *pool;
    model *m;
    lst_error err;
} fixture;

/* 0 on success; otherwise f->err says why, and nothing is left to close. */
int fixture_open(fixture *f, const lst_arch *arch, const lst_recipe *recipe, size_t threads);
/* A model that can only generate. */
int fixture_open_generator(fixture *f, const lst_arch *arch, lst_weight_form form, size_t positions, size_t threads);
void fixture_close(fixture *f);

/* A small architecture: 2 layers, odd sizes, grouped queries where the family has them. */
lst_arch fixture_arch(lst_family family, int tied);
/* batch 2, seq 11, chunk 7, float32 AdamW. */
lst_recipe fixture_recipe(void);
/* Random ids in every micro-batch; each target is the id to the right, some not counted. */
void fixture_tokens(fixture *f, uint64_t seed);

/* One step's gradients in one array, tensor after tensor (float32), whatever the mode. Caller frees. NULL on
 * failure. */
float *fixture_step(fixture *f, float loss_scale, double *loss);
size_t fixture_params(const fixture *f);

#endif
