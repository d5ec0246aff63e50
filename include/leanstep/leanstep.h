/* SPDX-License-Identifier: MIT
 *
 * Leanstep: optimizers in exactly the bytes that were planned. This header includes all the others.
 *
 * A tour, in the order of reading:
 *
 *     status.h   how a function fails: a status, and a sentence that says what to do
 *     codec.h    how a tensor's numbers are stored, and the forms in which a weight can be kept
 *     ledger.h   buckets: what each byte is for; the ledger: what was really taken
 *     pool.h     threads that cannot change a result
 *     optim.h    the heart: rules, state, one step; clipping, loss scaling, schedules
 *     arch.h     the shape of a transformer as data
 *     recipe.h   everything that decides bytes and numbers
 *     plan.h     shape and recipe -> buffers with lifetimes -> one arena; what fits, and what to change if it does not
 *     ckpt.h     an optimizer and its weights <-> files
 *     models.h   shapes of public models by name, and of a config.json that is only to be counted
 *     estimate.h what a PyTorch run of the same model would take, phase by phase
 *
 * A program that only wants an optimizer includes optim.h (examples/01_adamw.c is a whole one):
 *
 *     cc my.c $(pkg-config --cflags --libs leanstep)
 *
 * Objects are not shared between threads unless their header says so; different objects may be used at the same time.
 * Nothing here prints, exits, aborts or keeps global mutable state; the kernels are chosen once, for the CPU at hand.
 * Names that start with lst_ or LST_ belong to this library.
 */
#ifndef LEANSTEP_LEANSTEP_H
#define LEANSTEP_LEANSTEP_H

#include "leanstep/arch.h"
#include "leanstep/ckpt.h"
#include "leanstep/codec.h"
#include "leanstep/estimate.h"
#include "leanstep/ledger.h"
#include "leanstep/models.h"
#include "leanstep/optim.h"
#include "leanstep/plan.h"
#include "leanstep/pool.h"
#include "leanstep/recipe.h"
#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers. Before 1.0.0 the middle number changes when a program must be changed or recompiled. */
#define LST_VERSION "0.1.0"

/* The version of the library that is running, in the same form. Static storage. */
LST_API const char *lst_version(void);

#ifdef __cplusplus
}
#endif
#endif
