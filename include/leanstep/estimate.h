/* SPDX-License-Identifier: MIT
 *
 * Estimates for other trainers: the live tensor bytes of a PyTorch training run (Hugging Face models and Trainer,
 * torchtune, PEFT), phase by phase. Never mixed with plan.h: a plan is executed by leanstep and exact; this is what
 * the other trainer's code would keep. The arithmetic follows which tensors autograd keeps, term by term, and gives
 * the counted bytes of CPU runs exactly (tests/plan/test_torch_bytes.c). On a GPU the same tensors are rounded,
 * cached and joined by a context: those are lines of their own, with a stated uncertainty.
 *
 *     lst_torch_run run;
 *     lst_torch_run_default(&run);
 *     lst_shape_by_name("Qwen2.5-0.5B", &run.shape, &err);
 *     run.dtype = LST_TORCH_BFLOAT16;
 *     lst_estimate *estimate;
 *     lst_torch_estimate(&estimate, &run, &err);
 *     printf("%" PRIu64 " bytes in %s\n", estimate->steady.peak, estimate->steady.peak_phase);
 *     lst_estimate_destroy(estimate);
 */
#ifndef LEANSTEP_ESTIMATE_H
#define LEANSTEP_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/models.h"
#include "leanstep/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, name, what it is) */
#define LST_TORCH_DTYPE_LIST(X)                                                                                        \
    X(FLOAT32, "float32", "weights, gradients and compute in float32")                                                 \
    X(BFLOAT16, "bfloat16", "weights, gradients and compute in bfloat16")                                              \
    X(AUTOCAST, "autocast", "float32 weights and gradients, bfloat16 compute")

typedef enum lst_torch_dtype {
#define LST_X(id, name, text) LST_TORCH_##id,
    LST_TORCH_DTYPE_LIST(LST_X)
#undef LST_X
        LST_N_TORCH_DTYPES
} lst_torch_dtype;

/* How the frozen base's linears are stored under adapters. X(identifier, name, what it is) */
#define LST_TORCH_BASE_LIST(X)                                                                                         \
    X(PLAIN, "plain", "in the run's dtype")                                                                            \
    X(INT8, "int8", "one byte an element and a float32 scale a row")                                                   \
    X(NF4, "nf4", "4 bits an element and a float32 scale a block of 64")                                               \
    X(NF4_DQ, "nf4-dq", "the same with 8-bit scales (double quantization)")

typedef enum lst_torch_base {
#define LST_X(id, name, text) LST_TORCH_BASE_##id,
    LST_TORCH_BASE_LIST(LST_X)
#undef LST_X
        LST_N_TORCH_BASES
} lst_torch_base;

/* X(identifier, name, what its state is) */
#define LST_TORCH_OPTIM_LIST(X)                                                                                        \
    X(SGD, "sgd", "no state")                                                                                          \
    X(MOMENTUM, "momentum", "SGD with momentum: one value")                                                            \
    X(ADAMW, "adamw", "two values in the weights' dtype")                                                              \
    X(ADAFACTOR, "adafactor", "a row and a column of float32 a matrix")                                                \
    X(ADAMW8_BNB, "adamw8bit-bnb", "bitsandbytes: two bytes and two scales a block of 256; below 4,096 float32")       \
    X(ADAMW8_AO, "adamw8bit-torchao", "torchao: the same where 256 divides")                                           \
    X(ADAMW4_AO, "adamw4bit-torchao", "torchao: two half bytes and two scales a block of 128")                         \
    X(FLASHADAMW, "flashadamw", "FlashOptim: int8 moments with scales, 8 bits more of weight")                         \
    X(LION, "lion", "one value")                                                                                       \
    X(MUON, "muon", "one value for matrices; AdamW for the rest")                                                      \
    X(GALORE, "galore", "AdamW on projections of rank r, and the projectors")                                          \
    X(APOLLO, "apollo", "AdamW on random projections of rank r")                                                       \
    X(LOMO, "lomo", "no state; gradients used as they come")                                                           \
    X(BADAM, "badam", "AdamW with a float32 master on one block of layers at a time")

typedef enum lst_torch_optim {
#define LST_X(id, name, text) LST_TORCH_##id,
    LST_TORCH_OPTIM_LIST(LST_X)
#undef LST_X
        LST_N_TORCH_OPTIMS
} lst_torch_optim;

typedef enum lst_torch_form { LST_TORCH_LOOP, LST_TORCH_FOREACH, LST_TORCH_FUSED } lst_torch_form;
typedef enum lst_torch_attention { LST_TORCH_SDPA, LST_TORCH_EAGER } lst_torch_attention;

/* How the loss is computed. X(identifier, name, what lives of a logit) */
#define LST_TORCH_LOSS_LIST(X)                                                                                         \
    X(UPCAST, "upcast", "Hugging Face: float32 copy, log-probabilities, their gradient, the logits' gradient")         \
    X(PLAIN, "plain", "cross-entropy in the logits' dtype")                                                            \
    X(CHUNKED, "chunked", "torchtune: all logits in the compute dtype, float32 for one chunk of tokens at a time")     \
    X(FUSED, "fused", "head and loss in one kernel: no logits (Liger, Cut Cross-Entropy)")

typedef enum lst_torch_loss {
#define LST_X(id, name, text) LST_TORCH_LOSS_##id,
    LST_TORCH_LOSS_LIST(LST_X)
#undef LST_X
        LST_N_TORCH_LOSSES
} lst_torch_loss;

/* Linears an adapter can sit on. A fused projection is adapted if any part of it is named. */
#define LST_TARGET_Q 1u
#define LST_TARGET_K 2u
#define LST_TARGET_V 4u
#define LST_TARGET_O 8u
#define LST_TARGET_GATE 16u
#define LST_TARGET_UP 32u
#define LST_TARGET_DOWN 64u
#define LST_TARGET_HEAD 128u
#define LST_TARGET_ALL 127u /* "all-linear": every linear but the head */

typedef struct lst_torch_run {
    lst_shape shape;
    size_t batch, seq, accumulation;
    lst_torch_dtype dtype;
    lst_torch_attention attention;
    bool gpu;         /* 1-byte dropout masks, float32 statistics, no generator state kept, lines for rounding etc. */
    bool kv_repeated; /* keys and values are repeated to the width of the queries before attention, and its output
                            is copied (torchtune, older Hugging Face); otherwise kept as they are */
    bool pad_mask;    /* an attention mask is passed */
    bool use_cache;   /* the model's default of filling a key-value cache while training is left on */
    bool checkpoint;  /* activation checkpointing of whole layers, not reentrant */
    bool offload_checkpoints; /* ... with the layers' inputs kept in host memory */
    bool clip;                /* gradient clipping by global norm */
    bool keep_grads;          /* zero_grad(set_to_none=False) */
    bool hold_output;         /* the model's output lives through backward */
    bool release_grads;       /* the optimizer runs inside backward, tensor by tensor */
    double dropout;           /* GPT-2's three dropouts */
    lst_torch_loss loss;
    size_t loss_chunks; /* CHUNKED: into how many */
    unsigned lora;      /* LST_TARGET_ bits; 0 for a full fine-tune */
    size_t lora_rank;
    double lora_dropout;
    bool dora;
    bool lora_bfloat16; /* adapters in bfloat16 (torchtune); Peft makes them float32 */
    lst_torch_base base;
    bool base_upcast; /* prepare_model_for_kbit_training: what is not quantized becomes float32, and with it every
                            activation, as a quantized linear returns the dtype it is given */
    bool quant_keeps_inputs; /* bitsandbytes before 0.42: a quantized linear keeps its input */
    bool compiled; /* torch.compile on the layers: the pointwise operations' inner tensors are computed again */
    lst_torch_optim optim;
    lst_torch_form form;
    bool compiled_optim;      /* torchao: its step compiled into one kernel a tensor */
    bool embed_float32_state; /* 8-bit: embeddings keep float32 state (Hugging Face's Trainer with bitsandbytes) */
    bool float32_state;       /* bfloat16 weights with float32 moments */
    bool float32_master;      /* bfloat16 weights with a float32 copy that the optimizer updates */
    size_t optim_rank;        /* GALORE, APOLLO */
    size_t blocks;            /* BADAM */
    bool float32_shards;      /* FSDP mixed precision: shards, gradients and state in float32, compute in bfloat16 */
    size_t ranks, zero;       /* ZeRO stage 0 to 3 (FSDP: 3) over this many processes */
    uint64_t context_bytes; /* gpu: what the CUDA context and library workspaces take (nvidia-smi shows it, PyTorch does
                               not); 0 for the default of 512 MiB */
} lst_torch_run;

/* float32, batch 1 x 512, AdamW for-loop, everything else off; the shape is left empty. */
LST_API void lst_torch_run_default(lst_torch_run *out);

/* One term of the estimate. */
typedef struct lst_estimate_line {
    const char *bucket; /* "weights", "gradients", "state", "activations", "loss", "overhead" */
    char what[72];
    char formula[96]; /* symbols and numbers: "4·t·(3h+1)" */
    uint64_t bytes;
} lst_estimate_line;
#define LST_ESTIMATE_MAX_LINES 96

typedef struct lst_torch_step {
    uint64_t start, after_fwd, loss_peak, after_loss, bwd_peak, after_bwd, opt_peak, after_opt, end, peak;
    const char *bwd_peak_at; /* "loss", "head", "mlp of the last layer", ... */
    const char *peak_phase;  /* "forward", "loss", "backward", "optimizer" */
} lst_torch_step;

typedef struct lst_estimate {
    uint64_t params, trainable;
    uint64_t weight_bytes, buffer_bytes, after_load, input_bytes, grad_bytes, state_bytes;
    uint64_t layer_bytes, kept_bytes; /* kept by one full layer; by all layers and what is around them */
    lst_torch_step first, steady;     /* the first step makes the optimizer's state; the others find it */
    uint64_t sum_bytes;               /* all buckets added up, as if all lived at once */
    /* A GPU's own: 0 unless run.gpu. */
    uint64_t rounding_bytes; /* allocations rounded to 512 bytes */
    uint64_t cache_bytes;    /* freed blocks that the caching allocator still holds at the peak: reserved - allocated */
    uint64_t context_bytes;  /* CUDA context and library workspaces: in no counter of PyTorch */
    uint64_t device_bytes;   /* the peak with these three */
    double uncertainty;      /* of the peak, as a fraction: 0 for float32 on the CPU */
    size_t n_lines;
    lst_estimate_line lines[LST_ESTIMATE_MAX_LINES];
} lst_estimate;

/* Prices the run. LST_ERR_ARGUMENT for contradictions; LST_ERR_UNSUPPORTED, by name, for families whose parameters can
 * be counted but whose activations nobody has counted here (mixture of experts, latent attention, encoders). */
LST_API LST_MUST_USE lst_status lst_torch_estimate(lst_estimate **out, const lst_torch_run *run, lst_error *err);
LST_API void lst_estimate_destroy(lst_estimate *estimate);
/* ---- sharding ---- */
typedef enum lst_sharding {
    LST_SHARD_FLAT, /* one flat buffer, padded to a multiple of the ranks (DeepSpeed, FSDP1) */
    LST_SHARD_ROWS  /* every tensor by its first dimension, rounded up (FSDP2) */
} lst_sharding;
/* Elements that the fullest rank holds. */
LST_API uint64_t lst_shard_elems(const lst_shape *shape, size_t ranks, lst_sharding sharding);
typedef struct lst_zero_sizes {
    uint64_t weight, gradient, state; /* bytes of an element; ZeRO's paper: 2, 2, 12 */
} lst_zero_sizes;
/* Model states of the fullest rank at ZeRO stage 0 to 3: no activations, no buckets, no gathered layers. */
LST_API LST_MUST_USE lst_status lst_zero_bytes(const lst_shape *shape, size_t ranks, unsigned stage,
                                               lst_sharding sharding, const lst_zero_sizes *sizes, uint64_t *out,
                                               lst_error *err);
/* The activation arena that llm.c prints and allocates for a GPT-2 shape in bfloat16, exact to its MiB. */
LST_API uint64_t lst_llmc_arena_bytes(const lst_shape *shape, size_t padded_vocab, size_t batch, size_t seq,
                                      unsigned recompute, bool cudnn);

LST_API LST_MUST_USE lst_status lst_torch_optim_find(const char *name, lst_torch_optim *out, lst_error *err);

#ifdef __cplusplus
}
#endif
#endif
