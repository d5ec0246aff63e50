/* SPDX-License-Identifier: MIT */
#include "cli/plan_print.h"

#include <inttypes.h>

#include "cli/print.h"

static void print_row(FILE *out, const char *name, uint64_t bytes, uint64_t n_params, const char *note)
{
    char exact[32];
    fprintf(out, "  %-16s %20s  %9.3f  %9.3f  %9.4f%s%s\n", name, cli_print_integer(exact, sizeof exact, bytes),
            (double)bytes / 1073741824.0, (double)bytes / 1e9, (double)bytes / (double)n_params, *note ? "  " : "",
            note);
}

static void print_recipe(FILE *out, const lst_plan *plan)
{
    const lst_recipe *r = &plan->recipe;
    char integer[32];
    fprintf(out, "%s parameters, %s, weights %s, gradients %s",
            cli_print_integer(integer, sizeof integer, plan->n_params), lst_rule_name(r->rule),
            lst_weight_form_name(r->weights), r->grad_mode == LST_GRAD_KEEP ? lst_codec_name(r->grads) : "released");
    if (r->state != LST_CODEC_F32)
        fprintf(out, ", moments %s", lst_codec_name(r->state));
    if (plan->has_arch)
        fprintf(out, ", %zu x %zu tokens x %zu a step", r->batch, r->seq, r->accumulation);
    fprintf(out, "\n\n");
}

static void print_share(FILE *out, const lst_plan *plan)
{
    double n = (double)plan->n_params;
    if (plan->fixed_bytes)
        fprintf(out, "\n%.4g of %.4g bytes a parameter that no batch size changes are optimizer state.\n",
                (double)plan->optimizer_state_bytes / n, (double)plan->fixed_bytes / n);
}

/* Tensors whose moments stay float32 whatever the recipe says. */
typedef struct exceptions {
    size_t n_small, n_embeddings;
    uint64_t small_elems, embedding_elems;
} exceptions;

static exceptions count_exceptions(const lst_plan *plan)
{
    exceptions e = {0};
    for (size_t i = 0; plan->recipe.state != LST_CODEC_F32 && plan->has_arch && i < lst_arch_tensor_count(&plan->arch);
         i++) {
        lst_arch_tensor tensor;
        lst_tensor described;
        lst_arch_tensor_at(&plan->arch, i, &tensor);
        lst_recipe_tensor(&plan->recipe, &plan->arch, &tensor, &described);
        if (tensor.n_elems < LST_SMALL_TENSOR) {
            e.n_small++;
            e.small_elems += tensor.n_elems;
        } else if (described.f32_state) {
            e.n_embeddings++;
            e.embedding_elems += tensor.n_elems;
        }
    }
    return e;
}

static void print_exceptions(FILE *out, const lst_plan *plan)
{
    const exceptions e = count_exceptions(plan);
    char number[32];
    if (e.n_small)
        fprintf(out, "%zu tensor%s of fewer than 4,096 values keep%s float32 moments: %s values in all.\n", e.n_small,
                e.n_small == 1 ? "" : "s", e.n_small == 1 ? "s" : "",
                cli_print_integer(number, sizeof number, e.small_elems));
    if (e.n_embeddings)
        fprintf(out, "%zu embedding%s keep%s float32 moments, as asked: %s values in all.\n", e.n_embeddings,
                e.n_embeddings == 1 ? "" : "s", e.n_embeddings == 1 ? "s" : "",
                cli_print_integer(number, sizeof number, e.embedding_elems));
}

static void print_warning(FILE *out, const lst_plan *plan)
{
    const double lr = plan->recipe.hyper.lr;
    if (plan->recipe.weights == LST_WEIGHT_BF16_NEAREST)
        fprintf(out,
                "Warning: bf16-nearest deletes every update smaller than 1/512 of its weight, and some up to 1/256. A "
                "step of %g\n(the rate; Adam's steps are about as large) moves no weight beyond %.3g. split24, bf16-sr "
                "and split32 lose none.\n",
                lr, 512 * lr);
}

void cli_print_plan(FILE *out, const lst_plan *plan)
{
    char phase[64], exact[32];
    print_recipe(out, plan);
    fprintf(out, "  %-16s %20s  %9s  %9s  %9s\n", "bucket", "bytes", "GiB", "GB", "B/param");
    for (int b = 0; b < LST_N_BUCKETS; b++)
        if (plan->bucket_bytes[b])
            print_row(out, lst_bucket_name((lst_bucket)b), plan->bucket_bytes[b], plan->n_params,
                      lst_bucket_is_state((lst_bucket)b) ? "optimizer state" : "");
    if (plan->recipe.grad_mode == LST_GRAD_RELEASE && !plan->has_arch)
        fprintf(out, "  %-16s released layer by layer: their size needs the model's shape, not only its parameters\n",
                "gradients");
    fprintf(out, "\n");
    print_row(out, "optimizer state", plan->optimizer_state_bytes, plan->n_params, "");
    print_row(out, "fixed", plan->fixed_bytes, plan->n_params, "weights + kept gradients + optimizer state");
    print_row(out, "sum", plan->sum_bytes, plan->n_params, "as if nothing shared memory");
    lst_phase_name(plan->n_layers, plan->peak_phase, phase, sizeof phase);
    print_row(out, "peak", plan->peak_bytes, plan->n_params, plan->has_arch ? phase : "");
    print_row(out, "arena", plan->arena_bytes, plan->n_params, "reserved once: the peak, aligned and packed");
    print_share(out, plan);
    print_exceptions(out, plan);
    print_warning(out, plan);
    if (plan->has_arch)
        fprintf(out,
                "The peak comes in the phase \"%s\"; a bucket's row is the most it holds at any time (%s bytes saved "
                "by sharing).\n",
                phase, cli_print_integer(exact, sizeof exact, plan->sum_bytes - plan->peak_bytes));
}

void cli_print_assumed(FILE *out, const cli_assumed *assumed)
{
    if (!assumed->n)
        return;
    fprintf(out, "Assumed, since not given:\n");
    for (size_t i = 0; i < assumed->n; i++)
        fprintf(out, "  %s\n", assumed->lines[i]);
}

void cli_print_buffers(FILE *out, const lst_plan *plan)
{
    fprintf(out, "\n  %16s %16s  %-8s %-15s %-24s %s\n", "offset", "bytes", "codec", "bucket", "lives", "buffer");
    for (size_t i = 0; i < plan->n_buffers; i++) {
        const lst_buffer *b = &plan->buffers[i];
        char first[64], last[64], life[136];
        lst_phase_name(plan->n_layers, b->first_phase, first, sizeof first);
        lst_phase_name(plan->n_layers, b->last_phase, last, sizeof last);
        if (b->first_phase == b->last_phase)
            snprintf(life, sizeof life, "%s", first);
        else
            snprintf(life, sizeof life, "%s..%s", first, last);
        fprintf(out, "  %16zu %16zu  %-8s %-15s %-24s %s\n", b->offset, b->bytes, lst_codec_name(b->codec),
                lst_bucket_name(b->bucket), life, b->name);
    }
}

static json_t *json_bytes(uint64_t bytes)
{
    return json_integer((json_int_t)bytes);
}

static json_t *json_buckets(const uint64_t bytes[LST_N_BUCKETS])
{
    json_t *object = json_object();
    for (int b = 0; object && b < LST_N_BUCKETS; b++)
        json_object_set_new(object, lst_bucket_name((lst_bucket)b), json_bytes(bytes[b]));
    return object;
}

static json_t *json_recipe(const lst_plan *plan)
{
    static const char *const policies[] = {"keep", "pointwise", "inputs"};
    const lst_recipe *r = &plan->recipe;
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:b}", "optimizer", lst_rule_name(r->rule), "weights",
                          lst_weight_form_name(r->weights), "grads", r->grad_mode == LST_GRAD_KEEP ? "keep" : "release",
                          "grad_dtype", lst_codec_name(r->grads), "state", lst_codec_name(r->state), "clip",
                          r->clip_norm, "loss_scale", (int)r->loss_scale);
    if (!o || !plan->has_arch)
        return o;
    json_object_set_new(o, "float32_embeddings", json_boolean(r->f32_embeddings));
    json_object_set_new(o, "activations", json_string(policies[r->activations]));
    json_object_set_new(o, "batch", json_bytes(r->batch));
    json_object_set_new(o, "seq", json_bytes(r->seq));
    json_object_set_new(o, "accumulation", json_bytes(r->accumulation));
    json_object_set_new(o, "loss_chunk", json_bytes(r->loss_chunk));
    json_object_set_new(o, "threads", json_bytes(r->threads));
    return o;
}

static json_t *json_assumed(const cli_assumed *assumed)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < assumed->n; i++)
        json_array_append_new(array, json_string(assumed->lines[i]));
    return array;
}

json_t *cli_plan_json(const lst_plan *plan, const char *model, const cli_assumed *assumed, uint64_t limit_bytes,
                      const char *limit_from)
{
    char phase[64];
    json_t *o = json_object();
    lst_phase_name(plan->n_layers, plan->peak_phase, phase, sizeof phase);
    if (!o)
        return NULL;
    json_object_set_new(o, "schema", json_string("leanstep.plan.1"));
    json_object_set_new(o, "model", model ? json_string(model) : json_null());
    json_object_set_new(o, "params", json_bytes(plan->n_params));
    json_object_set_new(o, "recipe", json_recipe(plan));
    json_object_set_new(o, "assumed", json_assumed(assumed));
    json_object_set_new(o, "buckets", json_buckets(plan->bucket_bytes));
    json_object_set_new(o, "at_peak", json_buckets(plan->at_peak));
    json_object_set_new(o, "optimizer_state_bytes", json_bytes(plan->optimizer_state_bytes));
    json_object_set_new(o, "fixed_bytes", json_bytes(plan->fixed_bytes));
    json_object_set_new(o, "sum_bytes", json_bytes(plan->sum_bytes));
    json_object_set_new(o, "peak_bytes", json_bytes(plan->peak_bytes));
    json_object_set_new(o, "peak_phase", json_string(phase));
    json_object_set_new(o, "arena_bytes", json_bytes(plan->arena_bytes));
    json_object_set_new(o, "bytes_per_param", json_real((double)plan->fixed_bytes / (double)plan->n_params));
    json_object_set_new(o, "optimizer_state_bytes_per_param",
                        json_real((double)plan->optimizer_state_bytes / (double)plan->n_params));
    const exceptions e = count_exceptions(plan);
    json_object_set_new(o, "float32_state_tensors", json_bytes(e.n_small + e.n_embeddings));
    json_object_set_new(o, "float32_state_values", json_bytes(e.small_elems + e.embedding_elems));
    json_object_set_new(o, "limit_bytes", json_bytes(limit_bytes));
    json_object_set_new(o, "limit_from", json_string(limit_from));
    json_object_set_new(o, "fits", json_boolean(plan->arena_bytes <= limit_bytes));
    return o;
}
