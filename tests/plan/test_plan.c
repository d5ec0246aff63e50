/* SPDX-License-Identifier: MIT
 *
 * The bytes of a plan: published numbers to the byte, buckets and phases that add up, levers and fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "leanstep/plan.h"

static lst_plan *plan_params(uint64_t n, const lst_recipe *recipe)
{
    lst_plan *plan;
    lst_error err;
    if (lst_plan_create_params(&plan, n, recipe, &err) != LST_OK)
        fail_msg("%s", err.message);
    return plan;
}

static lst_plan *plan_arch(const lst_arch *arch, const lst_recipe *recipe)
{
    lst_plan *plan;
    lst_error err;
    if (lst_plan_create(&plan, arch, recipe, &err) != LST_OK)
        fail_msg("%s", err.message);
    return plan;
}

static void recipe_of(lst_rule rule, lst_weight_form form, lst_recipe *out)
{
    lst_recipe_default(out);
    out->rule = rule;
    lst_hyper_default(rule, &out->hyper);
    out->weights = form;
    out->grads = lst_weight_form_codec(form);
}

static void seven_billion_bf16_adamw(void **state)
{
    (void)state;
    lst_recipe r;
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, &r);
    lst_plan *plan = plan_params(7000000000, &r);
    assert_int_equal(plan->bucket_bytes[LST_BUCKET_WEIGHTS], 14000000000);
    assert_int_equal(plan->bucket_bytes[LST_BUCKET_GRADIENTS], 14000000000);
    assert_int_equal(plan->bucket_bytes[LST_BUCKET_MASTER], 28000000000);
    assert_int_equal(plan->bucket_bytes[LST_BUCKET_EXP_AVG], 28000000000);
    assert_int_equal(plan->bucket_bytes[LST_BUCKET_EXP_AVG_SQ], 28000000000);
    assert_int_equal(plan->optimizer_state_bytes, 84000000000);
    assert_int_equal(plan->fixed_bytes, 112000000000);
    assert_int_equal(plan->peak_bytes, 112000000000);
    assert_int_equal(plan->sum_bytes, 112000000000);
    assert_true(plan->arena_bytes - plan->peak_bytes < 5 * 4096);
    lst_plan_destroy(plan);
}

static void state_bytes_per_parameter(void **state)
{
    (void)state;
    const struct {
        lst_rule rule;
        lst_weight_form form;
        uint64_t weights, grads, state;
    } rows[] = {
        {LST_RULE_SGD, LST_WEIGHT_F32, 4, 4, 0},           {LST_RULE_MOMENTUM, LST_WEIGHT_F32, 4, 4, 4},
        {LST_RULE_NESTEROV, LST_WEIGHT_F32, 4, 4, 4},      {LST_RULE_ADAM, LST_WEIGHT_F32, 4, 4, 8},
        {LST_RULE_ADAMW, LST_WEIGHT_F32, 4, 4, 8},         {LST_RULE_ADAM, LST_WEIGHT_BF16_MASTER, 2, 2, 12},
        {LST_RULE_ADAMW, LST_WEIGHT_F16_MASTER, 2, 2, 12}, {LST_RULE_ADAMW, LST_WEIGHT_SPLIT32, 2, 2, 10},
        {LST_RULE_SGD, LST_WEIGHT_BF16_NEAREST, 2, 2, 0},
    };
    const uint64_t n = 1540000000;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lst_recipe r;
        recipe_of(rows[i].rule, rows[i].form, &r);
        lst_plan *plan = plan_params(n, &r);
        assert_int_equal(plan->bucket_bytes[LST_BUCKET_WEIGHTS], rows[i].weights * n);
        assert_int_equal(plan->bucket_bytes[LST_BUCKET_GRADIENTS], rows[i].grads * n);
        assert_int_equal(plan->optimizer_state_bytes, rows[i].state * n);
        lst_plan_destroy(plan);
    }
    lst_recipe r;
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_F32, &r);
    lst_plan *plan = plan_params(n, &r);
    assert_int_equal(plan->optimizer_state_bytes, 12320000000);
    lst_plan_destroy(plan);
}

static void small_arch(lst_arch *out)
{
    lst_arch_default(LST_FAMILY_LLAMA, out);
    out->vocab = 999;
    out->hidden = 96;
    out->layers = 4;
    out->heads = 6;
    out->kv_heads = 2;
    out->head_dim = 16;
    out->ffn = 250;
    out->max_positions = 256;
}

/* Bytes a parameter of the formats in fewer bits: moments 1 + 1/32, 1 + 4/256, 1/2 + 1/16 bytes. */
static void formats_of_fewer_bits(void **state)
{
    (void)state;
    static const struct {
        uint64_t params;
        lst_weight_form weights;
        lst_codec codec;
        lst_grad_mode grads;
        uint64_t state_bytes, fixed_bytes;
    } rows[] = {
        {7000000000, LST_WEIGHT_BF16_MASTER, LST_CODEC_Q8, LST_GRAD_KEEP, 42437500000, 70437500000},
        {7000000000, LST_WEIGHT_BF16_MASTER, LST_CODEC_Q8_DYNAMIC, LST_GRAD_KEEP, 42218750000, 70218750000},
        {7000000000, LST_WEIGHT_SPLIT24, LST_CODEC_Q8, LST_GRAD_KEEP, 21437500000, 49437500000},
        {7000000000, LST_WEIGHT_SPLIT24, LST_CODEC_Q8, LST_GRAD_RELEASE, 21437500000, 35437500000},
        {7000000000, LST_WEIGHT_SPLIT24, LST_CODEC_Q4, LST_GRAD_RELEASE, 14875000000, 28875000000},
        {7000000000, LST_WEIGHT_BF16_SR, LST_CODEC_Q4, LST_GRAD_KEEP, 7875000000, 35875000000},
        {1540000000, LST_WEIGHT_BF16_MASTER, LST_CODEC_F32, LST_GRAD_KEEP, 18480000000, 24640000000},
        {1540000000, LST_WEIGHT_BF16_MASTER, LST_CODEC_Q8, LST_GRAD_KEEP, 9336250000, 15496250000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lst_recipe r;
        lst_error err = {.message = ""};
        lst_plan *plan = NULL;
        lst_recipe_default(&r);
        r.weights = rows[i].weights;
        r.state = rows[i].codec;
        r.grad_mode = rows[i].grads;
        r.grads = r.grad_mode == LST_GRAD_KEEP ? LST_CODEC_BF16 : LST_CODEC_F32;
        r.clip_norm = 0;
        if (lst_plan_create_params(&plan, rows[i].params, &r, &err) != LST_OK)
            fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(plan->optimizer_state_bytes, rows[i].state_bytes);
        assert_int_equal(plan->fixed_bytes, rows[i].fixed_bytes);
        lst_plan_destroy(plan);
    }
}

static void phases_add_up(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    small_arch(&arch);
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_F32, &r);
    r.seq = 64;
    lst_plan *plan = plan_arch(&arch, &r);
    uint64_t peak = 0, by_bucket[LST_N_BUCKETS];
    for (int phase = 0; phase < plan->n_phases; phase++) {
        uint64_t live = lst_plan_live(plan, phase, by_bucket), sum = 0;
        for (int b = 0; b < LST_N_BUCKETS; b++)
            sum += by_bucket[b];
        assert_int_equal(live, sum);
        peak = live > peak ? live : peak;
    }
    assert_int_equal(peak, plan->peak_bytes);
    assert_int_equal(lst_plan_live(plan, plan->peak_phase, NULL), peak);
    assert_true(plan->sum_bytes >= plan->peak_bytes);
    assert_int_equal(plan->fixed_bytes, 16 * lst_arch_params(&arch));
    lst_plan_destroy(plan);
}

static void every_tensor_has_its_buffers(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    small_arch(&arch);
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_SPLIT32, &r);
    r.seq = 64;
    lst_plan *plan = plan_arch(&arch, &r);
    for (size_t i = 0; i < lst_arch_tensor_count(&arch); i++) {
        lst_arch_tensor t;
        lst_arch_tensor_at(&arch, i, &t);
        const lst_buffer *weight = lst_plan_find(plan, LST_BUFFER_WEIGHT, -1, i);
        const lst_buffer *grad = lst_plan_find(plan, LST_BUFFER_GRADIENT, -1, i);
        assert_non_null(weight);
        assert_non_null(grad);
        assert_int_equal(weight->bytes, 2 * t.n_elems);
        assert_int_equal(grad->bytes, 2 * t.n_elems);
        for (int s = 0; s < 3; s++)
            assert_non_null(lst_plan_find(plan, LST_BUFFER_SLOT, s, i));
        assert_null(lst_plan_find(plan, LST_BUFFER_SLOT, 3, i));
    }
    assert_null(lst_plan_find(plan, LST_BUFFER_WEIGHT, -1, lst_arch_tensor_count(&arch)));
    lst_plan_destroy(plan);
}

static void lives_of_released_gradients(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    small_arch(&arch);
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_F32, &r);
    r.seq = 64;
    r.grad_mode = LST_GRAD_RELEASE;
    r.clip_norm = 0;
    for (int tied = 0; tied < 2; tied++) {
        arch.tied = tied;
        lst_plan *plan = plan_arch(&arch, &r);
        const lst_buffer *embed = lst_plan_find(plan, LST_BUFFER_EMBED_GRADIENT, -1, 0);
        const lst_buffer *head = lst_plan_find(plan, LST_BUFFER_HEAD_GRADIENT, -1, 0);
        const lst_buffer *up = lst_plan_find(plan, LST_BUFFER_LAYER_GRADIENT, -1, LST_ROLE_UP_W);
        assert_non_null(embed);
        assert_int_equal(embed->bytes, 4 * arch.vocab * arch.hidden);
        assert_int_equal(embed->first_phase,
                         tied ? lst_phase_loss(arch.layers) : lst_phase_embed_backward(arch.layers));
        assert_int_equal(embed->last_phase, lst_phase_embed_backward(arch.layers));
        assert_true((head == NULL) == tied);
        assert_non_null(up);
        assert_int_equal(up->first_phase, lst_phase_backward(arch.layers, arch.layers - 1));
        assert_int_equal(up->last_phase, lst_phase_backward(arch.layers, 0));
        assert_null(lst_plan_find(plan, LST_BUFFER_GRADIENT, -1, 0));
        assert_int_equal(plan->fixed_bytes, 12 * lst_arch_params(&arch));
        lst_plan_destroy(plan);
    }
}

static void phase_names(void **state)
{
    (void)state;
    char name[64];
    lst_phase_name(3, lst_phase_backward(3, 2), name, sizeof name);
    assert_string_equal(name, "backward of layer 2");
    lst_phase_name(3, lst_phase_forward(0), name, sizeof name);
    assert_string_equal(name, "forward of layer 0");
    assert_int_equal(lst_phase_loss(3) + 1, lst_phase_backward(3, 2));
    assert_int_equal(lst_phase_backward(3, 0) + 1, lst_phase_embed_backward(3));
    assert_int_equal(lst_phase_save(3) + 1, lst_phase_count(3));
}

static void more_is_never_less(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    uint64_t before = 0;
    small_arch(&arch);
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_F32, &r);
    for (r.seq = 8; r.seq <= 256; r.seq *= 2) {
        lst_plan *plan = plan_arch(&arch, &r);
        assert_true(plan->peak_bytes > before);
        before = plan->peak_bytes;
        lst_plan_destroy(plan);
    }
    uint64_t by_policy[LST_N_ACT_POLICIES];
    for (int policy = 0; policy < LST_N_ACT_POLICIES; policy++) {
        r.seq = 256;
        r.activations = (lst_act_policy)policy;
        lst_plan *plan = plan_arch(&arch, &r);
        by_policy[policy] = plan->peak_bytes;
        lst_plan_destroy(plan);
    }
    assert_true(by_policy[LST_ACT_POINTWISE] < by_policy[LST_ACT_KEEP]);
    assert_true(by_policy[LST_ACT_INPUTS] < by_policy[LST_ACT_POINTWISE]);
}

static void levers_say_what_they_save(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    lst_error err;
    lst_lever levers[16];
    size_t n = 16;
    small_arch(&arch);
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, &r);
    r.seq = 256;
    lst_plan *plan = plan_arch(&arch, &r);
    assert_int_equal(lst_plan_levers(plan, levers, &n, &err), LST_OK);
    assert_true(n >= 5);
    for (size_t i = 0; i < n; i++) {
        lst_plan *pulled = plan_arch(&arch, &levers[i].recipe);
        assert_int_equal(pulled->arena_bytes, levers[i].arena_bytes);
        assert_int_equal(plan->arena_bytes - levers[i].saves, levers[i].arena_bytes);
        assert_true(levers[i].option[0] == '-' && levers[i].price[0] && levers[i].what[0]);
        assert_true(i == 0 || levers[i - 1].saves >= levers[i].saves);
        lst_plan_destroy(pulled);
    }
    lst_plan_destroy(plan);
}

static void fit_finds_the_least_harm(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r, found;
    lst_error err;
    small_arch(&arch);
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_F32, &r);
    r.seq = 256;
    lst_plan *plan = plan_arch(&arch, &r);
    assert_int_equal(lst_plan_fit(plan, plan->arena_bytes, &found, &err), LST_OK);
    assert_int_equal(found.activations, LST_ACT_KEEP);
    assert_int_equal(lst_plan_fit(plan, plan->arena_bytes - 1, &found, &err), LST_OK);
    assert_int_equal(found.activations, LST_ACT_POINTWISE); /* the first lever that saves a byte, and no other */
    assert_int_equal(found.grad_mode, LST_GRAD_KEEP);
    assert_int_equal(found.seq, 256);
    for (uint64_t limit = plan->arena_bytes; limit > plan->arena_bytes / 2; limit -= plan->arena_bytes / 40) {
        lst_status status = lst_plan_fit(plan, limit, &found, &err);
        lst_plan *fitting = plan_arch(&arch, &found);
        assert_true((status == LST_OK) == (fitting->arena_bytes <= limit));
        lst_plan_destroy(fitting);
    }
    assert_int_equal(lst_plan_fit(plan, 1000, &found, &err), LST_ERR_MEMORY);
    lst_plan *smallest = plan_arch(&arch, &found);
    assert_true(smallest->arena_bytes < plan->arena_bytes);
    lst_plan_destroy(smallest);
    lst_plan_destroy(plan);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    lst_error err;
    small_arch(&arch);
    const char *words[] = {"--grads keep", "no effect", "f16", "256 positions", "--batch 0", "--clip"};
    for (int i = 0; i < 6; i++) {
        recipe_of(LST_RULE_ADAMW, LST_WEIGHT_F32, &r);
        r.seq = 64;
        if (i <= 1) {
            r.grad_mode = LST_GRAD_RELEASE;
            r.clip_norm = i == 0 ? 1 : 0;
            r.grads = i == 0 ? LST_CODEC_F32 : LST_CODEC_BF16;
        }
        r.loss_scale = i == 2;
        r.seq = i == 3 ? 257 : r.seq;
        r.batch = i == 4 ? 0 : r.batch;
        r.clip_norm = i == 5 ? -1 : r.clip_norm;
        err.message[0] = 0;
        assert_int_equal(lst_recipe_check(&r, &arch, &err), LST_ERR_ARGUMENT);
        if (!strstr(err.message, words[i]))
            fail_msg("the message \"%s\" does not say \"%s\"", err.message, words[i]);
    }
    recipe_of(LST_RULE_SGD, LST_WEIGHT_F32, &r);
    r.hyper.amsgrad = true;
    assert_int_equal(lst_recipe_check(&r, NULL, &err), LST_ERR_ARGUMENT);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    lst_arch arch;
    lst_recipe r;
    small_arch(&arch);
    recipe_of(LST_RULE_ADAMW, LST_WEIGHT_F32, &r);
    r.seq = 64;
    bool struck = true;
    uint64_t n = 1;
    for (; struck; n++) {
        lst_plan *plan = NULL;
        lst_error err;
        lst__fault_arm(n);
        lst_status status = lst_plan_create(&plan, &arch, &r, &err);
        struck = lst__fault_struck();
        lst__fault_arm(0);
        assert_int_equal(status, struck ? LST_ERR_MEMORY : LST_OK);
        lst_plan_destroy(plan);
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(seven_billion_bf16_adamw),
                                       cmocka_unit_test(state_bytes_per_parameter),
                                       cmocka_unit_test(phases_add_up),
                                       cmocka_unit_test(every_tensor_has_its_buffers),
                                       cmocka_unit_test(lives_of_released_gradients),
                                       cmocka_unit_test(phase_names),
                                       cmocka_unit_test(more_is_never_less),
                                       cmocka_unit_test(formats_of_fewer_bits),
                                       cmocka_unit_test(levers_say_what_they_save),
                                       cmocka_unit_test(fit_finds_the_least_harm),
                                       cmocka_unit_test(contradictions_are_refused),
                                       cmocka_unit_test(memory_may_run_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
