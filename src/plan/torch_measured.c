/* SPDX-License-Identifier: MIT
 *
 * How a published row's words are read. What a trainer does is decided by its name in `source` where the row does not
 * say it: torchtune and LitGPT repeat keys and values and keep bfloat16 adapters; Peft's adapters are float32.
 */
#include "plan/torch_measured.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GIB (1024.0 * 1024.0 * 1024.0)

typedef struct row {
    const char *notes, *model, *method, *optimizer, *weights, *states, *batch, *seq, *ckpt, *attention, *loss,
        *parallel, *gpus, *metric, *source, *master;
} row;

static bool has(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

LST_PRINTF(2, 3) static bool refuse(lst__measured *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->reason, sizeof out->reason, format, args);
    va_end(args);
    return false;
}

/* The first whole number in a text; 0 if there is none. */
static size_t number_in(const char *text)
{
    while (*text && !isdigit((unsigned char)*text))
        text++;
    return *text ? (size_t)strtoull(text, NULL, 10) : 0;
}

static const struct {
    const char *published, *builtin;
} model_names[] = {
    {"Llama-3.2-3B", "Llama-3.2-3B"},   {"Llama-3.2-1B", "Llama-3.2-1B"},
    {"Llama-3.1-8B", "Llama-3.1-8B"},   {"Llama-3-8B", "Llama-3.1-8B"},
    {"Llama-3.1-70B", "Llama-3.1-70B"}, {"Llama-2-7B", "Llama-2-7b-hf"},
    {"LLaMA-7B", "Llama-2-7b-hf"},      {"Llama-2-13B", "Llama-2-13b-hf"},
    {"Llama2-1B", "TinyLlama-1.1B"},    {"Qwen2.5-0.5B", "Qwen2.5-0.5B"},
    {"Qwen2.5-1.5B", "Qwen2.5-1.5B"},   {"Qwen2.5-3B", "Qwen2.5-3B"},
    {"Qwen2.5-7B", "Qwen2.5-7B"},       {"GPT-2 124M", "gpt2"},
    {"GPT-2 1558M", "gpt2-xl"},         {"SmolLM2-360M", "SmolLM2-360M"},
    {"Mistral-7B", "Mistral-7B-v0.1"},  {"R1-0528-Qwen3-8B", "Qwen3-8B"},
    {"Qwen3-4B", "Qwen3-4B"},           {"gemma-1.1-2b", "gemma-2b"},
};

static bool read_model(const row *r, lst__measured *out)
{
    const char *slash = strrchr(r->model, '/');
    const char *bare = slash ? slash + 1 : r->model;
    lst_error err;
    for (size_t i = 0; i < sizeof model_names / sizeof *model_names; i++) {
        if (strncasecmp(bare, model_names[i].published, strlen(model_names[i].published)) == 0)
            return lst_shape_by_name(model_names[i].builtin, &out->run.shape, &err) == LST_OK;
    }
    if (lst_shape_by_name(bare, &out->run.shape, &err) == LST_OK)
        return true;
    return refuse(out, "model \"%.60s\" is not built in", r->model);
}

static bool read_targets(const row *r, lst_torch_run *run)
{
    run->lora_rank = 8;
    const char *rank = strstr(r->method, "r=");
    if (rank)
        run->lora_rank = number_in(rank);
    run->lora = has(r->method, "attn+mlp+output") ? LST_TARGET_ALL | LST_TARGET_HEAD
                : has(r->method, "q,k,v,o")       ? LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V | LST_TARGET_O
                : has(r->method, "gate,up,down")  ? LST_TARGET_GATE | LST_TARGET_UP | LST_TARGET_DOWN
                : has(r->method, "q,v")           ? LST_TARGET_Q | LST_TARGET_V
                : has(r->method, "all")           ? LST_TARGET_ALL
                                                  : 0;
    run->dora = has(r->method, "DoRA");
    return run->lora != 0;
}

static bool read_method(const row *r, lst__measured *out)
{
    static const char *const unmodelled[] = {"LoRA-FA",  "IA3",      "prompt", "LN tuning",          "trainable tokens",
                                             "LISA",     "INT8 QT",  "Float8", "offload: DeepSpeed", "offload: ao",
                                             "Q-GaLore", "Q-APOLLO", "CP"};
    for (size_t i = 0; i < sizeof unmodelled / sizeof *unmodelled; i++) {
        if (has(r->method, unmodelled[i]) || has(r->weights, unmodelled[i]) || has(r->optimizer, unmodelled[i]))
            return refuse(out, "%s is not modelled", unmodelled[i]);
    }
    /* torchtune's ladder adds one setting a row, each noted as "+setting": from the second on, layers are compiled */
    const bool rung = r->notes[0] == '+' && !has(r->notes, "packed");
    out->run.compiled = has(r->method, "compile") || has(r->loss, "compile") || has(r->weights, "compile") || rung;
    out->group = has(r->method, "qlora") ? "QLoRA" : has(r->method, "lora") ? "LoRA" : "full";
    if (strcmp(out->group, "full") == 0)
        return has(r->method, "full") || has(r->method, "pretrain") ||
               refuse(out, "method \"%.60s\" is not modelled", r->method);
    if (!read_targets(r, &out->run))
        return refuse(out, "the adapters' rank and targets are not stated");
    out->run.lora_bfloat16 = has(r->source, "torchtune") || has(r->source, "litgpt");
    return true;
}

static bool read_dtypes(const row *r, lst__measured *out)
{
    lst_torch_run *run = &out->run;
    run->dtype = LST_TORCH_BFLOAT16;
    if (has(r->weights, "fp32 sharded"))
        run->float32_shards = true;
    else if (has(r->weights, "nf4-dq"))
        run->base = LST_TORCH_BASE_NF4_DQ;
    else if (has(r->weights, "nf4"))
        run->base = LST_TORCH_BASE_NF4;
    else if (has(r->weights, "fp32"))
        run->dtype = has(r->method, "AMP") ? LST_TORCH_AUTOCAST : LST_TORCH_FLOAT32;
    else if (!has(r->weights, "bf16") && !has(r->weights, "fp16"))
        return refuse(out, "weights in \"%.40s\" are not modelled", r->weights);
    run->base_upcast = has(r->weights, "fp32 embeddings");
    run->float32_master = strcmp(r->master, "fp32") == 0;
    if (strcmp(out->group, "QLoRA") == 0 && run->base == LST_TORCH_BASE_PLAIN)
        run->base = LST_TORCH_BASE_NF4_DQ;
    return true;
}

static bool read_optimizer(const row *r, lst__measured *out)
{
    lst_torch_run *run = &out->run;
    run->form = has(r->optimizer, "fused") || has(r->source, "torchtune") ? LST_TORCH_FUSED : LST_TORCH_FOREACH;
    if (has(r->optimizer, "GaLore") || has(r->optimizer, "block"))
        return refuse(out, "optimizer \"%.50s\": too little is stated", r->optimizer);
    if (has(r->optimizer, "per recipe") || has(r->optimizer, "CPU"))
        return refuse(out, "the optimizer is not stated");
    if (has(r->optimizer, "bnb") || has(r->optimizer, "paged_adamw_8bit") || strcasecmp(r->optimizer, "AdamW8bit") == 0)
        run->optim = LST_TORCH_ADAMW8_BNB;
    else if (has(r->optimizer, "ao AdamW8bit"))
        run->optim = LST_TORCH_ADAMW8_AO;
    else if (has(r->optimizer, "ao AdamW4bit"))
        run->optim = LST_TORCH_ADAMW4_AO;
    else if (has(r->optimizer, "FlashAdamW"))
        run->optim = LST_TORCH_FLASHADAMW;
    else if (has(r->optimizer, "Adafactor"))
        run->optim = LST_TORCH_ADAFACTOR;
    else if (!has(r->optimizer, "adam"))
        return refuse(out, "optimizer \"%.50s\" is not modelled", r->optimizer);
    return true;
}

static bool read_sizes(const row *r, lst__measured *out)
{
    out->run.batch = number_in(r->batch);
    if (!isdigit((unsigned char)r->batch[0]))
        return refuse(out, "the batch is not stated (\"%.40s\")", r->batch);
    out->run.seq = number_in(r->seq);
    if (out->run.seq < 128 || has(r->seq, "px") || has(r->seq, "assumed"))
        return refuse(out, "the sequence is not stated (\"%.40s\")", r->seq);
    if (has(r->notes, "unpacked"))
        return refuse(out, "samples are not packed: their length is not stated");
    return true;
}

static bool read_activations(const row *r, lst__measured *out)
{
    lst_torch_run *run = &out->run;
    if (has(r->ckpt, "selective") || has(r->ckpt, "SAC") || has(r->ckpt, "every"))
        return refuse(out, "checkpointing of single operations or every other layer is not modelled");
    if (has(r->ckpt, "n/") || has(r->ckpt, "recipe") || has(r->ckpt, "see"))
        return refuse(out, "whether layers are checkpointed is not stated");
    run->checkpoint = !(strcmp(r->ckpt, "no") == 0 || strcmp(r->ckpt, "-") == 0);
    run->offload_checkpoints = has(r->ckpt, "offload");
    run->release_grads =
        has(r->notes, "in backward") || has(r->method, "per-layer") || (r->notes[0] == '+' && has(r->ckpt, "offload"));
    run->hold_output = has(r->source, "can-i-finetune") || has(r->source, "fsdp_qlora");
    run->quant_keeps_inputs = has(r->source, "litgpt");
    run->attention = has(r->attention, "eager") ? LST_TORCH_EAGER : LST_TORCH_SDPA;
    run->kv_repeated = has(r->source, "torchtune") || has(r->source, "litgpt") || has(r->source, "fsdp_qlora");
    run->loss = has(r->loss, "chunked") ? LST_TORCH_LOSS_CHUNKED
                : has(r->loss, "Cut")   ? LST_TORCH_LOSS_FUSED
                                        : LST_TORCH_LOSS_UPCAST;
    return true;
}

static bool read_parallelism(const row *r, lst__measured *out)
{
    lst_torch_run *run = &out->run;
    if (strcmp(r->parallel, "single") == 0 || has(r->parallel, "ddp"))
        return true;
    run->ranks = number_in(r->gpus);
    if (has(r->parallel, "offload") || has(r->method, "offload") || has(r->parallel, "+CP") || has(r->parallel, "PP") ||
        run->ranks < 2)
        return refuse(out, "parallelism \"%.40s\" is not modelled", r->parallel);
    run->zero = has(r->parallel, "FSDP")    ? 3
                : has(r->parallel, "ZeRO-") ? (unsigned)number_in(strcasestr(r->parallel, "ZeRO-"))
                                            : 0;
    if (run->zero == 0)
        return refuse(out, "parallelism \"%.40s\" is not modelled", r->parallel);
    out->group = "sharded";
    return true;
}

static void predict_run(const row *r, lst__measured *out)
{
    lst_estimate *e = NULL;
    lst_error err;
    out->run.gpu = true;
    if (lst_torch_estimate(&e, &out->run, &err) != LST_OK) {
        refuse(out, "%.150s", err.message);
        return;
    }
    uint64_t bytes = e->steady.peak + e->rounding_bytes;
    if (has(r->metric, "reserved") || has(r->metric, "nvml") || has(r->metric, "memory per GPU"))
        bytes += e->cache_bytes;
    if (has(r->metric, "nvml") || has(r->metric, "nvidia-smi") || has(r->metric, "cudaMemGetInfo"))
        bytes += e->context_bytes;
    lst_estimate_destroy(e);
    out->predicted = (double)bytes;
    out->accepted = out->is_run = true;
}

/* ---- rows that are no training run: kernels, arenas, weights, one layer ---- */

static bool number_after(const char *text, const char *key, uint64_t *out)
{
    const char *at = strstr(text, key);
    if (!at)
        return false;
    *out = number_in(at + strlen(key));
    return *out != 0;
}

/* torch: logits, log-probabilities, their gradients and copies, all float32; Liger overwrites the logits. */
static bool kernel(const row *r, lst__measured *out)
{
    const uint64_t t = (uint64_t)number_in(r->batch) * number_in(r->seq);
    uint64_t h = 0, v = 0, i = 0;
    out->group = "kernel";
    if (has(r->model, "cross_entropy kernel") && number_after(r->loss, "V=", &v)) {
        out->predicted = (double)((has(r->method, "Liger") ? 4 : 20) * t * v);
    } else if (has(r->method, "torch linear+CE") && number_after(r->model, "H=", &h) &&
               number_after(r->model, "V=", &v)) {
        out->predicted = (double)(6 * t * v + 4 * h * t + 6 * v * h);
    } else if (has(r->model, "SwiGLU") && number_after(r->model, "h=", &h) && number_after(r->model, "I=", &i)) {
        out->predicted = (double)((7 * i + 4 * h) * 2 * t + 12 * h * i);
    } else if (has(r->method, "Liger fused linear") && number_after(r->model, "H=", &h) &&
               number_after(r->model, "V=", &v)) {
        /* the weight, its gradient, one chunk's part of it and the sum; hidden state and its gradient; a chunk's logits
         * (bfloat16, float32, their gradient). Liger cuts tokens into ceil(V / h) chunks of a power of two. */
        const uint64_t chunks = (v + h - 1) / h;
        uint64_t chunk = 1;
        while (chunk * chunks < t)
            chunk *= 2;
        out->predicted = (double)(8 * v * h + 4 * h * t + 10 * chunk * v);
    } else {
        return refuse(out, "this kernel is not modelled");
    }
    out->accepted = true;
    return true;
}

static bool arena(const row *r, lst__measured *out)
{
    if (!read_model(r, out))
        return false;
    const lst_shape *s = &out->run.shape;
    const size_t ranks = has(r->parallel, "ZeRO-1") ? number_in(r->gpus) : 1;
    const uint64_t padded = 50304, params = lst_shape_params(s) + (padded - s->vocab) * s->hidden;
    out->group = "arena";
    out->predicted = (double)lst_llmc_arena_bytes(s, padded, number_in(r->batch), number_in(r->seq),
                                                  (unsigned)number_in(r->ckpt), has(r->attention, "cuDNN"));
    if (has(r->metric, "device memory")) /* weights, gradients, master and both moments; the CUDA context */
        out->predicted += (double)(4 * params + 12 * params / ranks + ((uint64_t)512 << 20));
    out->accepted = true;
    return true;
}

static bool weights_alone(const row *r, lst__measured *out)
{
    lst_estimate *e = NULL;
    lst_error err;
    out->group = "weights";
    if (!read_model(r, out) || !read_dtypes(r, out))
        return false;
    out->run.lora = LST_TARGET_Q;
    out->run.lora_rank = 1;
    if (lst_torch_estimate(&e, &out->run, &err) != LST_OK)
        return refuse(out, "%.150s", err.message);
    out->predicted = (double)(e->weight_bytes - 4 * e->trainable);
    out->accepted = true;
    lst_estimate_destroy(e);
    return true;
}

/* Bytes that one layer's forward leaves, its output included, over 2*t*h. */
static bool layer_ratio(const row *r, lst__measured *out)
{
    lst_estimate *e = NULL;
    lst_error err;
    out->group = "layer";
    if (!read_model(r, out))
        return false;
    out->run.gpu = out->run.kv_repeated = true;
    out->run.dtype = LST_TORCH_BFLOAT16;
    out->run.seq = number_in(r->seq);
    if (lst_torch_estimate(&e, &out->run, &err) != LST_OK)
        return refuse(out, "%.150s", err.message);
    const double th = 2.0 * (double)out->run.seq * (double)out->run.shape.hidden;
    out->predicted = ((double)e->layer_bytes + th) / th;
    out->accepted = true;
    lst_estimate_destroy(e);
    return true;
}

static bool special(const row *r, lst__measured *out, bool *is_special)
{
    *is_special = true;
    if (has(r->metric, "peak full"))
        return kernel(r, out);
    if (has(r->source, "llm.c") || has(r->metric, "arena"))
        return arena(r, out);
    if (has(r->method, "inference"))
        return weights_alone(r, out);
    if (has(r->metric, "activation bytes"))
        return layer_ratio(r, out);
    if (has(r->metric, "fits in"))
        return refuse(out, "the longest sequence that fits a card: a bound, not a measurement");
    if (has(r->metric, "init") && !has(r->metric, "minus init"))
        return refuse(out, "counted against a start that is not stated");
    *is_special = false;
    return true;
}

static lst_status read_value(const lst_csv *csv, size_t index, lst__measured *out, lst_error *err)
{
    double value = 0;
    const lst_status status = lst__csv_get_real(csv, index, "value", &value, err);
    if (status != LST_OK)
        return status;
    const char *unit = lst__csv_get(csv, index, "unit");
    if (!unit)
        return LST_OK;
    const double scale = strcmp(unit, "MiB") == 0     ? 1024.0 * 1024.0
                         : strcmp(unit, "GiB") == 0   ? GIB
                         : strcmp(unit, "GB1e9") == 0 ? 1e9
                         : strcmp(unit, "B") == 0     ? 1.0
                         : strcmp(unit, "ratio") == 0 ? 1.0
                                                      : 0.0;
    out->measured = scale * value;
    return LST_OK;
}

static void read_row(const lst_csv *csv, size_t i, row *r)
{
    const struct {
        const char *column;
        const char **out;
    } cells[] = {{"notes", &r->notes},
                 {"model", &r->model},
                 {"method", &r->method},
                 {"optimizer", &r->optimizer},
                 {"weight_dtype", &r->weights},
                 {"opt_state_dtype", &r->states},
                 {"micro_batch", &r->batch},
                 {"seq_len", &r->seq},
                 {"act_ckpt", &r->ckpt},
                 {"attention", &r->attention},
                 {"loss", &r->loss},
                 {"parallelism", &r->parallel},
                 {"gpus", &r->gpus},
                 {"metric", &r->metric},
                 {"source", &r->source},
                 {"master_weights", &r->master}};
    for (size_t c = 0; c < sizeof cells / sizeof *cells; c++) {
        const char *text = lst__csv_get(csv, i, cells[c].column);
        *cells[c].out = text ? text : "";
    }
}

lst_status lst__measured_row(const lst_csv *csv, size_t index, lst__measured *out, lst_error *err)
{
    row r;
    *out = (lst__measured){.group = "refused"};
    lst_torch_run_default(&out->run);
    read_row(csv, index, &r);
    const lst_status status = read_value(csv, index, out, err);
    if (status != LST_OK)
        return status;
    if (out->measured <= 0) {
        refuse(out, "the unit is not stated: GB or GiB");
        return LST_OK;
    }
    bool is_special = false;
    if (!special(&r, out, &is_special) || is_special)
        return LST_OK;
    if (read_method(&r, out) && read_model(&r, out) && read_sizes(&r, out) && read_dtypes(&r, out) &&
        read_optimizer(&r, out) && read_activations(&r, out) && read_parallelism(&r, out))
        predict_run(&r, out);
    return LST_OK;
}
