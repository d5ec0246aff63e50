/* SPDX-License-Identifier: MIT
 *
 * What autograd keeps of one layer of the Llama line (Llama, Mistral, Qwen2, Qwen3, Phi-3, Gemma). Each tensor is
 * kept by the one operation that needs it in backward:
 *   a linear keeps its input if its weight (or an adapter) wants a gradient; under autocast it keeps a bfloat16 copy of
 *   its own, and of its weight; RMSNorm keeps its input in float32, one float a row, and the normalised input if its
 *   weight wants a gradient; attention keeps q, k, v, its output and one float a head (sdpa), or the softmax (eager);
 *   the gated MLP keeps gate, silu(gate) and up, because a product keeps both factors.
 * Sizes and exceptions were counted on runs: tests/plan/data/torch_step_bytes.csv.
 */
#include "plan/torch.h"
#include "plan/torch_keep.h"

static bool is_gemma(const lst__torch *c)
{
    const lst_shape_family f = c->run->shape.family;
    return f == LST_SHAPE_GEMMA || f == LST_SHAPE_GEMMA2 || f == LST_SHAPE_GEMMA3;
}

static void rms_norm(const lst__torch *c, const char *what, uint64_t width, uint64_t rows, bool input_grad,
                     lst__kept *out)
{
    if (!input_grad && c->lora)
        return;
    lst__torch_keep(out, what, 4 * c->t * width);
    lst__torch_keep(out, "one float a row of a norm", 4 * c->t * rows);
    if (!c->lora) /* Gemma multiplies by 1 + w in float32 */
        lst__torch_keep(out, "normalised input of a norm", (is_gemma(c) ? 4 : c->stream) * c->t * width);
}

/* The normed input of q, k, v or of gate, up: who reads it decides how often it is kept. */
static const unsigned attention_targets = LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V;

/* One key/value head is repeated by a view. A copy is made of it by autocast, which casts the rotated keys, and by the
 * eager product, which folds batch and heads into one dimension. */
static uint64_t repeated_bytes(const lst__torch *c, bool keys)
{
    const bool folds = c->eager && c->B > 1;
    const bool view = c->kv == c->d && !folds && !c->run->kv_repeated && !(keys && c->autocast);
    return c->compute * c->t * (view ? c->kv : c->q);
}

static void sdpa(const lst__torch *c, lst__kept *out)
{
    const bool fallback = c->dropout && !c->run->gpu; /* the CPU's explicit product, in float32 */
    const bool repeated = c->run->kv_repeated || c->run->pad_mask || fallback;
    if (fallback) {
        lst__torch_keep(out, "softmax of T*T a head, its dropout mask and product", 12 * c->t * c->a * c->T);
    }
    lst__torch_keep(out, "rotated queries", c->compute * c->t * c->q);
    lst__torch_keep(out, "keys and values",
                    repeated ? repeated_bytes(c, true) + repeated_bytes(c, false) : 2 * c->compute * c->t * c->kv);
    lst__torch_keep(out, "attention output", c->compute * c->t * c->q);
    if (c->run->kv_repeated)
        lst__torch_keep(out, "copy of the attention output", c->compute * c->t * c->q);
    if (!fallback)
        lst__torch_keep(out, "one float a head of attention", 4 * c->t * c->a);
    if (c->run->pad_mask)
        lst__torch_keep(out, "padding mask of T*T", c->compute * c->t * c->T);
}

static void eager(const lst__torch *c, bool q_grad, bool k_grad, bool v_grad, lst__kept *out)
{
    const bool scores_grad = q_grad || k_grad;
    if (k_grad)
        lst__torch_keep(out, "rotated queries", c->compute * c->t * c->q);
    if (q_grad)
        lst__torch_keep(out, "repeated keys", repeated_bytes(c, true));
    if (scores_grad) {
        lst__torch_keep(out, "repeated values", repeated_bytes(c, false));
        lst__torch_keep_scalars(out, 1);
    }
    if (!scores_grad && !v_grad)
        return;
    const uint64_t scores = c->t * c->a * c->T;
    lst__torch_keep(out, "softmax of T*T a head", 4 * scores); /* always computed in float32 */
    if (c->compute == 2)
        lst__torch_keep(out, "softmax in bfloat16", 2 * scores);
    if (c->dropout)
        lst__torch_keep(out, "attention dropout: mask and product", (lst__torch_mask_size(c) + c->compute) * scores);
}

static void attention(const lst__torch *c, bool input_grad, lst__kept *out)
{
    const unsigned lora = c->run->lora;
    const bool flows = input_grad || !c->lora;
    const lst_shape_family family = c->run->shape.family;
    rms_norm(c, "input of the attention norm", c->h, 1, input_grad, out);
    lst__torch_keep_input(c, "output of the attention norm", c->h, attention_targets & lst__torch_fused_targets(c),
                          input_grad, false, out);
    if (family == LST_SHAPE_QWEN3 || family == LST_SHAPE_GEMMA3) {
        rms_norm(c, "queries before their norm", c->q, c->a, flows || (lora & LST_TARGET_Q), out);
        rms_norm(c, "keys before their norm", c->kv, c->kv / c->d, flows || (lora & LST_TARGET_K), out);
    }
    if (c->eager)
        eager(c, flows || (lora & LST_TARGET_Q), flows || (lora & LST_TARGET_K), flows || (lora & LST_TARGET_V), out);
    else if (flows || (lora & attention_targets))
        sdpa(c, out);
    const bool output_grad = flows || (lora & attention_targets);
    const bool kept_already = !c->eager && output_grad;
    lst__torch_keep_input(c, "input of the output projection", c->q, LST_TARGET_O, output_grad, kept_already, out);
}

static void mlp(const lst__torch *c, bool input_grad, lst__kept *out)
{
    const unsigned lora = c->run->lora;
    const unsigned targets = LST_TARGET_GATE | LST_TARGET_UP;
    const bool flows = input_grad || !c->lora;
    rms_norm(c, "input of the MLP norm", c->h, 1, input_grad, out);
    lst__torch_keep_input(c, "output of the MLP norm", c->h, targets & lst__torch_fused_targets(c), input_grad, false,
                          out);
    const bool gate_grad = flows || (lora & LST_TARGET_GATE), up_grad = flows || (lora & LST_TARGET_UP);
    if (gate_grad) {
        lst__torch_keep(out, "gate", c->compute * c->t * c->i);
        lst__torch_keep(out, "up", c->compute * c->t * c->i);
    }
    if (up_grad)
        lst__torch_keep(out, "silu(gate)", c->compute * c->t * c->i);
    lst__torch_keep_input(c, "product of silu(gate) and up", c->i, LST_TARGET_DOWN, gate_grad || up_grad, false, out);
}

static void post_norm(const lst__torch *c, const char *what, lst__kept *out)
{
    const lst_shape_family f = c->run->shape.family;
    if (f == LST_SHAPE_GEMMA2 || f == LST_SHAPE_GEMMA3)
        rms_norm(c, what, c->h, 1, true, out);
}

/* torch.compile's partitioner keeps what matrix products and attention read and write, and computes the rest again. */
static void compiled_layer(const lst__torch *c, lst__kept *out)
{
    const uint64_t ct = c->compute * c->t;
    lst__torch_keep(out, "inputs of both norms", 2 * c->stream * c->t * c->h);
    lst__torch_keep(out, "one float a row of a norm", 8 * c->t);
    lst__torch_keep(out, "outputs of both norms", 2 * ct * c->h);
    lst__torch_keep(out, "rotated queries", ct * c->q);
    lst__torch_keep(out, "keys and values", 2 * ct * c->kv);
    lst__torch_keep(out, "attention output", ct * c->q);
    lst__torch_keep(out, "one float a head of attention", 4 * c->t * c->a);
    lst__torch_keep(out, "gate", ct * c->i);
    lst__torch_keep(out, "up", ct * c->i);
    lst__torch_keep(out, "product of silu(gate) and up", ct * c->i);
}

uint64_t lst__torch_attention_kept(const lst__torch *c, bool first)
{
    lst__kept kept = {0};
    if (c->gpt2)
        lst__torch_gpt2_attention(c, !first, &kept);
    else
        attention(c, !first, &kept);
    return kept.bytes;
}

void lst__torch_layer(const lst__torch *c, bool first, lst__kept *out)
{
    *out = (lst__kept){0};
    if (c->gpt2) {
        lst__torch_gpt2_layer(c, first, out);
        return;
    }
    if (c->run->compiled) {
        compiled_layer(c, out);
        return;
    }
    const unsigned before_mlp = attention_targets | LST_TARGET_O;
    const bool input_grad = !first;
    attention(c, input_grad, out);
    post_norm(c, "input of the norm after attention", out);
    mlp(c, input_grad || !c->lora || (c->run->lora & before_mlp), out);
    post_norm(c, "input of the norm after the MLP", out);
    if (c->autocast)
        lst__torch_keep(out, "bfloat16 copies of the weights", lst__torch_cast_bytes(c, first));
}

void lst__torch_outside(const lst__torch *c, lst__kept *out)
{
    *out = (lst__kept){0};
    if (c->gpt2) {
        lst__torch_gpt2_outside(c, out);
        return;
    }
    rms_norm(c, "input of the final norm", c->h, 1, true, out);
    lst__torch_keep_head(c, out);
    lst__torch_keep(out, "rotary cosines and sines", 2 * c->T * c->d * (c->autocast ? 4 : c->compute));
    if (!c->run->checkpoint)
        return;
    lst__torch_keep(out, "position numbers", 8 * c->T);
    if (c->eager)
        lst__torch_keep(out, "attention mask", c->stream * c->B * c->T * c->T);
    else if (c->run->pad_mask)
        lst__torch_keep(out, "padding mask, one byte an entry", c->B * c->T * c->T);
}
