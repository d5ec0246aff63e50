/* SPDX-License-Identifier: MIT
 *
 * The peak of backward: the highest of a few moments, each written as what lives then. Saved tensors go as backward
 * descends, gradients come; so it is the loss (no gradient yet), the MLP or the softmax of the last or the first
 * layer, or the end (all gradients).
 */
#include "plan/torch.h"

typedef struct moment {
    uint64_t bytes;
    const char *at;
} moment;

static void consider(moment *best, uint64_t bytes, const char *at)
{
    if (bytes > best->bytes)
        *best = (moment){bytes, at};
}

/* What of `outside` lives until the end: not the final norm and the head's input. */
static uint64_t lasting(const lst__torch *c)
{
    uint64_t bytes = c->gpt2 ? 8 * c->T : 2 * c->T * c->d * (c->autocast ? 4 : c->compute);
    if (c->gpt2 && c->lora)
        bytes = c->run->checkpoint ? c->stream * c->t * c->h + 8 * c->T : 0;
    if (c->run->checkpoint && !c->gpt2)
        bytes += 8 * c->T;
    if (c->dropout)
        bytes += (c->run->gpu ? 1 : c->stream) * c->t * c->h;
    if (c->run->checkpoint && c->eager)
        bytes += c->stream * c->B * c->T * c->T;
    return bytes;
}

/* In bfloat16 the norm keeps a float32 copy of the layer's input, and the checkpoint the input itself. */
static uint64_t input_beside_copy(const lst__torch *c)
{
    return c->run->dtype == LST_TORCH_BFLOAT16 && !c->gpt2 ? 2 * c->t * c->h : 0;
}

/* Live while layer l (1 to L) is at the start of its backward. */
static uint64_t at_layer(const lst__torch *c, const lst__torch_sums *s, uint64_t l)
{
    const uint64_t layer = l == 1 ? s->first_layer : s->layer;
    uint64_t bytes =
        s->start + s->held + s->gathered + lasting(c) + lst__torch_held_output(c) + c->stream * c->t * c->h + 8;
    if (c->run->checkpoint)
        bytes += (l - 1) * s->checkpoint + layer + input_beside_copy(c) + (c->run->gpu ? 0 : 5056);
    else
        bytes += (l - 1) * s->layer + s->first_layer;
    if (c->run->checkpoint && c->run->offload_checkpoints)
        bytes -= (l - 1) * s->checkpoint;
    if (c->lora)
        return bytes + (s->held ? 0 : (c->L - l) * s->layer_grads);
    const uint64_t head = c->weight * c->V * c->h;
    if (c->run->release_grads) /* a tied head's gradient waits for the embedding's */
        return bytes + (c->run->shape.tied ? head : 0);
    if (s->held)
        return bytes + (c->run->shape.tied ? head : 0);
    return bytes + (c->L - l) * s->layer_grads + head + c->weight * (c->gpt2 ? 2 : 1) * c->h;
}

/* Gradients of the MLP's product, of its two factors; the product itself has gone if it was kept. */
static uint64_t mlp(const lst__torch *c, const lst__torch_sums *s)
{
    const uint64_t ti = c->compute * c->t * c->i;
    /* the weight's gradient comes; under autocast the weight's bfloat16 copy goes */
    const uint64_t hi = (c->autocast ? 2 : c->weight) * c->h * c->i;
    const uint64_t dropped = c->dropout && c->gpt2 ? (c->run->gpu ? 1 : c->compute) * c->t * c->h : 0;
    if (c->lora && (c->run->lora & LST_TARGET_DOWN))
        return 2 * ti - c->adapter * c->t * c->r + c->adapter * c->r * (c->h + c->i) - 8;
    if (c->lora)
        return 3 * ti - dropped;
    if (s->held || c->run->release_grads)
        return (2 * ti > hi + ti ? 2 * ti : hi + ti) - dropped;
    return hi + (c->gpt2 ? c->weight * c->h : 0) + 2 * ti - dropped;
}

/* Two gradients of T*T a head; the MLP and what followed attention have gone, their weights' gradients have come. */
static uint64_t softmax(const lst__torch *c)
{
    const uint64_t scores = 8 * c->t * c->a * c->T;
    if (c->gpt2)
        return scores + 4 * (2 * c->h * c->i + c->i + c->h + 2 * c->h + c->h * c->h + c->h) -
               4 * c->t * (5 * c->i + 2 * c->h + 2) - 24;
    return scores + 4 * (3 * c->h * c->i + c->h + c->h * c->q) - 16 * c->t * c->i - 4 * c->t * (3 * c->h + 1) -
           4 * c->t * c->q;
}

/* The same under adapters: what the MLP kept has gone, gradients are small. In low precision the softmax's bfloat16
 * copy has gone too. */
static uint64_t adapted_softmax(const lst__torch *c, const lst__torch_sums *s, bool first)
{
    const bool no_grad = first && !c->run->checkpoint;
    const uint64_t layer = no_grad ? s->first_layer : s->layer, scores = c->t * c->a * c->T;
    const uint64_t output = c->run->lora & LST_TARGET_O ? c->compute * c->t * c->q : 0;
    return lst__torch_attention_kept(c, no_grad) - layer + (c->compute == 2 ? 6 : 8) * scores - output;
}

static void consider_layers(const lst__torch *c, const lst__torch_sums *s, moment *best)
{
    for (int last = 0; last < 2; last++) {
        const uint64_t base = at_layer(c, s, last ? c->L : 1);
        consider(best, base + mlp(c, s), last ? "MLP of the last layer" : "MLP of the first layer");
        if (c->eager && c->lora)
            consider(best, base + adapted_softmax(c, s, !last),
                     last ? "softmax of the last layer" : "softmax of the first layer");
        else if (c->eager && !c->dropout && !s->held)
            consider(best, base + softmax(c), last ? "softmax of the last layer" : "softmax of the first layer");
    }
}

static void consider_end(const lst__torch *c, const lst__torch_sums *s, moment *best)
{
    const uint64_t head = c->weight * c->V * c->h, stream = c->stream * c->t * c->h;
    const uint64_t base = s->start + s->gathered + lst__torch_held_output(c);
    if (c->lora)
        return;
    if (s->held)
        consider(best, base + s->held + 8 + (c->run->shape.tied ? 3 * head : head + stream), "end");
    else if (c->run->release_grads)
        consider(best, base + (c->run->shape.tied ? 3 * head : head + stream), "end");
    else
        consider(best, base + s->grads + 8 + (c->run->shape.tied ? 2 * head : stream), "end");
}

/* The final norm of a float32 Llama: the logits' gradient and the head's input have gone; the norm's weight has its
 * gradient as a product over all rows, beside the gradients of its output and of the normalised input. */
static void consider_final_norm(const lst__torch *c, const lst__torch_sums *s, uint64_t after, moment *best)
{
    if (c->gpt2 || c->lora || c->compute != 4)
        return;
    const uint64_t head = !s->held || c->run->shape.tied ? 4 * c->V * c->h : 0;
    consider(best, after + 12 * c->t * c->h + head + (s->held ? 0 : 4 * c->h) - 4 * c->t * c->V - 4 * c->t,
             "final norm");
}

static void consider_loss(const lst__torch *c, const lst__torch_sums *s, moment *best)
{
    const uint64_t gone = lst__torch_label_bytes(c) + (c->run->accumulation > 1 ? 8 : 0);
    const uint64_t after = lst__torch_after_loss(c, s) - gone, tV = c->t * c->V;
    const uint64_t head = c->lora ? 0 : c->weight * c->V * c->h, stream = c->compute * c->t * c->h;
    const uint64_t chunks = c->run->loss_chunks ? c->run->loss_chunks : 1;
    switch (c->run->loss) {
    case LST_TORCH_LOSS_UPCAST:
        consider(best, after + 8 * tV, "loss");
        consider_final_norm(c, s, after, best);
        if (c->compute == 4)
            consider(best, after + stream + head, "head");
        else if (c->autocast) { /* the weight's bfloat16 copy goes as its gradient becomes float32 */
            consider(best, after - 2 * tV + stream + head / 2, "head");
            consider(best, after - 4 * tV + stream + head, "head");
        } else {
            consider(best, after - 2 * tV + stream + head, "head");
        }
        break;
    case LST_TORCH_LOSS_PLAIN:
        consider(best, after + 2 * c->compute * tV, "loss");
        consider(best, after + stream + head, "head");
        break;
    case LST_TORCH_LOSS_CHUNKED: /* one chunk's log-probabilities and gradients, beside the head's gradient */
        consider(best, after + (8 + c->compute) * tV / chunks + stream + head, "loss");
        break;
    default:
        consider(best, after + stream + head, "loss");
    }
}

uint64_t lst__torch_backward_peak(const lst__torch *c, const lst__torch_sums *s, const char **at)
{
    moment best = {0};
    consider_loss(c, s, &best);
    consider_layers(c, s, &best);
    consider_end(c, s, &best);
    *at = best.at;
    return best.bytes;
}

uint64_t lst__torch_backward_makes(const lst__torch *c, const lst__torch_sums *s)
{
    const uint64_t layer = c->run->checkpoint ? s->layer + input_beside_copy(c) + 5056 : 0; /* computed again */
    const uint64_t stream = 12 * c->t * c->h + 8;
    const uint64_t inside = 3 * c->compute * c->t * c->i + (s->held ? c->weight * c->h * c->i : 0);
    const uint64_t scores = c->eager ? 8 * c->t * c->a * c->T : 0;
    const uint64_t head = c->lora ? 0 : c->weight * c->V * c->h * ((s->held ? 1 : 0) + (c->run->shape.tied ? 2 : 0));
    return layer + stream + inside + scores + head + lst__torch_held_output(c);
}
