/* SPDX-License-Identifier: MIT
 *
 * Norms, clipping, finiteness of gradients, loss scaling and accumulation.
 */
#include "optim/fixture.h"

#include <math.h>

/* Sum of squares in long double, element by element: the truth within 1e-15. */
static double true_sum(const float *g, size_t n)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (long double)g[i] * (long double)g[i];
    return (double)sum;
}

static void norms_do_not_depend_on_threads(void **state)
{
    (void)state;
    const size_t n = 200001;
    float *g = fixture_memory(n * sizeof *g);
    for (size_t i = 0; i < n; i++)
        g[i] = fixture_value(1, 0, i);
    double alone, together;
    bool finite;
    lst_grad_sum_squares(g, LST_CODEC_F32, n, 0.37f, NULL, &alone, &finite);
    assert_true(finite);
    for (size_t threads = 1; threads <= 5; threads++) {
        lst_pool *pool;
        MUST(lst_pool_create(&pool, threads, ERR));
        lst_grad_sum_squares(g, LST_CODEC_F32, n, 0.37f, pool, &together, &finite);
        assert_true(alone == together);
        assert_true(lst_grad_max_abs(g, LST_CODEC_F32, n, 0.37f, pool) ==
                    lst_grad_max_abs(g, LST_CODEC_F32, n, 0.37f, NULL));
        lst_pool_destroy(pool);
    }
    lst_grad_sum_squares(g, LST_CODEC_F32, n, 1, NULL, &alone, &finite);
    assert_true(fabs(alone / true_sum(g, n) - 1) < 1e-13);
    free(g);
}

/* One norm over float32, bf16 and f16 gradients of the same values. */
static void norms_of_mixed_codecs(void **state)
{
    (void)state;
    float wide[257];
    uint16_t bf16[257], f16[257];
    for (size_t i = 0; i < 257; i++) {
        wide[i] = (i % 2 ? -1.0f : 1.0f) * ldexpf(1.0f, (int)(i % 11) - 5); /* exact in all three */
        uint32_t bits;
        memcpy(&bits, &wide[i], 4);
        bf16[i] = (uint16_t)(bits >> 16);
        f16[i] = (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 127 + 15) << 10));
    }
    double a, b, c;
    bool finite;
    lst_grad_sum_squares(wide, LST_CODEC_F32, 257, 0.5f, NULL, &a, &finite);
    lst_grad_sum_squares(bf16, LST_CODEC_BF16, 257, 0.5f, NULL, &b, &finite);
    lst_grad_sum_squares(f16, LST_CODEC_F16, 257, 0.5f, NULL, &c, &finite);
    assert_true(a == b && b == c && a > 0);
    assert_true(lst_grad_max_abs(f16, LST_CODEC_F16, 257, 0.5f, NULL) == 16.0);
}

static void norms_beyond_float32(void **state)
{
    (void)state;
    const float large[3] = {1e30f, -2e30f, 2e30f}, small[3] = {1e-40f, 2e-40f, -2e-40f};
    double sum;
    bool finite;
    lst_grad_sum_squares(large, LST_CODEC_F32, 3, 1, NULL, &sum, &finite);
    assert_true(finite && fabs(sqrt(sum) / 3e30 - 1) < 1e-6);
    lst_grad_sum_squares(small, LST_CODEC_F32, 3, 1, NULL, &sum, &finite);
    assert_true(finite && fabs(sqrt(sum) / 3e-40 - 1) < 1e-4);
    lst_grad_sum_squares(small, LST_CODEC_F32, 0, 1, NULL, &sum, &finite);
    assert_true(finite && sum == 0);
}

static void non_finite_values_are_found_anywhere(void **state)
{
    (void)state;
    enum { COUNT = 70000 };
    float *g = calloc(COUNT, sizeof *g);
    static const size_t places[] = {0, 1, 1023, 1024, 32767, 32768, COUNT - 1};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t b = 0; b < 3; b++) {
            double sum;
            bool finite;
            g[places[p]] = bad[b];
            lst_grad_sum_squares(g, LST_CODEC_F32, COUNT, 1e-30f, NULL, &sum, &finite);
            assert_false(finite);
            const double largest = lst_grad_max_abs(g, LST_CODEC_F32, COUNT, 1, NULL);
            assert_true(b == 0 ? isnan(largest) : isinf(largest));
            g[places[p]] = 0;
            lst_grad_sum_squares(g, LST_CODEC_F32, COUNT, 1, NULL, &sum, &finite);
            assert_true(finite && sum == 0);
        }
    /* Finite before unscaling is what counts: an overflow by unscaling is no overflow of the backward pass. */
    double sum;
    bool finite;
    g[5] = 3e38f;
    lst_grad_sum_squares(g, LST_CODEC_F32, COUNT, 4, NULL, &sum, &finite);
    assert_true(finite && isinf(sum));
    free(g);
}

static void the_first_bad_tensor_is_named(void **state)
{
    (void)state;
    lst_hyper h;
    lst_hyper_default(LST_RULE_ADAMW, &h);
    const lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    fixture f;
    fixture_create(&f, &options);
    fixture_grads(&f, 1);
    const void *grads[FIXTURE_TENSORS] = {f.grads[0], f.grads[1], NULL, f.grads[3]};
    lst_grads_report report;
    lst_error err = {.message = ""};
    MUST(lst_grads_check(f.optim, grads, &report, ERR));
    assert_true(report.n_tensors == 0 && report.first_tensor == SIZE_MAX);
    f.grads[2][0] = NAN; /* has no gradient in this step */
    f.grads[1][17] = INFINITY;
    f.grads[3][0] = NAN;
    assert_int_equal(lst_grads_check(f.optim, grads, &report, &err), LST_ERR_NONFINITE);
    assert_true(report.n_tensors == 2 && report.first_tensor == 1);
    assert_non_null(strstr(err.message, "odd"));
    assert_non_null(strstr(err.message, "2 of 4"));
    for (size_t i = 0; i < FIXTURE_TENSORS; i++) /* a check changes nothing */
        assert_memory_equal(f.weights[i], f.init[i], f.n_elems[i] * sizeof(float));
    assert_int_equal(lst_optim_begun(f.optim), 0);
    fixture_destroy(&f);
}

static void clip_coefficients(void **state)
{
    (void)state;
    assert_true(lst_clip_coef(0, 1) == 1.0f);
    assert_true(lst_clip_coef(0.5, 1) == 1.0f);
    assert_true(lst_clip_coef(1, 1) < 1.0f && lst_clip_coef(1, 1) > 0.999998f); /* the 1e-6 */
    assert_true(lst_clip_coef(INFINITY, 1) == 0.0f);
    assert_true(isnan(lst_clip_coef(NAN, 1)));
    assert_true(lst_clip_coef(4, 1) == (1.0f / (4.0f + 1e-6f)) * 1.0f);
    assert_true(lst_clip_coef(10, 0) == 0.0f);
}

/* Two optimizers of one scaler: one finds an overflow and skips whole, the other steps; the scale halves all the
 * same. */
static void one_optimizer_skips(void **state)
{
    (void)state;
    lst_hyper h;
    lst_hyper_default(LST_RULE_ADAMW, &h);
    const lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    lst_loss_scale scaler;
    lst_loss_scale_default(&scaler);
    fixture f[2];
    bool found = false;
    for (size_t k = 0; k < 2; k++) {
        fixture_create(&f[k], &options);
        fixture_grads(&f[k], 1);
        f[k].grads[1][3] = k == 0 ? INFINITY : 1.0f;
        const void *grads[FIXTURE_TENSORS] = {f[k].grads[0], f[k].grads[1], f[k].grads[2], f[k].grads[3]};
        const bool bad = lst_grads_check(f[k].optim, grads, NULL, NULL) != LST_OK;
        found = found || bad;
        if (!bad)
            MUST(lst_optim_step(f[k].optim, grads, (lst_grad_scale){lst_loss_scale_unscale(&scaler), 1}, ERR));
    }
    lst_loss_scale_update(&scaler, found);
    assert_true(scaler.scale == 32768.0f && scaler.growth_tracker == 0);
    assert_true(lst_optim_steps(f[0].optim, 0) == 0 && lst_optim_steps(f[1].optim, 0) == 1);
    assert_memory_equal(f[0].weights[0], f[0].init[0], f[0].n_elems[0] * sizeof(float));
    assert_true(memcmp(f[1].weights[0], f[1].init[0], f[1].n_elems[0] * sizeof(float)) != 0);
    fixture_destroy(&f[0]);
    fixture_destroy(&f[1]);
}

static void the_scale_grows_at_exactly_2000(void **state)
{
    (void)state;
    lst_loss_scale s;
    lst_loss_scale_default(&s);
    for (int i = 1; i < 2000; i++)
        lst_loss_scale_update(&s, false);
    assert_true(s.scale == 65536.0f && s.growth_tracker == 1999);
    lst_loss_scale_update(&s, false);
    assert_true(s.scale == 131072.0f && s.growth_tracker == 0);
    s.scale = ldexpf(1, 127);
    s.growth_tracker = 1999;
    lst_loss_scale_update(&s, false);
    assert_true(s.scale == ldexpf(1, 127) && s.growth_tracker == 0);
    assert_true(lst_loss_scale_unscale(&s) == ldexpf(1, -127));
}

/* k micro-batches summed, then clipped once, against the whole at once: equal within float32's rounding. */
static void accumulation_equals_one_batch(void **state)
{
    (void)state;
    enum { PARTS = 8, COUNT = 4096 };
    float *sum = calloc(COUNT, sizeof *sum);
    double *whole = calloc(COUNT, sizeof *whole);
    for (uint64_t part = 0; part < PARTS; part++)
        for (size_t i = 0; i < COUNT; i++) {
            const float g = fixture_value(part, 0, i) / PARTS;
            sum[i] += g;
            whole[i] += (double)g;
        }
    double squares, want = 0;
    bool finite;
    lst_grad_sum_squares(sum, LST_CODEC_F32, COUNT, 1, NULL, &squares, &finite);
    for (size_t i = 0; i < COUNT; i++)
        want += whole[i] * whole[i];
    assert_true(fabs(sqrt(squares / want) - 1) < 1e-6);
    free(sum);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_do_not_depend_on_threads),
        cmocka_unit_test(norms_of_mixed_codecs),
        cmocka_unit_test(norms_beyond_float32),
        cmocka_unit_test(non_finite_values_are_found_anywhere),
        cmocka_unit_test(the_first_bad_tensor_is_named),
        cmocka_unit_test(clip_coefficients),
        cmocka_unit_test(one_optimizer_skips),
        cmocka_unit_test(the_scale_grows_at_exactly_2000),
        cmocka_unit_test(accumulation_equals_one_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
