/* SPDX-License-Identifier: MIT
 *
 * Buckets and the ledger: what every byte of a run is for.
 *
 * The plan forecasts bytes by bucket; a run fills a ledger as it takes its buffers; a test holds the two equal.
 * All numbers are exact byte counts. A ledger belongs to one thread (the one that takes and gives buffers).
 */
#ifndef LEANSTEP_LEDGER_H
#define LEANSTEP_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, name as printed and in JSON, counts as optimizer state)
 * Optimizer state is one bucket a slot, under the name the field uses (PyTorch's state keys). "master" is the
 * float32 master or the low half of split weights. A slot's block scales count in the slot's own bucket. */
#define LST_BUCKET_LIST(X)                                                                                             \
    X(WEIGHTS, "weights", 0)                                                                                           \
    X(MASTER, "master", 1)                                                                                             \
    X(GRADIENTS, "gradients", 0)                                                                                       \
    X(MOMENTUM_BUFFER, "momentum_buffer", 1)                                                                           \
    X(EXP_AVG, "exp_avg", 1)                                                                                           \
    X(EXP_AVG_SQ, "exp_avg_sq", 1)                                                                                     \
    X(MAX_EXP_AVG_SQ, "max_exp_avg_sq", 1)                                                                             \
    X(EXP_AVG_SQ_ROW, "exp_avg_sq_row", 1)                                                                             \
    X(EXP_AVG_SQ_COL, "exp_avg_sq_col", 1)                                                                             \
    X(SQUARE_AVG, "square_avg", 1)                                                                                     \
    X(GRAD_AVG, "grad_avg", 1)                                                                                         \
    X(Z, "z", 1)                                                                                                       \
    X(AVERAGING, "averaging", 1)                                                                                       \
    X(ACTIVATIONS, "activations", 0)                                                                                   \
    X(LOSS, "loss", 0)                                                                                                 \
    X(WORKSPACE, "workspace", 0)                                                                                       \
    X(DATA, "data", 0)

typedef enum lst_bucket {
#define LST_X(id, name, is_state) LST_BUCKET_##id,
    LST_BUCKET_LIST(LST_X)
#undef LST_X
        LST_N_BUCKETS
} lst_bucket;

/* The name in tables, JSON and files; "unknown" beyond the list. Static storage. */
LST_API const char *lst_bucket_name(lst_bucket bucket);
/* Whether it counts as optimizer state (moments and master; not weights, not gradients). */
LST_API bool lst_bucket_is_state(lst_bucket bucket);

/* The most phases a ledger or plan can tell apart (load, forward and backward of each layer, loss, step, ...). */
#define LST_MAX_PHASES 1024

typedef struct lst_ledger {
    uint64_t now[LST_N_BUCKETS];  /* bytes held at this moment */
    uint64_t peak[LST_N_BUCKETS]; /* most ever held, bucket by bucket (their sum is no peak of anything) */
    uint64_t now_total;
    uint64_t peak_total;                 /* most ever held at one moment */
    uint64_t at_peak[LST_N_BUCKETS];     /* what each bucket held at that moment */
    int phase;                           /* the current phase, as set by lst_ledger_enter */
    int peak_phase;                      /* the phase in which peak_total was reached first */
    uint64_t phase_peak[LST_MAX_PHASES]; /* most held in total in each phase */
    uint64_t n_takes;                    /* how many buffers were taken */
} lst_ledger;

/* Empty, in phase 0. */
LST_API void lst_ledger_init(lst_ledger *ledger);
/* The run goes on to this phase (0 to LST_MAX_PHASES - 1); what is held now is held in it. */
LST_API void lst_ledger_enter(lst_ledger *ledger, int phase);
/* A buffer of this many bytes is in use from now on. */
LST_API void lst_ledger_take(lst_ledger *ledger, lst_bucket bucket, size_t bytes);
/* Giving back more than a bucket holds is a programming error (asserted). */
LST_API void lst_ledger_give(lst_ledger *ledger, lst_bucket bucket, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
