/* SPDX-License-Identifier: MIT
 *
 * Where optimizers go wrong in the corners: the first step, degenerate hyper-parameters, zero and absent gradients,
 * overflow, and step counts.
 */
#include "optim/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reduced.h"

/* One tensor of a few values on the stack, stepped once or often. */
enum { N = 6 };

typedef struct toy {
    lst_optim *optim;
    float w[N], g[N];
    _Alignas(64) unsigned char block[8192];
} toy;

static void toy_create(toy *t, lst_rule rule, const lst_hyper *h)
{
    const lst_tensor tensor = {.name = "w", .n_dims = 1, .dims = {N}};
    const lst_optim_options options = fixture_options(rule, h, 1);
    memset(t, 0, sizeof *t);
    MUST(lst_optim_create(&t->optim, &options, &tensor, 1, ERR));
    assert_true(lst_optim_block_bytes(t->optim) <= sizeof t->block);
    MUST(lst_optim_bind(t->optim, t->block, sizeof t->block, ERR));
    MUST(lst_optim_bind_weights(t->optim, 0, t->w, ERR));
    MUST(lst_optim_reset(t->optim, ERR));
}

static void toy_step(toy *t)
{
    const void *grads[1] = {t->g};
    MUST(lst_optim_step(t->optim, grads, (lst_grad_scale){1, 1}, ERR));
}

static float *slot(const toy *t, size_t k)
{
    return lst_optim_slot(t->optim, 0, k)->memory;
}

static lst_hyper defaults(lst_rule rule)
{
    lst_hyper h;
    lst_hyper_default(rule, &h);
    return h;
}

/* 1 - beta and beta^t belong together: at t = 1 the step is lr * sign(g) whatever the gradient's size. */
static void first_adamw_step_is_lr(void **state)
{
    (void)state;
    static const double beta2s[] = {0.95, 0.999, 0.9999};
    for (size_t b = 0; b < 3; b++) {
        lst_hyper h = defaults(LST_RULE_ADAMW);
        h.beta2 = beta2s[b];
        h.weight_decay = 0;
        toy t;
        toy_create(&t, LST_RULE_ADAMW, &h);
        static const float g[N] = {1e3f, -1e3f, 1.0f, -0.01f, 0.5f, 3.0f};
        memcpy(t.g, g, sizeof g);
        toy_step(&t);
        for (size_t i = 0; i < N; i++)
            assert_true(fabs((double)t.w[i] + copysign(1e-3, (double)g[i])) <
                        3e-6 * 1e-3 + 1e-3 * 1e-8 / fabs((double)g[i]));
        lst_optim_destroy(t.optim);
    }
}

/* Late step counts: the corrections become 1; a step count far beyond float32's integers still counts. */
static void large_step_counts(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.weight_decay = 0;
    toy t;
    toy_create(&t, LST_RULE_ADAMW, &h);
    MUST(lst_optim_set_steps(t.optim, 0, (int64_t)1 << 40, ERR));
    for (size_t i = 0; i < N; i++) {
        slot(&t, 0)[i] = t.g[i] = 0.25f;
        slot(&t, 1)[i] = 0.0625f;
    }
    toy_step(&t);
    assert_true(lst_optim_steps(t.optim, 0) == ((int64_t)1 << 40) + 1);
    for (size_t i = 0; i < N; i++) /* m = 0.25, sqrt(v) = 0.25 */
        assert_true(fabs((double)t.w[i] + 1e-3) < 1e-9);
    lst_optim_destroy(t.optim);
}

static void betas_of_zero(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.beta1 = h.beta2 = 0;
    h.weight_decay = 0;
    toy t;
    toy_create(&t, LST_RULE_ADAMW, &h);
    for (int step = 1; step <= 3; step++) {
        for (size_t i = 0; i < N; i++)
            t.g[i] = (float)(step * (i % 2 ? 1 : -1)) * 0.3f;
        toy_step(&t);
        for (size_t i = 0; i < N; i++) {
            assert_true(slot(&t, 0)[i] == t.g[i]);
            assert_true(slot(&t, 1)[i] == t.g[i] * t.g[i]);
        }
    }
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(fabs((double)t.w[i]) - 3e-3) < 1e-8);
    lst_optim_destroy(t.optim);
}

static void lr_zero_moves_only_the_moments(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++) {
        lst_hyper h = defaults((lst_rule)rule);
        h.lr = 0;
        h.weight_decay = 0.1;
        fixture f;
        const lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
        fixture_create(&f, &options);
        fixture_step(&f, 1);
        for (size_t i = 0; i < FIXTURE_TENSORS; i++)
            assert_memory_equal(f.weights[i], f.init[i], f.n_elems[i] * sizeof(float));
        if (lst_optim_slot_count(f.optim, 0) > 0 && rule != LST_RULE_LARS) /* LARS has lr inside its buffer */
            assert_true(((const float *)lst_optim_slot(f.optim, 0, 0)->memory)[0] != 0);
        fixture_destroy(&f);
    }
}

/* Decay beyond 1 overshoots, as the formula says; it is neither clamped nor an error. */
static void huge_decay(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.lr = 1;
    h.weight_decay = 1.5;
    toy t;
    toy_create(&t, LST_RULE_ADAMW, &h);
    t.w[0] = 4.0f;
    toy_step(&t); /* no gradient: decay alone */
    assert_true(t.w[0] == -2.0f);
    lst_optim_destroy(t.optim);
}

static void changing_lr_rescales_all_of_the_momentum(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_MOMENTUM);
    h.lr = 1;
    h.momentum = 0.5;
    toy t;
    toy_create(&t, LST_RULE_MOMENTUM, &h);
    t.g[0] = 1;
    toy_step(&t); /* b = 1, w = -1 */
    MUST(lst_optim_set_lr(t.optim, 0, 0.125, ERR));
    toy_step(&t); /* b = 1.5, w = -1 - 0.125*1.5 */
    assert_true(t.w[0] == -1.1875f);
    lst_optim_destroy(t.optim);
}

static void eps_zero(void **state)
{
    (void)state;
    static const lst_rule rules[] = {LST_RULE_ADAM, LST_RULE_ADAMW};
    for (size_t r = 0; r < 2; r++)
        for (int amsgrad = 0; amsgrad < 2; amsgrad++) {
            lst_hyper h = defaults(rules[r]);
            h.eps = 0;
            h.weight_decay = 0;
            h.amsgrad = amsgrad;
            toy t;
            toy_create(&t, rules[r], &h);
            t.w[0] = t.w[1] = 1;
            t.g[1] = 2;
            for (int step = 0; step < 3; step++)
                toy_step(&t);
            assert_true(t.w[0] == 1.0f); /* 0 / 0 is no step */
            assert_true(fabs((double)t.w[1] - (1 - 3e-3)) < 1e-6);
            lst_optim_destroy(t.optim);
        }
}

/* As PyTorch: a square that underflows leaves m over eps, one that overflows freezes the element. */
static void squares_that_leave_the_range(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.weight_decay = 0;
    toy t;
    toy_create(&t, LST_RULE_ADAMW, &h);
    t.g[0] = 1e-25f;
    t.g[1] = 1e30f;
    toy_step(&t);
    assert_true(slot(&t, 1)[0] == 0.0f);
    assert_true(fabs((double)t.w[0] / (-1e-3 * 1e-25 / 1e-8) - 1) < 1e-5);
    assert_true(isinf(slot(&t, 1)[1]) && t.w[1] == 0.0f);
    lst_optim_destroy(t.optim);
}

/* 10,000 steps without a gradient: nothing moves, in any rule and any weight form; nor does an element whose own
 * gradient is always zero beside others. */
static void zero_gradients_never_move_a_weight(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++)
        for (unsigned form = 0; form < LST_N_WEIGHT_FORMS; form++) {
            const lst_tensor tensor = {.name = "w", .n_dims = 2, .dims = {8, 16}};
            lst_hyper h = defaults((lst_rule)rule);
            h.weight_decay = 0;
            lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
            options.weights = (lst_weight_form)form;
            lst_optim *optim;
            _Alignas(64) static unsigned char block[65536], weights[512], scratch[8192];
            float init[128], now[128], g[128] = {0};
            MUST(lst_optim_create(&optim, &options, &tensor, 1, ERR));
            assert_true(lst_optim_block_bytes(optim) <= sizeof block);
            MUST(lst_optim_bind(optim, block, sizeof block, ERR));
            assert_true(lst_optim_scratch_bytes(optim) <= sizeof scratch);
            MUST(lst_optim_bind_scratch(optim, scratch, sizeof scratch, ERR));
            MUST(lst_optim_bind_weights(optim, 0, weights, ERR));
            memset(weights, 0, sizeof weights);
            MUST(lst_optim_reset(optim, ERR));
            for (size_t i = 0; i < 128; i++)
                now[i] = fixture_value(3, 0, i);
            MUST(lst_optim_set_weights_f32(optim, 0, now, ERR));
            MUST(lst_optim_get_weights_f32(optim, 0, init, ERR)); /* as the form holds them */
            const void *grads[1] = {g};
            for (int step = 0; step < tests_count(10000, 500); step++)
                MUST(lst_optim_step(optim, grads, (lst_grad_scale){1, 1}, ERR));
            MUST(lst_optim_get_weights_f32(optim, 0, now, ERR));
            assert_memory_equal(now, init, sizeof init);
            for (int step = 0; step < 100; step++) {
                g[0] = 1.0f + (float)step;
                g[70] = step % 2 ? 1e4f : -1e-4f;
                MUST(lst_optim_step(optim, grads, (lst_grad_scale){1, 1}, ERR));
            }
            MUST(lst_optim_get_weights_f32(optim, 0, now, ERR));
            assert_true(form == LST_WEIGHT_BF16_NEAREST || now[0] != init[0]);
            for (size_t i = 0; i < 128; i++)
                if (i != 0 && i != 70 && rule != LST_RULE_MUON) /* Muon turns the whole matrix */
                    assert_true(now[i] == init[i]);
            lst_optim_destroy(optim);
        }
}

/* A missing gradient: no decay, no count. A zero gradient: both. */
static void missing_is_not_zero(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.lr = 0.5;
    h.weight_decay = 0.5;
    toy t;
    toy_create(&t, LST_RULE_ADAMW, &h);
    t.w[0] = 1;
    const void *none[1] = {NULL};
    MUST(lst_optim_step(t.optim, none, (lst_grad_scale){1, 1}, ERR));
    assert_true(t.w[0] == 1.0f && lst_optim_steps(t.optim, 0) == 0 && lst_optim_begun(t.optim) == 1);
    toy_step(&t);
    assert_true(t.w[0] == 0.75f && lst_optim_steps(t.optim, 0) == 1);
    lst_optim_destroy(t.optim);
}

/* v decays slowly after a spike; the sign of an alternating gradient cancels in m. */
static void spike_and_alternation(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.weight_decay = 0;
    toy t;
    toy_create(&t, LST_RULE_ADAMW, &h);
    for (int step = 1; step <= 1000; step++) {
        t.g[0] = step == 1 ? 1e4f : 1.0f;
        t.g[1] = step % 2 ? 1.0f : -1.0f;
        toy_step(&t);
    }
    const double v = 0.001 * 1e8 * pow(0.999, 999) + 1 - pow(0.999, 999);
    assert_true(fabs((double)slot(&t, 1)[0] / v - 1) < 1e-4);
    assert_true(fabs((double)slot(&t, 0)[1]) < 0.06);
    assert_true(fabs((double)t.w[1]) < 0.1);
    lst_optim_destroy(t.optim);
}

static void dampening_spares_the_first_use(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_MOMENTUM);
    h.lr = 1;
    h.momentum = 0.5;
    h.dampening = 0.75;
    toy t;
    toy_create(&t, LST_RULE_MOMENTUM, &h);
    memset(slot(&t, 0), 0x7f, N * sizeof(float)); /* what the buffer held does not matter */
    t.g[0] = 2;
    toy_step(&t);
    assert_true(slot(&t, 0)[0] == 2.0f && t.w[0] == -2.0f);
    toy_step(&t); /* 0.5*2 + 0.25*2 */
    assert_true(slot(&t, 0)[0] == 1.5f && t.w[0] == -3.5f);
    lst_optim_destroy(t.optim);
}

static void nesterov_looks_ahead_at_once(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_NESTEROV);
    h.lr = 1;
    h.momentum = 0.5;
    toy t;
    toy_create(&t, LST_RULE_NESTEROV, &h);
    t.g[0] = 2;
    toy_step(&t); /* b = 2; 2 + 0.5*2 */
    assert_true(t.w[0] == -3.0f);
    toy_step(&t); /* b = 3; 2 + 0.5*3 */
    assert_true(t.w[0] == -6.5f);
    lst_optim_destroy(t.optim);
}

/* With momentum from the middle of a run (as after a checkpoint), the buffer goes on from where it is. */
static void momentum_goes_on_after_a_resume(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_MOMENTUM);
    h.lr = 1;
    h.momentum = 0.5;
    toy t;
    toy_create(&t, LST_RULE_MOMENTUM, &h);
    slot(&t, 0)[0] = 4;
    MUST(lst_optim_set_steps(t.optim, 0, 7, ERR));
    t.g[0] = 1;
    toy_step(&t);
    assert_true(slot(&t, 0)[0] == 3.0f && t.w[0] == -3.0f);
    lst_optim_destroy(t.optim);
}

/* More than 2^31 elements. The weights are the same 64 MiB mapped again and again, except for the last ones, so the
 * test needs little memory; single-threaded, because the maps share bytes. */
static void more_than_2_to_31_elements(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* minutes under a sanitizer, which sees nothing more in the last element than in the first */
#endif
#ifdef LEANSTEP_TSAN
    skip(); /* its shadow memory would take four times the 8 GiB of addresses */
#endif
    if (tests_reduced())
        skip(); /* minutes, for nothing that the plain run does not show */
    const size_t piece = (size_t)64 << 20, n_pieces = 129, tail = 4096;
    const size_t n_elems = n_pieces * (piece / 4) + tail / 4;
    const int fd = memfd_create("weights", 0), tail_fd = memfd_create("tail", 0);
    assert_true(fd >= 0 && tail_fd >= 0 && ftruncate(fd, (off_t)piece) == 0 && ftruncate(tail_fd, (off_t)tail) == 0);
    char *w = mmap(NULL, n_pieces * piece + tail, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(w != MAP_FAILED);
    for (size_t i = 0; i <= n_pieces; i++) {
        const int from = i < n_pieces ? fd : tail_fd;
        const size_t size = i < n_pieces ? piece : tail;
        if (mmap(w + i * piece, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, from, 0) == MAP_FAILED)
            fail_msg("cannot map piece %zu", i);
    }
    lst_hyper h = defaults(LST_RULE_SGD);
    h.lr = 0.5;
    const lst_optim_options options = fixture_options(LST_RULE_SGD, &h, 1);
    const lst_tensor tensor = {.name = "huge", .n_dims = 1, .dims = {n_elems}};
    lst_optim *optim;
    MUST(lst_optim_create(&optim, &options, &tensor, 1, ERR));
    MUST(lst_optim_bind(optim, NULL, 0, ERR));
    MUST(lst_optim_bind_weights(optim, 0, w, ERR));
    MUST(lst_optim_reset(optim, ERR));
    float *last = (float *)(w + n_pieces * piece), *shared = (float *)w;
    for (size_t i = 0; i < tail / 4; i++)
        last[i] = 2.0f;
    for (size_t i = 0; i < piece / 4; i += 1024)
        shared[i] = 1.0f;
    const void *grads[1] = {w}; /* its own gradient: each visit halves a weight */
    MUST(lst_optim_step(optim, grads, (lst_grad_scale){1, 1}, ERR));
    for (size_t i = 0; i < tail / 4; i++)
        assert_true(last[i] == 1.0f); /* visited once */
    for (size_t i = 0; i < piece / 4; i += 1024)
        assert_true(shared[i] == ldexpf(1.0f, -(int)n_pieces)); /* visited once by each piece */
    lst_optim_destroy(optim);
    munmap(w, n_pieces * piece + tail);
    close(fd);
    close(tail_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_adamw_step_is_lr),
        cmocka_unit_test(large_step_counts),
        cmocka_unit_test(betas_of_zero),
        cmocka_unit_test(lr_zero_moves_only_the_moments),
        cmocka_unit_test(huge_decay),
        cmocka_unit_test(changing_lr_rescales_all_of_the_momentum),
        cmocka_unit_test(eps_zero),
        cmocka_unit_test(squares_that_leave_the_range),
        cmocka_unit_test(zero_gradients_never_move_a_weight),
        cmocka_unit_test(missing_is_not_zero),
        cmocka_unit_test(spike_and_alternation),
        cmocka_unit_test(dampening_spares_the_first_use),
        cmocka_unit_test(nesterov_looks_ahead_at_once),
        cmocka_unit_test(momentum_goes_on_after_a_resume),
        cmocka_unit_test(more_than_2_to_31_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
