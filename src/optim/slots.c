/* SPDX-License-Identifier: MIT
 *
 * Which slots a tensor has and what they take. Planner, allocator and checkpoint all ask here.
 */
#include "optim/optimizer.h"

#include "base/fail.h"

lst_status lst__tensor_elems(const lst_tensor *tensor, size_t *out, lst_error *err)
{
    const char *name = tensor->name ? tensor->name : "(no name)";
    if (tensor->n_dims > LST_MAX_DIMS)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s has %zu dimensions; at most %d are supported", name,
                         tensor->n_dims, LST_MAX_DIMS);
    size_t n = 1;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] == 0)
            return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: dimension %zu is 0; a tensor needs elements", name, i);
        if (n > SIZE_MAX / 8 / tensor->dims[i])
            return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: the product of its dimensions is too large", name);
        n *= tensor->dims[i];
    }
    *out = n;
    return LST_OK;
}

size_t lst__tensor_n(const lst_tensor *tensor)
{
    size_t n = 1;
    for (size_t i = 0; i < tensor->n_dims; i++)
        n *= tensor->dims[i];
    return n;
}

static lst_status check_codecs(const lst_optim_options *options, lst_error *err)
{
    if ((unsigned)options->weights >= LST_N_WEIGHT_FORMS)
        return lst__fail(err, LST_ERR_ARGUMENT, "options.weights is %d; there are %d weight forms",
                         (int)options->weights, (int)LST_N_WEIGHT_FORMS);
    if (options->grads != LST_CODEC_F32 && options->grads != LST_CODEC_BF16 && options->grads != LST_CODEC_F16)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "gradients cannot be stored as %s; use f32, bf16 or f16",
                         lst_codec_name(options->grads));
    switch (options->state) {
    case LST_CODEC_F32:
    case LST_CODEC_Q8:
    case LST_CODEC_Q4:
    case LST_CODEC_Q8_DYNAMIC:
    case LST_CODEC_Q8_DYNAMIC_2048:
        return LST_OK;
    case LST_CODEC_BF16:
    case LST_CODEC_F16:
        return lst__fail(
            err, LST_ERR_UNSUPPORTED,
            "state cannot be stored as %s: rounded to nearest in 16 bits, a second moment with beta2 0.999 would "
            "never decay; use f32, q8, q4, q8-dynamic or q8-dynamic-2048",
            lst_codec_name(options->state));
    default:
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "state cannot be stored as %s; use f32, q8, q4, q8-dynamic or q8-dynamic-2048",
                         lst_codec_name(options->state));
    }
}

/* Rules and switches that codecs of few bits do not go with, each with its reason. */
static lst_status check_pair(const lst_optim_options *options, size_t group, lst_error *err)
{
    const lst_hyper *h = &options->groups[group];
    const char *name = lst_codec_name(options->state), *reason = NULL;
    if (options->state == LST_CODEC_F32)
        return LST_OK;
    if (options->rule == LST_RULE_SGD)
        reason = "sgd keeps no state";
    else if ((options->rule == LST_RULE_ADAFACTOR && h->beta1 == 0) || options->rule == LST_RULE_ADAFACTOR_TORCH)
        reason = "adafactor without a first moment keeps next to no state, and that in f32";
    else if (h->amsgrad)
        reason = "amsgrad's maximum would keep every rounding upward for good";
    else if (h->centered)
        reason = "centered rmsprop takes the difference of two moments, which few bits would drown";
    if (!reason)
        return LST_OK;
    return lst__fail(err, LST_ERR_ARGUMENT, "group %zu: state in %s does not go with it: %s; use f32", group, name,
                     reason);
}

lst_status lst__options_check(const lst_optim_options *options, lst_error *err)
{
    if (options->struct_size != sizeof *options)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "options.struct_size is %zu; this library expects sizeof(lst_optim_options) = %zu",
                         options->struct_size, sizeof *options);
    if ((unsigned)options->rule >= LST_N_RULES)
        return lst__fail(err, LST_ERR_ARGUMENT, "options.rule is %d; there are %d rules", (int)options->rule,
                         (int)LST_N_RULES);
    lst_status status = check_codecs(options, err);
    if (status != LST_OK)
        return status;
    if (options->n_groups == 0 || !options->groups)
        return lst__fail(err, LST_ERR_ARGUMENT, "options.n_groups is 0; an optimizer needs at least one group");
    for (size_t i = 0; i < options->n_groups && status == LST_OK; i++)
        status = lst__hyper_check(options->rule, &options->groups[i], i, err);
    for (size_t i = 0; i < options->n_groups && status == LST_OK; i++)
        status = check_pair(options, i, err);
    return status;
}

static lst_status add_slot(lst_slot *out, size_t *n_slots, lst_bucket bucket, lst_codec codec, size_t n_elems,
                           const char *tensor, lst_error *err)
{
    const size_t bytes = lst_codec_bytes(codec, n_elems);
    if (bytes > SIZE_MAX / 2)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s: the slot %s of %zu values is too large", tensor,
                         lst_bucket_name(bucket), n_elems);
    out[(*n_slots)++] = (lst_slot){lst_bucket_name(bucket), bucket, codec, n_elems, bytes, NULL};
    return LST_OK;
}

/* The codec of a slot: f32 where the rule, the tensor or its size asks for it, else that of the options, in its form
 * for numbers of at least 0 where the slot holds such. */
static lst_codec slot_codec(const lst_optim_options *options, const lst_tensor *tensor, const lst__slot_spec *spec)
{
    if (spec->always_f32 || tensor->f32_state || lst__tensor_n(tensor) < LST_SMALL_TENSOR)
        return LST_CODEC_F32;
    return spec->non_negative ? lst_codec_unsigned(options->state) : options->state;
}

lst_status lst__slots_of(const lst_optim_options *options, const lst_tensor *tensor, lst_slot *out, size_t *n_slots,
                         lst_error *err)
{
    size_t n_elems = 0, n = 0;
    if (!tensor->name || !*tensor->name)
        return lst__fail(err, LST_ERR_ARGUMENT, "a tensor has no name; every tensor needs one");
    lst_status status = lst__tensor_elems(tensor, &n_elems, err);
    if (status != LST_OK)
        return status;
    if (tensor->group >= options->n_groups)
        return lst__fail(err, LST_ERR_ARGUMENT, "tensor %s is in group %zu, but there are %zu groups", tensor->name,
                         tensor->group, options->n_groups);
    const lst__rule *rule = lst__rule_get(options->rule);
    if (rule->check_tensor)
        status = rule->check_tensor(tensor, err);
    else if (tensor->moment_block > 0)
        status = lst__fail(err, LST_ERR_ARGUMENT,
                           "tensor %s: moment_block is %zu, but the rule %s does not use it; leave it 0", tensor->name,
                           tensor->moment_block, lst_rule_name(options->rule));
    if (status != LST_OK)
        return status;
    const lst_codec master = lst_weight_form_master(options->weights);
    if (master != LST_N_CODECS)
        status = add_slot(out, &n, LST_BUCKET_MASTER, master, n_elems, tensor->name, err);
    lst__slot_spec specs[LST_MAX_SLOTS];
    const size_t n_specs = rule->slots(&options->groups[tensor->group], tensor, specs);
    for (size_t i = 0; i < n_specs && status == LST_OK; i++)
        status = add_slot(out, &n, specs[i].bucket, slot_codec(options, tensor, &specs[i]), specs[i].n_elems,
                          tensor->name, err);
    if (status == LST_OK)
        *n_slots = n;
    return status;
}

lst_status lst_optim_slots(const lst_optim_options *options, const lst_tensor *tensor, lst_slot *out, size_t *n_slots,
                           lst_error *err)
{
    lst_status status = lst__options_check(options, err);
    return status == LST_OK ? lst__slots_of(options, tensor, out, n_slots, err) : status;
}

lst_status lst_optim_scratch(const lst_optim_options *options, const lst_tensor *tensor, size_t *bytes, lst_error *err)
{
    lst_slot slots[LST_MAX_SLOTS];
    size_t n_slots;
    lst_status status = lst_optim_slots(options, tensor, slots, &n_slots, err); /* checks all there is to check */
    if (status != LST_OK)
        return status;
    const lst__rule *rule = lst__rule_get(options->rule);
    *bytes = rule->scratch_bytes ? rule->scratch_bytes(&options->groups[tensor->group], tensor) : 0;
    return LST_OK;
}
