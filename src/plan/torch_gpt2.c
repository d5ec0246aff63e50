/* SPDX-License-Identifier: MIT
 *
 * What autograd keeps of one GPT-2 layer. Its GELU is written in elementary operations, so the MLP keeps five tensors
 * of its width: input, tanh, half the input, one plus tanh, product. LayerNorm keeps its input and two statistics.
 */
#include "plan/torch.h"
#include "plan/torch_keep.h"

static void layer_norm(const lst__torch *c, const char *what, bool input_grad, lst__kept *out)
{
    if (!input_grad && c->lora)
        return;
    lst__torch_keep(out, what, c->stream * c->t * c->h);
    lst__torch_keep(out, "two statistics a row of a norm", 2 * (c->run->gpu ? 4 : c->stream) * c->t);
}

/* With dropout the CPU's attention falls back on the explicit product, in float32. */
static void sdpa_with_dropout(const lst__torch *c, lst__kept *out)
{
    const uint64_t scores = c->t * c->a * c->T;
    lst__torch_keep(out, "queries, keys, values", 3 * 4 * c->t * c->h);
    lst__torch_keep(out, "softmax of T*T a head", 4 * scores);
    lst__torch_keep(out, "attention dropout: mask and product", 8 * scores);
    if (c->B == 1 && c->compute == 4)
        lst__torch_keep(out, "copies of keys and values", 8 * c->t * c->h);
}

static void sdpa(const lst__torch *c, lst__kept *out)
{
    if (c->dropout && !c->run->gpu) {
        sdpa_with_dropout(c, out);
    } else {
        lst__torch_keep(out, "queries, keys, values", 3 * c->compute * c->t * c->h);
        lst__torch_keep(out, "one float a head of attention", 4 * c->t * c->a);
    }
    const bool copied = c->dropout && !c->run->gpu && c->compute == 2; /* attention works on float32 copies */
    if (c->run->use_cache && !c->run->checkpoint && !copied)           /* the model turns it off under checkpointing */
        lst__torch_keep(out, "key-value cache", 2 * c->compute * c->t * c->h);
    if (c->run->pad_mask)
        lst__torch_keep(out, "padding mask of T*T", c->compute * c->t * c->T);
    lst__torch_keep(out, "attention output", c->compute * c->t * c->h);
}

static void eager(const lst__torch *c, lst__kept *out)
{
    const uint64_t scores = c->t * c->a * c->T;
    lst__torch_keep(out, "queries, keys, values", 3 * c->compute * c->t * c->h);
    lst__torch_keep(out, "softmax of T*T a head", (c->autocast ? 4 : c->compute) * scores);
    if (c->dropout)
        lst__torch_keep(out, "attention dropout: mask and product", (lst__torch_mask_size(c) + c->compute) * scores);
    else if (c->autocast)
        lst__torch_keep(out, "softmax in bfloat16", 2 * scores);
    lst__torch_keep_scalars(out, 1);
}

void lst__torch_gpt2_attention(const lst__torch *c, bool input_grad, lst__kept *out)
{
    const bool flows = input_grad || !c->lora || (c->run->lora & (LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V));
    layer_norm(c, "input of the first norm", input_grad, out);
    lst__torch_keep_input(c, "output of the first norm", c->h, LST_TARGET_Q, input_grad, false, out);
    if (flows && c->eager)
        eager(c, out);
    else if (flows)
        sdpa(c, out);
    lst__torch_keep_input(c, "input of the output projection", c->h, LST_TARGET_O, flows, flows && !c->eager, out);
    if (c->dropout && (flows || (c->run->lora & LST_TARGET_O)))
        lst__torch_keep(out, "masks of residual dropout", lst__torch_mask_size(c) * c->t * c->h);
}

static void mlp(const lst__torch *c, bool input_grad, lst__kept *out)
{
    layer_norm(c, "input of the second norm", input_grad, out);
    lst__torch_keep_input(c, "output of the second norm", c->h, LST_TARGET_UP, input_grad, false, out);
    lst__torch_keep(out, "GELU: input, tanh, two factors", 4 * c->compute * c->t * c->i);
    lst__torch_keep_scalars(out, 3);
    lst__torch_keep_input(c, "output of GELU", c->i, LST_TARGET_DOWN, true, false, out);
    if (c->dropout)
        lst__torch_keep(out, "masks of residual dropout", lst__torch_mask_size(c) * c->t * c->h);
}

void lst__torch_gpt2_layer(const lst__torch *c, bool first, lst__kept *out)
{
    const bool input_grad = !first;
    const unsigned before_mlp = LST_TARGET_Q | LST_TARGET_K | LST_TARGET_V | LST_TARGET_O;
    lst__torch_gpt2_attention(c, input_grad, out);
    mlp(c, input_grad || !c->lora || (c->run->lora & before_mlp), out);
    if (c->autocast)
        lst__torch_keep(out, "bfloat16 copies of the weights", lst__torch_cast_bytes(c, first));
}

void lst__torch_gpt2_outside(const lst__torch *c, lst__kept *out)
{
    layer_norm(c, "input of the final norm", true, out);
    lst__torch_keep_head(c, out);
    if (!c->lora)
        lst__torch_keep(out, "position numbers", 8 * c->T);
    if (c->dropout)
        lst__torch_keep(out, "mask of embedding dropout", (c->run->gpu ? 1 : c->stream) * c->t * c->h);
    if (c->run->checkpoint && c->lora) { /* the embeddings' sum was made a leaf that requires a gradient */
        lst__torch_keep(out, "output of the embeddings", c->stream * c->t * c->h);
        lst__torch_keep(out, "position numbers", 8 * c->T);
    }
    if (c->run->checkpoint && c->eager)
        lst__torch_keep(out, "attention mask", c->stream * c->B * c->T * c->T);
}
