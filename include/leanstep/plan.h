/* SPDX-License-Identifier: MIT
 *
 * The plan: the list of a run's buffers, each with bucket, bytes and the phases in which it lives; and the layout
 * that packs them into one arena. The plan is executed, not estimated: the run takes exactly these buffers.
 */
#ifndef LEANSTEP_PLAN_H
#define LEANSTEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/arch.h"
#include "leanstep/ledger.h"
#include "leanstep/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Phases of a step, in order, for a model of L layers: load, embed forward, forward of layers 0..L-1, loss,
 * backward of layers L-1..0, embed backward, step, save. */
LST_API int lst_phase_load(void);
LST_API int lst_phase_embed(void);
LST_API int lst_phase_forward(size_t layer);
LST_API int lst_phase_loss(size_t n_layers);
LST_API int lst_phase_backward(size_t n_layers, size_t layer);
LST_API int lst_phase_embed_backward(size_t n_layers);
LST_API int lst_phase_step(size_t n_layers);
LST_API int lst_phase_save(size_t n_layers);
LST_API int lst_phase_count(size_t n_layers);
/* "forward of layer 3" and the like, into out (n bytes). */
LST_API void lst_phase_name(size_t n_layers, int phase, char *out, size_t n);

/* What a buffer is, so that a run finds its own by (kind, layer, index). `layer` is -1 where nothing else is said.
 * LAYER_GRADIENT, EMBED_GRADIENT and HEAD_GRADIENT exist where gradients are released, or kept in less than float32.
 * X(identifier, name) */
#define LST_BUFFER_LIST(X)                                                                                             \
    X(WEIGHT, "weight")                     /* index: tensor */                                                        \
    X(SLOT, "slot")                         /* index: tensor; layer: slot number */                                    \
    X(GRADIENT, "gradient")                 /* index: tensor; kept, in the recipe's codec */                           \
    X(LAYER_GRADIENT, "layer gradient")     /* index: role; float32 sums of the layer at work */                       \
    X(EMBED_GRADIENT, "embedding gradient") /* index 0; float32; with a tied head from the loss on */                  \
    X(HEAD_GRADIENT, "head gradient")       /* index 0; float32; of a head that is not tied */                         \
    X(ACT, "activation")                    /* layer; index: which; micro-batch after micro-batch */                   \
    X(SCRATCH, "scratch")                   /* index: which */                                                         \
    X(STEP_SCRATCH, "step scratch")         /* index 0; of rules that need it: adafactor, muon */                      \
    X(DATA, "data")                         /* index: which */

typedef enum lst_buffer_kind {
#define LST_X(id, name) LST_BUFFER_##id,
    LST_BUFFER_LIST(LST_X)
#undef LST_X
        LST_N_BUFFER_KINDS
} lst_buffer_kind;

typedef struct lst_buffer {
    lst_bucket bucket;
    lst_buffer_kind kind;
    int layer;
    size_t index;
    char name[112];
    lst_codec codec;
    size_t n_dims;
    size_t dims[4];
    size_t bytes; /* exact, before alignment */
    int first_phase, last_phase;
    size_t offset; /* in the arena; set by lst_plan_layout */
} lst_buffer;

typedef struct lst_plan {
    lst_arch arch;
    lst_recipe recipe;
    bool has_arch; /* false for a bare parameter count */
    uint64_t n_params;
    size_t n_buffers, capacity;
    lst_buffer *buffers;
    int n_phases;
    size_t n_layers;
    uint64_t bucket_bytes[LST_N_BUCKETS]; /* most live at one moment, by bucket */
    uint64_t at_peak[LST_N_BUCKETS];      /* live in the peak phase */
    uint64_t optimizer_state_bytes;       /* all slots, master included */
    uint64_t fixed_bytes;                 /* weights + kept gradients + optimizer state: what no batch size changes */
    uint64_t sum_bytes;                   /* all buckets added up, as if nothing shared memory */
    uint64_t peak_bytes;                  /* most live at one moment */
    int peak_phase;
    uint64_t arena_bytes; /* what the layout needs: peak_bytes plus alignment and packing */
} lst_plan;

/* Plans a training run of arch with recipe (both copied). The plan is laid out. */
LST_API LST_MUST_USE lst_status lst_plan_create(lst_plan **out, const lst_arch *arch, const lst_recipe *recipe,
                                                lst_error *err);
/* Plans weights, gradients and optimizer state of n_params parameters of unknown shape (no activations, no loss). */
LST_API LST_MUST_USE lst_status lst_plan_create_params(lst_plan **out, uint64_t n_params, const lst_recipe *recipe,
                                                       lst_error *err);
LST_API void lst_plan_destroy(lst_plan *plan);
/* The buffer (kind, layer, index), or NULL. */
LST_API const lst_buffer *lst_plan_find(const lst_plan *plan, lst_buffer_kind kind, int layer, size_t index);
/* Bytes live in a phase, by bucket; returns their sum. by_bucket may be NULL. */
LST_API uint64_t lst_plan_live(const lst_plan *plan, int phase, uint64_t by_bucket[LST_N_BUCKETS]);

/* ---- what to change when it does not fit ---- */
typedef struct lst_lever {
    char what[96];        /* "release gradients layer by layer" */
    char option[64];      /* "--grads release" */
    char price[160];      /* what it costs, in words */
    uint64_t arena_bytes; /* after this lever alone */
    uint64_t saves;       /* against the plan as given */
    lst_recipe recipe;    /* with the lever pulled */
} lst_lever;
/* All levers that save bytes, most first; *n on input is the room, on output the number. */
LST_API LST_MUST_USE lst_status lst_plan_levers(const lst_plan *plan, lst_lever *out, size_t *n, lst_error *err);
/* The recipe nearest to the plan's that fits in limit bytes, pulling levers in order of least harm to the numbers,
 * then to the speed. LST_ERR_MEMORY if none does; *out is then the smallest. */
LST_API LST_MUST_USE lst_status lst_plan_fit(const lst_plan *plan, uint64_t limit_bytes, lst_recipe *out,
                                             lst_error *err);

/* ---- a recipe from a limit alone ---- */

/* What the user has decided, and no choice changes. */
typedef struct lst_fixed {
    bool weights, state, grad_mode, grad_codec, clip, activations, loss_chunk;
} lst_fixed;

typedef struct lst_choice {
    lst_recipe recipe;
    uint64_t arena_bytes;
    bool is_faster;    /* there is a faster one with the same numbers, which does not fit */
    lst_recipe faster; /* the slowest of those */
    uint64_t faster_bytes;
    bool is_better;    /* there is one nearer to float32, which does not fit */
    lst_recipe better; /* the smallest of the next better numbers */
    uint64_t better_bytes;
} lst_choice;

/* The first recipe that fits: numbers first (`base` as given, then the list in src/plan/choose.c), and of the
 * same numbers the fastest (everything kept, pointwise work done again, only layer inputs kept, short loss chunks).
 * Rule, batch and sequence are never touched. LST_ERR_MEMORY names the smallest need; *out then holds that recipe. */
LST_API LST_MUST_USE lst_status lst_plan_choose(const lst_arch *arch, const lst_recipe *base, const lst_fixed *fixed,
                                                uint64_t limit_bytes, lst_choice *out, lst_error *err);

#ifdef __cplusplus
}
#endif
#endif
