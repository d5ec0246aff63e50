/* SPDX-License-Identifier: MIT
 *
 * A PyTorch run priced: checks, symbols, sums, phases, lines.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "plan/torch.h"

void lst_torch_run_default(lst_torch_run *out)
{
    *out = (lst_torch_run){
        .batch = 1,
        .seq = 512,
        .accumulation = 1,
        .optim = LST_TORCH_ADAMW,
        .lora_rank = 8,
        .loss_chunks = 8,
        .optim_rank = 128,
        .blocks = 1,
        .ranks = 1,
    };
}

lst_status lst_torch_optim_find(const char *name, lst_torch_optim *out, lst_error *err)
{
    static const char *const names[] = {
#define LST_X(id, text, what) text,
        LST_TORCH_OPTIM_LIST(LST_X)
#undef LST_X
    };
    char list[400] = "";
    for (size_t i = 0; i < LST_N_TORCH_OPTIMS; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (lst_torch_optim)i;
            return LST_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return lst__fail(err, LST_ERR_ARGUMENT, "\"%.60s\" is no optimizer of the PyTorch estimate; there are %s", name,
                     list);
}

static bool counted_family(const lst_shape *s)
{
    switch (s->family) {
    case LST_SHAPE_GPT2:
    case LST_SHAPE_LLAMA:
    case LST_SHAPE_MISTRAL:
    case LST_SHAPE_QWEN2:
    case LST_SHAPE_QWEN3:
    case LST_SHAPE_PHI3:
    case LST_SHAPE_GEMMA:
    case LST_SHAPE_GEMMA2:
    case LST_SHAPE_GEMMA3:
        return s->moe.experts == 0;
    default:
        return false;
    }
}

static lst_status check_sizes(const lst_torch_run *run, lst_error *err)
{
    const struct {
        const char *option;
        size_t value, limit;
    } sizes[] = {
        {"batch", run->batch, (size_t)1 << 24},
        {"sequence", run->seq, (size_t)1 << 28},
        {"accumulation", run->accumulation, (size_t)1 << 24},
        {"ranks", run->ranks, (size_t)1 << 20},
        {"loss chunks", run->loss_chunks, (size_t)1 << 20},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].limit)
            return lst__fail(err, LST_ERR_ARGUMENT, "%s is %zu; it must be 1 to %zu", sizes[i].option, sizes[i].value,
                             sizes[i].limit);
    }
    return LST_OK;
}

static lst_status check(const lst_torch_run *run, lst_error *err)
{
    const lst_status status = check_sizes(run, err);
    if (status != LST_OK)
        return status;
    if (!counted_family(&run->shape))
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "the parameters of a \"%s\" model can be counted, but not what PyTorch keeps of its layers; "
                         "counted are gpt2, llama, mistral, qwen2, qwen3, phi3, gemma, gemma2, gemma3_text",
                         lst_shape_family_name(run->shape.family));
    if (run->shape.layers == 0 || run->shape.hidden == 0 || run->shape.vocab == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "the shape has no layers, width or vocabulary; give a model");
    if (run->lora && (run->lora_rank == 0 || run->lora_rank > 65536))
        return lst__fail(err, LST_ERR_ARGUMENT, "the adapters' rank is %zu; it must be 1 to 65536", run->lora_rank);
    if (!run->lora && (run->base != LST_TORCH_BASE_PLAIN || run->dora || run->lora_dropout > 0))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "a quantized base, DoRA and adapter dropout have no effect without adapters; name their "
                         "targets");
    const bool llama_line = run->shape.family != LST_SHAPE_GPT2 && run->shape.family < LST_SHAPE_GEMMA;
    if (run->compiled && (run->lora || !llama_line || run->attention == LST_TORCH_EAGER || run->pad_mask))
        return lst__fail(
            err, LST_ERR_UNSUPPORTED,
            "compiled layers were counted for full fine-tunes of llama, mistral, qwen2, qwen3 and phi3 with "
            "sdpa attention only");
    if (run->hold_output && run->loss == LST_TORCH_LOSS_FUSED)
        return lst__fail(err, LST_ERR_ARGUMENT, "a held output has no effect with a fused loss: there are no logits");
    if (run->offload_checkpoints && !run->checkpoint)
        return lst__fail(err, LST_ERR_ARGUMENT, "offloaded checkpoints have no effect without checkpointing");
    if (run->release_grads && (run->accumulation > 1 || run->keep_grads))
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "gradients cannot be released in backward and kept for accumulation; choose one");
    return LST_OK;
}

static void set_symbols(lst__torch *c, const lst_torch_run *run)
{
    const lst_shape *s = &run->shape;
    *c = (lst__torch){.run = run, .B = run->batch, .T = run->seq, .h = s->hidden, .a = s->heads, .d = s->head_dim};
    c->t = c->B * c->T;
    c->q = c->a * c->d;
    c->kv = s->kv_heads * c->d;
    c->i = s->ffn;
    c->V = s->vocab;
    c->L = s->layers;
    c->r = run->lora_rank;
    c->autocast = run->dtype == LST_TORCH_AUTOCAST;
    c->weight = run->dtype == LST_TORCH_BFLOAT16 ? 2 : 4;
    c->compute = run->dtype == LST_TORCH_FLOAT32 ? 4 : 2;
    if (run->base != LST_TORCH_BASE_PLAIN && run->base_upcast)
        c->compute = 4;
    c->stream = run->dtype == LST_TORCH_BFLOAT16 ? c->compute : 4;
    c->adapter = run->lora_bfloat16 ? 2 : 4;
    c->lora = run->lora != 0;
    c->gpt2 = s->family == LST_SHAPE_GPT2;
    c->dropout = run->dropout > 0;
    c->eager = run->attention == LST_TORCH_EAGER;
}

static uint64_t loss_kept(const lst__torch *c)
{
    const uint64_t tV = c->t * c->V;
    /* log-probabilities, shifted labels, the loss, its divisor */
    const uint64_t labels = lst__torch_label_bytes(c) + 8 + (c->run->accumulation > 1 ? 8 : 0);
    switch (c->run->loss) {
    case LST_TORCH_LOSS_UPCAST:
        return 4 * tV + labels + lst__torch_held_output(c);
    case LST_TORCH_LOSS_PLAIN:
        return c->compute * tV + labels + lst__torch_held_output(c);
    case LST_TORCH_LOSS_CHUNKED:
        return c->compute * tV + labels;
    default: /* the fused kernel makes the gradients of hidden state and head in forward */
        return c->compute * c->t * c->h + (c->lora ? 0 : c->weight * c->V * c->h);
    }
}

static void add_line(lst_estimate *e, const char *bucket, uint64_t bytes, const char *what, const char *formula)
{
    if (bytes == 0 || e->n_lines == LST_ESTIMATE_MAX_LINES)
        return;
    lst_estimate_line *line = &e->lines[e->n_lines++];
    line->bucket = bucket;
    line->bytes = bytes;
    snprintf(line->what, sizeof line->what, "%s", what);
    snprintf(line->formula, sizeof line->formula, "%s", formula);
}

/* "28 layers x 4096 tokens x 3072 bytes", as far as the number divides. */
static void write_formula(char *out, size_t n, uint64_t layers, uint64_t tokens, uint64_t bytes)
{
    const unsigned long long t = tokens, b = bytes;
    if (bytes % tokens == 0)
        snprintf(out, n, "%llu layers x %llu tokens x %llu bytes", (unsigned long long)layers, t, b / t);
    else
        snprintf(out, n, "%llu layers x %llu bytes", (unsigned long long)layers, b);
}

static uint64_t find_item(const lst__kept *kept, const char *what)
{
    for (size_t i = 0; i < kept->n; i++) {
        if (kept->item[i].what == what)
            return kept->item[i].bytes;
    }
    return 0;
}

/* Of all layers, the first of which may keep less (adapters); of the one that is built again, under checkpointing. */
static void add_layer_lines(lst_estimate *e, const lst__torch *c, const lst__kept *layer, const lst__kept *first)
{
    char formula[96];
    for (size_t i = 0; i < layer->n; i++) {
        const char *what = layer->item[i].what;
        const uint64_t bytes = layer->item[i].bytes, in_first = find_item(first, what);
        const uint64_t layers = c->run->checkpoint ? 1 : in_first == bytes ? c->L : c->L - 1;
        write_formula(formula, sizeof formula, layers, c->t, bytes);
        const size_t used = strlen(formula);
        if (!c->run->checkpoint && in_first != bytes && in_first)
            snprintf(formula + used, sizeof formula - used, ", less in the first");
        add_line(e, "activations", layers * bytes + (c->run->checkpoint || layers == c->L ? 0 : in_first), what,
                 formula);
    }
}

static void add_kept_lines(lst_estimate *e, const lst__torch *c, const lst__torch_sums *s, const lst__kept *outside)
{
    char formula[96];
    if (c->run->checkpoint && !c->run->offload_checkpoints) {
        write_formula(formula, sizeof formula, c->L, c->t, s->checkpoint);
        add_line(e, "activations", c->L * s->checkpoint, "inputs of checkpointed layers", formula);
    }
    for (size_t i = 0; i < outside->n; i++) {
        write_formula(formula, sizeof formula, 1, c->t, outside->item[i].bytes);
        add_line(e, "activations", outside->item[i].bytes, outside->item[i].what, strstr(formula, "x") + 2);
    }
}

static uint64_t buffer_bytes(const lst__torch *c)
{
    return c->gpt2 ? 0 : 4 * c->d; /* two vectors of head_dim / 2 rotary frequencies */
}

static void sum_layers(const lst__torch *c, const lst__trainables *trainable, lst_estimate *e, lst__torch_sums *s)
{
    lst__kept layer, first, outside;
    lst__torch_layer(c, false, &layer);
    lst__torch_layer(c, c->lora && !c->run->checkpoint, &first);
    lst__torch_outside(c, &outside);
    s->layer = layer.bytes;
    s->first_layer = first.bytes;
    s->outside = outside.bytes;
    s->loss = loss_kept(c);
    /* non-reentrant checkpointing keeps the layer's input, wrapped numbers, and the CPU generator's state of 5,056
     * bytes */
    s->checkpoint = c->stream * c->t * c->h + layer.scalar_bytes + (c->run->gpu ? 0 : 5056);
    s->grads = (c->lora ? c->adapter : c->weight) * trainable->elems;
    s->layer_grads = (c->lora ? c->adapter : c->weight) * trainable->in_layer;
    e->layer_bytes = layer.bytes;
    add_layer_lines(e, c, &layer, &first);
    add_kept_lines(e, c, s, &outside);
}

/* "1543714304 x 2 bytes" */
static const char *per_element(char out[96], uint64_t elems, uint64_t bytes)
{
    if (elems && bytes % elems == 0)
        snprintf(out, 96, "%llu elements x %llu bytes", (unsigned long long)elems, (unsigned long long)(bytes / elems));
    else
        snprintf(out, 96, "%llu elements, %.4f bytes each", (unsigned long long)elems,
                 elems ? (double)bytes / (double)elems : 0.0);
    return out;
}

static void add_total_lines(lst_estimate *e, const lst__torch *c, const lst__torch_sums *s,
                            const lst__state_bytes *state)
{
    char text[96];
    add_line(e, "weights", e->weight_bytes, "weights", per_element(text, e->params, e->weight_bytes));
    add_line(e, "weights", e->buffer_bytes, "rotary frequencies", "2 x head_dim / 2 x 4 bytes");
    add_line(e, "gradients", s->grads, "gradients", per_element(text, e->trainable, s->grads));
    add_line(e, "state", state->state, "optimizer state", per_element(text, e->trainable, state->state));
    add_line(e, "state", state->setup, "the optimizer's own tables", "once");
    add_line(e, "step", state->temporary, "temporaries of the step", "above weights, gradients and state");
    add_line(e, "gathered", s->gathered, "layers gathered from other ranks", "two layers, the root unit, one gradient");
    snprintf(text, sizeof text, "%llu tokens x %llu logits", (unsigned long long)c->t, (unsigned long long)c->V);
    add_line(e, "loss", s->loss, "kept by the loss", text);
    add_line(e, "data", e->input_bytes, "token numbers, labels, mask", "8 bytes each");
}

/* A GPU's own, beside the tensors. Freed bfloat16 logits stay cached: the float32 copies need larger blocks. */
static void add_device(const lst__torch *c, const lst__trainables *trainable, lst_estimate *e)
{
    const uint64_t tensors = 3 * (uint64_t)trainable->n + lst_shape_tensors(&c->run->shape) + c->L * 24;
    e->rounding_bytes = tensors * 256; /* half of 512 bytes each */
    e->cache_bytes = c->run->loss == LST_TORCH_LOSS_UPCAST && c->compute == 2 ? 2 * c->t * c->V : (uint64_t)32 << 20;
    e->context_bytes = c->run->context_bytes ? c->run->context_bytes : (uint64_t)512 << 20;
    e->device_bytes = e->steady.peak + e->rounding_bytes + e->cache_bytes + e->context_bytes;
    e->uncertainty = 0.10;
    add_line(e, "overhead", e->rounding_bytes, "allocations rounded to 512 bytes", "");
    add_line(e, "overhead", e->cache_bytes, "freed blocks the allocator keeps", "");
    add_line(e, "overhead", e->context_bytes, "CUDA context and workspaces", "");
}

static void price(const lst__torch *c, const lst__trainables *trainable, lst_estimate *e)
{
    lst__torch_sums s = {0};
    lst__state_bytes state;
    sum_layers(c, trainable, e, &s);
    lst__torch_state(c, trainable, &state);
    e->params = lst_shape_params(&c->run->shape) + (c->lora ? trainable->elems : 0);
    e->trainable = trainable->elems;
    e->weight_bytes = lst__torch_weight_bytes(c, trainable);
    e->buffer_bytes = buffer_bytes(c);
    lst__torch_shard(c, &s, &state, &e->weight_bytes);
    e->after_load = e->weight_bytes + e->buffer_bytes;
    e->input_bytes = (c->run->pad_mask ? 24 : 16) * c->t;
    e->grad_bytes = s.grads;
    e->state_bytes = state.state + state.tables;
    e->kept_bytes = lst__torch_layers_kept(c, &s) + s.outside;
    const bool accumulates = c->run->accumulation > 1;
    s.start = e->after_load + e->input_bytes + state.setup;
    s.held = accumulates ? s.grads : 0;
    lst__torch_phases(c, &s, state.first, state.state, &e->first);
    s.start += state.state;
    s.held = accumulates || c->run->keep_grads ? s.grads : 0;
    lst__torch_phases(c, &s, state.temporary, 0, &e->steady);
    if (c->run->keep_grads)
        e->steady.start += s.grads;
    e->sum_bytes = s.start + s.grads + s.gathered + e->kept_bytes + s.loss + 8 * c->t * c->V +
                   lst__torch_backward_makes(c, &s) + state.temporary;
    add_total_lines(e, c, &s, &state);
    if (c->run->gpu)
        add_device(c, trainable, e);
}

lst_status lst_torch_estimate(lst_estimate **out, const lst_torch_run *run, lst_error *err)
{
    lst_status status = check(run, err);
    if (status != LST_OK)
        return status;
    lst_estimate *estimate = lst__alloc(1, sizeof *estimate);
    if (!estimate)
        return lst__fail_memory(err, "an estimate", sizeof *estimate);
    lst__trainables trainable;
    status = lst__torch_trainables(run, &trainable, err);
    if (status != LST_OK) {
        lst__free(estimate);
        return status;
    }
    lst__torch c;
    set_symbols(&c, run);
    price(&c, &trainable, estimate);
    lst__free(trainable.item);
    *out = estimate;
    return LST_OK;
}

void lst_estimate_destroy(lst_estimate *estimate)
{
    lst__free(estimate);
}
