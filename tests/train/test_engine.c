/* SPDX-License-Identifier: MIT
 *
 * One step after another: bytes as planned, the same bits whatever the mode, and what happens to numbers that are not
 * finite.
 */
#include "train/fixture.h"

typedef struct bench {
    lst_plan *plan;
    lst_pool *pool;
    train_engine *engine;
} bench;

static bench open_bench(const lst_arch *arch, const lst_recipe *recipe)
{
    bench b = {0};
    OK(lst_plan_create(&b.plan, arch, recipe, err));
    OK(lst_pool_create(&b.pool, recipe->threads, err));
    OK(train_engine_create(&b.engine, b.plan, b.pool, 3, err));
    OK(train_engine_init_random(b.engine, 3, err));
    return b;
}

static void close_bench(bench *b)
{
    train_engine_destroy(b->engine);
    lst_pool_destroy(b->pool);
    lst_plan_destroy(b->plan);
}

/* A repeating pattern of tokens, some targets not counted. */
static void fill(bench *b, int64_t step)
{
    const lst_recipe *r = &b->plan->recipe;
    for (size_t micro = 0; micro < r->accumulation; micro++)
        for (size_t i = 0; i < r->batch * r->seq; i++) {
            model_ids(b->engine->model, micro)[i] = (int32_t)((i * 7 + micro * 3 + (size_t)step) % 50);
            model_targets(b->engine->model, micro)[i] = i % 9 == 4 ? MODEL_IGNORE : (int32_t)((i * 7 + 7) % 50);
        }
}

static train_step step_once(bench *b, int64_t step, double lr)
{
    train_step out;
    fill(b, step);
    OK(train_engine_step(b->engine, lr, &out, err));
    return out;
}

static lst_recipe small_recipe(void)
{
    lst_recipe r;
    lst_recipe_default(&r);
    r.batch = 2;
    r.seq = 12;
    r.accumulation = 2;
    r.loss_chunk = 8;
    r.clip_norm = 0;
    return r;
}

static void check_ledger(bench *b)
{
    const lst_ledger *ledger = &b->engine->ledger;
    for (int bucket = 0; bucket < LST_N_BUCKETS; bucket++)
        assert_int_equal(ledger->peak[bucket], b->plan->bucket_bytes[bucket]);
    assert_int_equal(ledger->peak_total, b->plan->peak_bytes);
    assert_int_equal(ledger->peak_phase, b->plan->peak_phase);
    for (int phase = 0; phase < b->plan->n_phases; phase++)
        assert_int_equal(ledger->phase_peak[phase], lst_plan_live(b->plan, phase, NULL));
}

/* Every rule, weight form, gradient mode and activation policy: what is held is what was planned, phase by phase. */
static void ledger_equals_plan(void **state)
{
    (void)state;
    lst_arch arch = small_arch();
    for (int rule = 0; rule < LST_N_RULES; rule++)
        for (int form = 0; form < LST_N_WEIGHT_FORMS; form++)
            for (int mode = 0; mode < LST_N_GRAD_MODES; mode++) {
                lst_recipe r = small_recipe();
                r.rule = (lst_rule)rule;
                lst_hyper_default(r.rule, &r.hyper);
                r.weights = (lst_weight_form)form;
                r.grad_mode = (lst_grad_mode)mode;
                r.grads = mode == LST_GRAD_KEEP ? lst_weight_form_codec(r.weights) : LST_CODEC_F32;
                r.activations = (lst_act_policy)((rule + form + mode) % LST_N_ACT_POLICIES);
                arch.tied = (form + mode) % 2 == 0;
                bench b = open_bench(&arch, &r);
                for (int i = 0; i < 2; i++)
                    (void)step_once(&b, i, 1e-3);
                model_enter(b.engine->model, lst_phase_save(b.plan->n_layers));
                check_ledger(&b);
                close_bench(&b);
            }
}

static uint64_t weights_hash(const bench *b)
{
    train_run run = {.engine = b->engine, .plan = b->plan};
    return state_hash(&run);
}

static uint64_t trained_hash(const lst_recipe *r, double *norm)
{
    lst_arch arch = small_arch();
    bench b = open_bench(&arch, r);
    for (int i = 0; i < 3; i++)
        *norm = step_once(&b, i, 1e-3).grad_norm;
    uint64_t hash = weights_hash(&b);
    close_bench(&b);
    return hash;
}

static void modes_policies_and_threads_end_in_the_same_bits(void **state)
{
    (void)state;
    lst_recipe r = small_recipe();
    double want_norm, norm;
    uint64_t want = trained_hash(&r, &want_norm);
    for (int mode = 0; mode < LST_N_GRAD_MODES; mode++)
        for (int policy = 0; policy < LST_N_ACT_POLICIES; policy++)
            for (size_t threads = 1; threads <= 3; threads++) {
                r.grad_mode = (lst_grad_mode)mode;
                r.activations = (lst_act_policy)policy;
                r.threads = threads;
                assert_true(trained_hash(&r, &norm) == want);
                assert_true(norm == want_norm);
            }
}

static void loss_falls(void **state)
{
    (void)state;
    lst_arch arch = small_arch();
    lst_recipe r = small_recipe();
    r.clip_norm = 1;
    bench b = open_bench(&arch, &r);
    double first = step_once(&b, 0, 1e-2).loss, last = first;
    for (int i = 1; i < 60; i++)
        last = step_once(&b, 0, 1e-2).loss;
    assert_true(first > 5 && last < 1);
    close_bench(&b);
}

static void clipping_scales_to_the_norm(void **state)
{
    (void)state;
    lst_arch arch = small_arch();
    lst_recipe r = small_recipe();
    r.clip_norm = 1e-3;
    bench b = open_bench(&arch, &r);
    train_step s = step_once(&b, 0, 1e-3);
    assert_true(s.grad_norm > 0.1);
    assert_true(fabs((double)s.clip * (s.grad_norm + 1e-6) - 1e-3) < 1e-9);
    close_bench(&b);
}

static size_t tensor_named(const bench *b, const char *name)
{
    for (size_t i = 0; i < b->engine->n_tensors; i++)
        if (strcmp(lst_optim_tensor(b->engine->optim, i)->name, name) == 0)
            return i;
    fail_msg("no tensor %s", name);
    return 0;
}

static void non_finite_steps_are_skipped_whole(void **state)
{
    (void)state;
    lst_arch arch = small_arch();
    for (int mode = 0; mode < LST_N_GRAD_MODES; mode++) {
        lst_recipe r = small_recipe();
        r.grad_mode = (lst_grad_mode)mode;
        bench b = open_bench(&arch, &r);
        (void)step_once(&b, 0, 1e-3);
        float *w = model_weight(b.engine->model, tensor_named(&b, "model.layers.1.mlp.up_proj.weight")), before = w[5];
        w[5] = NAN;
        uint64_t hash = weights_hash(&b);
        train_step s = step_once(&b, 1, 1e-3);
        assert_string_equal(s.skipped, "loss");
        assert_true(isnan(s.grad_norm) && isnan(s.loss));
        assert_true(weights_hash(&b) == hash);
        assert_int_equal(lst_optim_steps(b.engine->optim, 0), 1);
        assert_int_equal(lst_optim_begun(b.engine->optim), 1);
        assert_int_equal(b.engine->n_skipped, 1);
        w[5] = before;
        s = step_once(&b, 2, 1e-3);
        assert_null(s.skipped);
        assert_int_equal(lst_optim_steps(b.engine->optim, 0), 2);
        close_bench(&b);
    }
}

static void too_many_skips_in_a_row_end_the_run(void **state)
{
    (void)state;
    lst_arch arch = small_arch();
    lst_recipe r = small_recipe();
    bench b = open_bench(&arch, &r);
    *(float *)model_weight(b.engine->model, 0) = INFINITY;
    for (int i = 1; i < TRAIN_MAX_SKIPS; i++)
        (void)step_once(&b, i, 1e-3);
    train_step s;
    fill(&b, 0);
    FAILS(train_engine_step(b.engine, 1e-3, &s, err), LST_ERR_NONFINITE, "in a row");
    close_bench(&b);
}

static void set_all(const bench *b, const char *name, float value)
{
    size_t tensor = tensor_named(b, name), n = 1;
    const lst_tensor *t = lst_optim_tensor(b->engine->optim, tensor);
    for (size_t d = 0; d < t->n_dims; d++)
        n *= t->dims[d];
    float *w = model_weight(b->engine->model, tensor);
    for (size_t i = 0; i < n; i++)
        w[i] = value;
}

/* A finite loss whose gradient overflows on the way down: the residual stream holds the smallest subnormal, the final
 * norm multiplies by 1e30, and 1 / sqrt(eps) is 3e18, so that what reaches the layers is beyond float32. Head and final
 * norm have finite gradients and have moved by then. */
static bench overflowing(lst_grad_mode mode)
{
    lst_arch arch = small_arch();
    arch.tied = false;
    arch.norm_eps = 1e-37;
    lst_recipe r = small_recipe();
    r.grad_mode = mode;
    bench b = open_bench(&arch, &r);
    set_all(&b, "model.embed_tokens.weight", 1.5e-45f);
    set_all(&b, "model.norm.weight", 1e30f);
    for (int layer = 0; layer < 2; layer++) {
        char name[64];
        snprintf(name, sizeof name, "model.layers.%d.self_attn.o_proj.weight", layer);
        set_all(&b, name, 0);
        snprintf(name, sizeof name, "model.layers.%d.mlp.down_proj.weight", layer);
        set_all(&b, name, 0);
    }
    fill(&b, 0);
    return b;
}

static void released_non_finite_gradient_ends_the_run_by_name(void **state)
{
    (void)state;
    bench b = overflowing(LST_GRAD_RELEASE);
    train_step s;
    FAILS(train_engine_step(b.engine, 1e-3, &s, err), LST_ERR_NONFINITE, "model.layers.1.");
    close_bench(&b);
}

static void kept_non_finite_gradient_is_skipped_by_name(void **state)
{
    (void)state;
    bench b = overflowing(LST_GRAD_KEEP);
    uint64_t hash = weights_hash(&b);
    train_step s;
    OK(train_engine_step(b.engine, 1e-3, &s, err));
    assert_non_null(s.skipped);
    assert_true(isfinite(s.loss));
    assert_string_not_equal(s.skipped, "loss");
    assert_true(weights_hash(&b) == hash);
    close_bench(&b);
}

static void loss_scale_backs_off_and_grows_on(void **state)
{
    (void)state;
    lst_arch arch = small_arch();
    lst_recipe r = small_recipe();
    r.weights = LST_WEIGHT_F16_MASTER;
    r.grads = LST_CODEC_F16;
    r.loss_scale = true;
    bench b = open_bench(&arch, &r);
    b.engine->scale.scale = 1e30f; /* no f16 gradient survives that */
    int skipped = 0;
    train_step s;
    do {
        float scale = b.engine->scale.scale;
        s = step_once(&b, 0, 1e-3);
        skipped += s.skipped != NULL;
        assert_true(b.engine->scale.scale == (s.skipped ? scale / 2 : scale));
    } while (s.skipped && skipped < 99);
    assert_true(skipped > 30 && skipped < 99);
    assert_int_equal(lst_optim_steps(b.engine->optim, 0), 1);
    assert_true(isfinite(s.grad_norm) && s.grad_norm < 100);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ledger_equals_plan),
        cmocka_unit_test(modes_policies_and_threads_end_in_the_same_bits),
        cmocka_unit_test(loss_falls),
        cmocka_unit_test(clipping_scales_to_the_norm),
        cmocka_unit_test(non_finite_steps_are_skipped_whole),
        cmocka_unit_test(too_many_skips_in_a_row_end_the_run),
        cmocka_unit_test(released_non_finite_gradient_ends_the_run_by_name),
        cmocka_unit_test(kept_non_finite_gradient_is_skipped_by_name),
        cmocka_unit_test(loss_scale_backs_off_and_grows_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
