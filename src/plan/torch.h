/* SPDX-License-Identifier: MIT
 *
 * What the files torch_*.c share. The symbols are those of the README of torch_step_bytes.csv: B batch, T sequence,
 * t = B*T, h hidden, a heads, d head_dim, q = a*d, kv = key/value heads * d, i MLP width, V vocabulary, L layers,
 * r adapter rank.
 */
#ifndef LST_PLAN_TORCH_H
#define LST_PLAN_TORCH_H

#include "leanstep/estimate.h"

typedef struct lst__torch {
    const lst_torch_run *run;
    uint64_t B, T, t, h, a, d, q, kv, i, V, L, r;
    uint64_t weight;  /* bytes of an element of weights (and gradients) */
    uint64_t compute; /* of what a linear reads and writes */
    uint64_t stream;  /* of the residual stream */
    uint64_t adapter; /* of adapters and their gradients */
    bool lora, autocast, gpt2, dropout, eager;
} lst__torch;

/* Tensors kept for backward, with names. */
#define LST__KEPT_MAX 48
typedef struct lst__kept {
    size_t n;
    uint64_t bytes;
    uint64_t scalar_bytes; /* of them: wrapped Python numbers, which checkpointing keeps as well */
    struct {
        const char *what;
        uint64_t bytes;
    } item[LST__KEPT_MAX];
} lst__kept;

void lst__torch_keep(lst__kept *kept, const char *what, uint64_t bytes);

/* torch_layer.c, torch_gpt2.c: what one layer keeps between forward and backward. `first`: no gradient flows into
 * it. */
void lst__torch_layer(const lst__torch *c, bool first, lst__kept *out);
/* The part of it that attention and its norm keep. */
uint64_t lst__torch_attention_kept(const lst__torch *c, bool first);
void lst__torch_gpt2_layer(const lst__torch *c, bool first, lst__kept *out);
/* What is kept once, outside the layers. */
void lst__torch_outside(const lst__torch *c, lst__kept *out);
/* Matrix and bias elements of one layer's linears. */
uint64_t lst__torch_linear_elems(const lst__torch *c);
uint64_t lst__torch_bias_elems(const lst__torch *c);

/* torch_adapters.c: whether a linear of the shape's list is adapted; trainable tensors in order. */
bool lst__torch_adapted(const lst_torch_run *run, const lst_shape_tensor *tensor);
typedef struct lst__trainable {
    uint64_t elems, rows, cols; /* cols 0 for a vector */
    bool embedding, hidden;     /* hidden: a matrix inside the layers */
    int layer;
} lst__trainable;
typedef struct lst__trainables {
    size_t n, capacity;
    lst__trainable *item;
    bool failed;
    uint64_t elems, largest;
    uint64_t in_layer; /* elements of one layer */
} lst__trainables;
LST_MUST_USE lst_status lst__torch_trainables(const lst_torch_run *run, lst__trainables *out, lst_error *err);

/* torch_weights.c */
uint64_t lst__torch_weight_bytes(const lst__torch *c, const lst__trainables *trainable);

/* torch_state.c */
typedef struct lst__state_bytes {
    uint64_t setup;     /* made with the optimizer */
    uint64_t tables;    /* of it: tables that count as state once an 8-bit tensor holds them */
    uint64_t state;     /* all state */
    uint64_t temporary; /* above weights, gradients and state, in a step that finds its state */
    uint64_t first;     /* state + temporaries at the highest point of the first step */
} lst__state_bytes;
void lst__torch_state(const lst__torch *c, const lst__trainables *trainable, lst__state_bytes *out);

/* torch_ranks.c: one rank's part of weights, gradients and state; what it gathers. */
struct lst__torch_sums;
void lst__torch_shard(const lst__torch *c, struct lst__torch_sums *s, lst__state_bytes *state, uint64_t *weights);

/* torch_phases.c: the sums of a step. */
typedef struct lst__torch_sums {
    uint64_t start; /* live at the start of the step, gradients not included */
    uint64_t grads; /* all gradients */
    uint64_t held;  /* gradients there before backward begins */
    uint64_t layer_grads;
    uint64_t gathered; /* ZeRO-3: whole layers in use, beside the shards; from forward to the end of backward */
    uint64_t layer, first_layer, checkpoint, outside, loss;
} lst__torch_sums;
/* Shifted labels kept by the loss; the model's output where the caller holds it through backward. */
uint64_t lst__torch_label_bytes(const lst__torch *c);
uint64_t lst__torch_held_output(const lst__torch *c);
uint64_t lst__torch_layers_kept(const lst__torch *c, const lst__torch_sums *s);
uint64_t lst__torch_after_loss(const lst__torch *c, const lst__torch_sums *s);
/* Fills one step from sums whose start and held are that step's; state is what the step's optimizer adds. */
void lst__torch_phases(const lst__torch *c, const lst__torch_sums *s, uint64_t optimizer_peak, uint64_t new_state,
                       lst_torch_step *out);
/* torch_backward.c: the highest of backward's candidates, and its name. */
uint64_t lst__torch_backward_peak(const lst__torch *c, const lst__torch_sums *s, const char **at);
/* What backward makes and drops again, as if all of it lived at once: a layer computed again, gradients of its inner
 * tensors, a weight's gradient before it joins the one that is held, a tied head's beside the embedding's. */
uint64_t lst__torch_backward_makes(const lst__torch *c, const lst__torch_sums *s);

#endif
