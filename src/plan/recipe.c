/* SPDX-License-Identifier: MIT */
#include "leanstep/recipe.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"

void lst_recipe_default(lst_recipe *out)
{
    memset(out, 0, sizeof *out);
    out->rule = LST_RULE_ADAMW;
    lst_hyper_default(out->rule, &out->hyper);
    out->weights = LST_WEIGHT_F32;
    out->grads = LST_CODEC_F32;
    out->state = LST_CODEC_F32;
    out->activations = LST_ACT_KEEP;
    out->grad_mode = LST_GRAD_KEEP;
    out->clip_norm = 1.0; /* as transformers' Trainer */
    out->batch = 1;
    out->seq = 512;
    out->accumulation = 1;
    out->loss_chunk = 128; /* as fast as larger chunks for a vocabulary of 151,936, at a quarter of the memory of 512 */
    out->threads = 1;
}

static lst_status check_release(const lst_recipe *r, lst_error *err)
{
    if (r->grad_mode != LST_GRAD_RELEASE)
        return LST_OK;
    if (r->clip_norm > 0)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "--clip %g with --grads release: exact clipping needs every gradient at once, and released ones are gone. "
            "Choose --grads keep (exact clipping) or --clip 0 (no clipping)",
            r->clip_norm);
    if (r->grads != LST_CODEC_F32)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "--grad-dtype %s has no effect with --grads release: a released gradient is float32 and never "
                         "stored. Choose --grads keep, or leave --grad-dtype out",
                         lst_codec_name(r->grads));
    if (r->loss_scale)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "--loss-scale dynamic with --grads release: a step that overflows is skipped whole, and released "
            "layers have already stepped. Choose --grads keep, or --loss-scale none (released gradients are float32 "
            "and need none)");
    return LST_OK;
}

static lst_status check_codecs(const lst_recipe *r, lst_error *err)
{
    if (r->grads != LST_CODEC_F32 && r->grads != LST_CODEC_BF16 && r->grads != LST_CODEC_F16)
        return lst__fail(err, LST_ERR_ARGUMENT, "gradients cannot be stored as %s; there are f32, bf16 and f16",
                         lst_codec_name(r->grads));
    if (r->f32_embeddings && r->state == LST_CODEC_F32)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "--state-embeddings f32 has no effect with --state f32: all moments are float32 already. "
                         "Choose --state q8 (or another), or leave it out");
    if (r->loss_scale && r->grads != LST_CODEC_F16)
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "--loss-scale dynamic has no effect on gradients in %s, whose range is float32's; it is for f16. "
            "Choose --grad-dtype f16, or --loss-scale none",
            lst_codec_name(r->grads));
    return LST_OK;
}

/* Ceiling of each size: far beyond use, small enough that products of two or three stay within 64 bits. */
#define MAX_TOKENS ((size_t)1 << 31)

static lst_status check_sizes(const lst_recipe *r, const lst_arch *arch, lst_error *err)
{
    const struct {
        const char *option;
        size_t value, limit;
    } sizes[] = {{"batch", r->batch, 1 << 20},
                 {"seq", r->seq, 1 << 24},
                 {"accumulation", r->accumulation, 1 << 16},
                 {"loss-chunk", r->loss_chunk, MAX_TOKENS},
                 {"threads", r->threads, 1024}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].limit)
            return lst__fail(err, LST_ERR_ARGUMENT, "--%s %zu: expected 1 to %zu", sizes[i].option, sizes[i].value,
                             sizes[i].limit);
    if (r->batch * r->seq > MAX_TOKENS)
        return lst__fail(err, LST_ERR_ARGUMENT, "--batch %zu x --seq %zu: more than 2^31 tokens in a micro-batch",
                         r->batch, r->seq);
    if (arch && r->seq > arch->max_positions)
        return lst__fail(err, LST_ERR_ARGUMENT, "--seq %zu: the model has %zu positions; give at most that", r->seq,
                         arch->max_positions);
    return LST_OK;
}

/* Asks the optimizer itself whether rule, hyper-parameters and codecs go together. */
static lst_status check_optimizer(const lst_recipe *r, lst_error *err)
{
    const lst_optim_options options = {.struct_size = sizeof options,
                                       .rule = r->rule,
                                       .weights = r->weights,
                                       .grads = r->grads,
                                       .state = r->state,
                                       .n_groups = 1,
                                       .groups = &r->hyper};
    const lst_tensor tensor = {.name = "any", .n_dims = 1, .dims = {1}};
    lst_slot slots[LST_MAX_SLOTS];
    size_t n_slots;
    lst_optim_options as_f32 = options;
    as_f32.state = LST_CODEC_F32;
    lst_error why = {.message = ""};
    lst_status status = lst_optim_slots(&options, &tensor, slots, &n_slots, &why);
    if (status == LST_OK)
        return LST_OK;
    if (r->state != LST_CODEC_F32 && lst_optim_slots(&as_f32, &tensor, slots, &n_slots, NULL) == LST_OK)
        return lst__fail(err, LST_ERR_ARGUMENT, "--state %s with --optimizer %s: %.300s", lst_codec_name(r->state),
                         lst_rule_name(r->rule), why.message);
    return lst__fail(err, status, "%s", why.message);
}

lst_status lst_recipe_check(const lst_recipe *recipe, const lst_arch *arch, lst_error *err)
{
    if ((unsigned)recipe->rule >= LST_N_RULES || (unsigned)recipe->weights >= LST_N_WEIGHT_FORMS ||
        (unsigned)recipe->activations >= LST_N_ACT_POLICIES || (unsigned)recipe->grad_mode >= LST_N_GRAD_MODES)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "recipe: rule %d, weights %d, activations %d or gradient mode %d does not exist",
                         (int)recipe->rule, (int)recipe->weights, (int)recipe->activations, (int)recipe->grad_mode);
    if (!(recipe->clip_norm >= 0) || !isfinite(recipe->clip_norm))
        return lst__fail(err, LST_ERR_ARGUMENT, "--clip %g: expected 0 (no clipping) or a positive number",
                         recipe->clip_norm);
    lst_status status = check_sizes(recipe, arch, err);
    if (status == LST_OK)
        status = check_codecs(recipe, err);
    if (status == LST_OK)
        status = check_release(recipe, err);
    return status == LST_OK ? check_optimizer(recipe, err) : status;
}
