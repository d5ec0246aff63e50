/* SPDX-License-Identifier: MIT
 *
 * Rules that look at whole tensors, and the others beyond SGD and Adam: bytes, corners, and independent references in
 * double on shapes larger than the golden ones.
 */
#include "optim/fixture.h"

#include <math.h>

#include "optim/matmul.h"

/* One tensor with its optimizer. */
typedef struct one {
    lst_optim *optim;
    size_t n;
    float *w, *g;
    void *block, *scratch;
} one;

static void one_create(one *o, lst_rule rule, const lst_hyper *h, const lst_tensor *tensor)
{
    const lst_optim_options options = fixture_options(rule, h, 1);
    memset(o, 0, sizeof *o);
    o->n = 1;
    for (size_t i = 0; i < tensor->n_dims; i++)
        o->n *= tensor->dims[i];
    o->w = fixture_memory(o->n * sizeof(float));
    o->g = fixture_memory(o->n * sizeof(float));
    for (size_t i = 0; i < o->n; i++) {
        o->w[i] = fixture_value(1, 0, i);
        o->g[i] = i % 17 == 3 ? 0.0f : fixture_value(2, 0, i);
    }
    MUST(lst_optim_create(&o->optim, &options, tensor, 1, ERR));
    const size_t bytes = lst_optim_block_bytes(o->optim), scratch = lst_optim_scratch_bytes(o->optim);
    o->block = fixture_memory(bytes);
    o->scratch = fixture_memory(scratch);
    MUST(lst_optim_bind(o->optim, o->block, bytes, ERR));
    MUST(lst_optim_bind_scratch(o->optim, o->scratch, scratch, ERR));
    MUST(lst_optim_bind_weights(o->optim, 0, o->w, ERR));
    MUST(lst_optim_reset(o->optim, ERR));
}

static void one_step(one *o)
{
    const void *grads[1] = {o->g};
    MUST(lst_optim_step(o->optim, grads, (lst_grad_scale){1, 1}, ERR));
}

static void one_destroy(one *o)
{
    lst_optim_destroy(o->optim);
    free(o->w);
    free(o->g);
    free(o->block);
    free(o->scratch);
}

static lst_hyper defaults(lst_rule rule)
{
    lst_hyper h;
    lst_hyper_default(rule, &h);
    return h;
}

static size_t state_bytes(lst_rule rule, const lst_hyper *h, const lst_tensor *tensor)
{
    const lst_optim_options options = fixture_options(rule, h, 1);
    lst_slot slots[LST_MAX_SLOTS];
    size_t n, bytes = 0;
    MUST(lst_optim_slots(&options, tensor, slots, &n, ERR));
    for (size_t i = 0; i < n; i++)
        bytes += slots[i].bytes;
    return bytes;
}

static void refused(lst_rule rule, const lst_hyper *h, const lst_tensor *tensor, const char *word)
{
    const lst_optim_options options = fixture_options(rule, h, 1);
    lst_slot slots[LST_MAX_SLOTS];
    size_t n;
    lst_error err = {.message = ""};
    assert_int_equal(lst_optim_slots(&options, tensor, slots, &n, &err), LST_ERR_ARGUMENT);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" does not say \"%s\"", err.message, word);
}

static const lst_tensor square = {.name = "w", .n_dims = 2, .dims = {4096, 4096}};
static const lst_tensor small = {.name = "w", .n_dims = 2, .dims = {33, 65}};
static const lst_tensor vector = {.name = "w", .n_dims = 1, .dims = {1000}};

static void bytes_are_pinned(void **state)
{
    (void)state;
    const size_t n = (size_t)4096 * 4096;
    lst_hyper h = defaults(LST_RULE_LION);
    assert_int_equal(state_bytes(LST_RULE_LION, &h, &square), 4 * n);
    h = defaults(LST_RULE_RMSPROP);
    assert_int_equal(state_bytes(LST_RULE_RMSPROP, &h, &square), 4 * n);
    h.momentum = 0.9;
    assert_int_equal(state_bytes(LST_RULE_RMSPROP, &h, &square), 8 * n);
    h.centered = true;
    assert_int_equal(state_bytes(LST_RULE_RMSPROP, &h, &square), 12 * n);
    h = defaults(LST_RULE_LARS);
    assert_int_equal(state_bytes(LST_RULE_LARS, &h, &square), 4 * n);
    h = defaults(LST_RULE_LAMB);
    assert_int_equal(state_bytes(LST_RULE_LAMB, &h, &square), 8 * n);
    h = defaults(LST_RULE_SCHEDULE_FREE);
    assert_int_equal(state_bytes(LST_RULE_SCHEDULE_FREE, &h, &square), 8 * n + 16);
    h = defaults(LST_RULE_MUON);
    assert_int_equal(state_bytes(LST_RULE_MUON, &h, &square), 4 * n);
    assert_int_equal(state_bytes(LST_RULE_MUON, &h, &vector), 8 * 1000);
    h.adamw = true;
    assert_int_equal(state_bytes(LST_RULE_MUON, &h, &square), 8 * n);
}

static void adafactor_is_sublinear(void **state)
{
    (void)state;
    static const lst_rule rules[] = {LST_RULE_ADAFACTOR, LST_RULE_ADAFACTOR_TORCH};
    const lst_tensor kernel = {.name = "conv", .n_dims = 4, .dims = {64, 32, 3, 5}};
    for (size_t r = 0; r < 2; r++) {
        lst_hyper h = defaults(rules[r]);
        assert_int_equal(state_bytes(rules[r], &h, &square), 4 * (4096 + 4096));
        assert_int_equal(state_bytes(rules[r], &h, &vector), 4 * 1000);
        assert_int_equal(state_bytes(rules[r], &h, &kernel),
                         4 * 64 * 32 * (3 + 5)); /* the last two dimensions factor */
    }
    lst_hyper h = defaults(LST_RULE_ADAFACTOR);
    h.beta1 = 0.9;
    assert_int_equal(state_bytes(LST_RULE_ADAFACTOR, &h, &square), 4 * (4096 + 4096) + 4 * (size_t)4096 * 4096);
}

static void adam_mini_counts_blocks(void **state)
{
    (void)state;
    const lst_hyper h = defaults(LST_RULE_ADAM_MINI);
    const size_t m = (size_t)4 * 4096 * 4096;
    lst_tensor t = square;
    assert_int_equal(state_bytes(LST_RULE_ADAM_MINI, &h, &t), m + 4 * 4096);
    t.moment_block = 128 * 4096;
    assert_int_equal(state_bytes(LST_RULE_ADAM_MINI, &h, &t), m + 4 * 32);
    t.moment_block = 1;
    assert_int_equal(state_bytes(LST_RULE_ADAM_MINI, &h, &t), 2 * m);
    t.moment_block = LST_MOMENT_COLUMNS;
    assert_int_equal(state_bytes(LST_RULE_ADAM_MINI, &h, &t), m + 4 * 4096);
    assert_int_equal(state_bytes(LST_RULE_ADAM_MINI, &h, &vector), 4 * 1000 + 4);
    t.moment_block = 4095;
    refused(LST_RULE_ADAM_MINI, &h, &t, "4095");
    t.moment_block = 4096;
    const lst_hyper adamw = defaults(LST_RULE_ADAMW);
    refused(LST_RULE_ADAMW, &adamw, &t, "moment_block");
    lst_tensor v = vector;
    v.moment_block = LST_MOMENT_COLUMNS;
    refused(LST_RULE_ADAM_MINI, &h, &v, "matrix");
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAFACTOR);
    h.relative_step = true;
    h.lr = 1e-4;
    refused(LST_RULE_ADAFACTOR, &h, &small, "relative_step");
    h = defaults(LST_RULE_ADAFACTOR);
    h.warmup_init = true;
    refused(LST_RULE_ADAFACTOR, &h, &small, "warmup_init");
    h = defaults(LST_RULE_ADAFACTOR);
    h.clip_threshold = 0;
    refused(LST_RULE_ADAFACTOR, &h, &small, "clip_threshold");
    h = defaults(LST_RULE_ADAFACTOR_TORCH);
    h.scale_parameter = true;
    refused(LST_RULE_ADAFACTOR_TORCH, &h, &small, "scale_parameter");
    h = defaults(LST_RULE_ADAFACTOR);
    h.beta2_decay = 0.8;
    refused(LST_RULE_ADAFACTOR, &h, &small, "beta2_decay");
    h = defaults(LST_RULE_SCHEDULE_FREE);
    h.beta1 = 0;
    refused(LST_RULE_SCHEDULE_FREE, &h, &small, "beta1");
    h = defaults(LST_RULE_SCHEDULE_FREE);
    h.warmup_steps = 2.5;
    refused(LST_RULE_SCHEDULE_FREE, &h, &small, "whole");
    h = defaults(LST_RULE_MUON);
    h.ns_steps = -1;
    refused(LST_RULE_MUON, &h, &small, "ns_steps");
    h = defaults(LST_RULE_LION);
    h.eps = 1e-8;
    refused(LST_RULE_LION, &h, &small, "eps");
}

static void scratch_must_be_there(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_MUON);
    one o;
    one_create(&o, LST_RULE_MUON, &h, &small);
    assert_int_equal(lst_optim_scratch_bytes(o.optim), (2 * 33 * 65 + 2 * 33 * 33) * sizeof(float));
    lst_error err = {.message = ""};
    assert_int_equal(lst_optim_bind_scratch(o.optim, o.scratch, 100, &err), LST_ERR_ARGUMENT);
    MUST(lst_optim_bind_scratch(o.optim, NULL, lst_optim_scratch_bytes(o.optim), ERR));
    const void *grads[1] = {o.g};
    assert_int_equal(lst_optim_step(o.optim, grads, (lst_grad_scale){1, 1}, &err), LST_ERR_STATE);
    assert_non_null(strstr(err.message, "bind_scratch"));
    one_destroy(&o);
}

/* Zero weights and zero gradients: both ratios are 1 then, and zero weights train. */
static void zero_norms_still_train(void **state)
{
    (void)state;
    static const lst_rule rules[] = {LST_RULE_LARS, LST_RULE_LAMB};
    for (size_t r = 0; r < 2; r++) {
        lst_hyper h = defaults(rules[r]);
        one o;
        one_create(&o, rules[r], &h, &small);
        memset(o.w, 0, o.n * sizeof *o.w);
        one_step(&o);
        size_t moved = 0;
        for (size_t i = 0; i < o.n; i++) {
            assert_true(isfinite(o.w[i]));
            moved += o.w[i] != 0;
        }
        assert_true(moved > o.n * 9 / 10);
        one_destroy(&o);
    }
}

/* 1e20 squared is beyond float32: norms are summed in double. */
static void norms_do_not_overflow(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_LARS);
    h.momentum = 0;
    h.weight_decay = 0;
    one o;
    one_create(&o, LST_RULE_LARS, &h, &small);
    for (size_t i = 0; i < o.n; i++) {
        o.w[i] = 1e20f;
        o.g[i] = 1e25f;
    }
    one_step(&o); /* q = 1e-3 * 1e20 / 1e25, and lr 1: each weight loses a thousandth */
    for (size_t i = 0; i < o.n; i++)
        assert_true(fabs((double)o.w[i] / (1e20 * 0.999) - 1) < 1e-6);
    one_destroy(&o);
}

static void norms_and_biases_are_excluded(void **state)
{
    (void)state;
    static const lst_rule rules[] = {LST_RULE_LARS, LST_RULE_LAMB};
    for (size_t r = 0; r < 2; r++) {
        lst_hyper h = defaults(rules[r]);
        h.lr = 0.25;
        h.momentum = 0;
        one with, without;
        one_create(&with, rules[r], &h, &vector);
        h.weight_decay = 0;
        one_create(&without, rules[r], &h, &vector);
        one_step(&with);
        one_step(&without);
        assert_memory_equal(with.w, without.w, with.n * sizeof(float)); /* no decay */
        if (rules[r] == LST_RULE_LARS)                                  /* and a ratio of 1: plain SGD */
            for (size_t i = 0; i < with.n; i++)
                assert_true(with.w[i] == fixture_value(1, 0, i) - 0.25f * with.g[i]);
        one_destroy(&with);
        one_destroy(&without);
    }
}

static void lion_of_nothing_stays(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_LION);
    one o;
    one_create(&o, LST_RULE_LION, &h, &vector);
    memset(o.g, 0, o.n * sizeof *o.g);
    o.g[0] = 1e-30f;
    o.g[1] = -1e30f;
    one_step(&o);
    assert_true(o.w[0] == fixture_value(1, 0, 0) - 1e-4f && o.w[1] == fixture_value(1, 0, 1) + 1e-4f);
    for (size_t i = 2; i < o.n; i++)
        assert_true(o.w[i] == fixture_value(1, 0, i));
    one_destroy(&o);
}

/* A constant gradient: v - a*a comes down to rounding noise, of either sign. It must not become NaN. */
static void centered_rmsprop_survives_rounding(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_RMSPROP);
    h.centered = true;
    h.alpha = 0.5;
    one o;
    one_create(&o, LST_RULE_RMSPROP, &h, &vector);
    for (int step = 0; step < 200; step++)
        one_step(&o);
    for (size_t i = 0; i < o.n; i++)
        assert_true(isfinite(o.w[i]));
    one_destroy(&o);
}

/* ---- Adafactor against a reference in double, on shapes with many tasks, thin ones and batches ---- */

static double root_mean_square(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum / (double)n);
}

/* One step of the paper's form from zero state, on [batch, rows, columns]. */
static void adafactor_reference(const lst_hyper *h, size_t batch, size_t rows, size_t columns, const float *g,
                                double *w)
{
    const size_t n = batch * rows * columns;
    double *u = malloc(n * sizeof *u);
    for (size_t b = 0; b < batch; b++) {
        double *row = calloc(rows, sizeof *row), *column = calloc(columns, sizeof *column), mean = 0;
        const float *at = g + b * rows * columns;
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++) {
                const double s = (double)at[i * columns + j] * (double)at[i * columns + j] + h->eps;
                row[i] += s / (double)columns;
                column[j] += s / (double)rows;
            }
        for (size_t i = 0; i < rows; i++)
            mean += row[i] / (double)rows;
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++)
                u[b * rows * columns + i * columns + j] =
                    (double)at[i * columns + j] / sqrt(row[i] / mean) / sqrt(column[j]);
        free(row);
        free(column);
    }
    const double rate = h->lr * fmax(h->eps2, root_mean_square(w, n));
    const double clip = fmax(1, root_mean_square(u, n) / h->clip_threshold);
    for (size_t i = 0; i < n; i++)
        w[i] -= rate / clip * u[i];
    free(u);
}

static void adafactor_matches_its_reference(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 300, 1100}, {1, 1, 5000}, {1, 5000, 1},
                                       {7, 3, 3},      {400, 5, 3},  {2, 70, 600}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const lst_tensor t = {.name = "w", .n_dims = 3, .dims = {shapes[s][0], shapes[s][1], shapes[s][2]}};
        lst_hyper h = defaults(LST_RULE_ADAFACTOR);
        one o;
        one_create(&o, LST_RULE_ADAFACTOR, &h, &t);
        for (size_t j = 0; j < t.dims[2]; j++)
            o.g[j] = 0; /* a row without gradient */
        double *w = malloc(o.n * sizeof *w);
        for (size_t i = 0; i < o.n; i++)
            w[i] = (double)o.w[i];
        adafactor_reference(&h, t.dims[0], t.dims[1], t.dims[2], o.g, w);
        one_step(&o);
        for (size_t i = 0; i < o.n; i++)
            if (!(fabs((double)o.w[i] - w[i]) <= 2e-6 * (1 + fabs(w[i]))))
                fail_msg("shape %zu, element %zu: %.9g, expected %.9g", s, i, (double)o.w[i], w[i]);
        free(w);
        one_destroy(&o);
    }
}

/* RMS(p) = 0: the step is scaled by eps2, so zero weights train; and the update is clipped exactly beyond the
 * threshold. */
static void adafactor_of_zero_weights(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAFACTOR);
    one o;
    one_create(&o, LST_RULE_ADAFACTOR, &h, &small);
    memset(o.w, 0, o.n * sizeof *o.w);
    one_step(&o);
    double sum = 0;
    for (size_t i = 0; i < o.n; i++)
        sum += (double)o.w[i] * (double)o.w[i];
    const double rms = sqrt(sum / (double)o.n);
    assert_true(rms > 0.9e-5 && rms <= 1.0001e-5); /* lr 1e-2 * eps2 1e-3 * RMS(u), at most 1 */
    one_destroy(&o);
}

/* ---- matrix products and Muon ---- */

static void products_match_double(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1}, {6, 16, 256}, {7, 17, 257}, {49, 65, 600}, {130, 33, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int transposed = 0; transposed < 2; transposed++) {
            const size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            float *a = fixture_memory(m * k * 4), *b = fixture_memory(k * n * 4), *base = fixture_memory(m * n * 4);
            float *out = fixture_memory(m * n * 4), *other = fixture_memory(m * n * 4);
            for (size_t i = 0; i < m * k; i++)
                a[i] = fixture_value(1, 1, i);
            for (size_t i = 0; i < k * n; i++)
                b[i] = fixture_value(1, 2, i);
            for (size_t i = 0; i < m * n; i++)
                base[i] = fixture_value(1, 3, i);
            lst__matmul job = {m, n, k, a, b, transposed, base, 2, -0.5f, out};
            lst__matmul_run(&job, lst__kernels_get(), NULL);
            for (size_t i = 0; i < m; i++)
                for (size_t j = 0; j < n; j++) {
                    double sum = 0, size = 0;
                    for (size_t p = 0; p < k; p++) {
                        const double x = (double)a[i * k + p] * (double)(transposed ? b[j * k + p] : b[p * n + j]);
                        sum += x;
                        size += fabs(x);
                    }
                    const double want = 2 * (double)base[i * n + j] - 0.5 * sum;
                    assert_true(fabs((double)out[i * n + j] - want) < 1e-6 * (size + 1));
                }
            job.out = other;
            for (int isa = 0; isa < LST__N_ISAS; isa++) {
                if (!lst__kernels_for((lst__isa)isa))
                    continue;
                lst__matmul_run(&job, lst__kernels_for((lst__isa)isa), NULL);
                assert_memory_equal(out, other, m * n * sizeof *out);
            }
            free(a);
            free(b);
            free(base);
            free(out);
            free(other);
        }
}

/* Muon's step is nearly orthogonal: its rows (of the smaller side) have lengths near 1 and hardly overlap. */
static void muon_orthogonalises(void **state)
{
    (void)state;
    static const size_t shapes[][2] = {{40, 300}, {300, 40}};
    for (size_t s = 0; s < 2; s++) {
        const size_t high = shapes[s][0], wide = shapes[s][1];
        const lst_tensor t = {.name = "w", .n_dims = 2, .dims = {high, wide}};
        lst_hyper h = defaults(LST_RULE_MUON);
        h.weight_decay = 0;
        h.lr = 1;
        h.match_rms = false;
        one o;
        one_create(&o, LST_RULE_MUON, &h, &t);
        memset(o.w, 0, o.n * sizeof *o.w);
        for (size_t i = 0; i < o.n; i++)
            o.g[i] = (float)lst__random_normal(3, 3, i) * (i / wide % 2 ? 1.0f : 0.05f);
        one_step(&o);
        const double scale = sqrt(fmax(1, (double)high / (double)wide));
        for (size_t a = 0; a < 40; a++)
            for (size_t b = 0; b <= a; b++) {
                double dot = 0;
                for (size_t k = 0; k < 300; k++)
                    dot += (double)o.w[high < wide ? a * wide + k : k * wide + a] *
                           (double)o.w[high < wide ? b * wide + k : k * wide + b];
                dot /= scale * scale;
                assert_true(a == b ? dot > 0.3 && dot < 1.6 : fabs(dot) < 0.6);
            }
        one_destroy(&o);
    }
}

/* Muon beside matrices: the AdamW of the library, bit for bit. */
static void muon_steps_the_rest_by_adamw(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_MUON), a = defaults(LST_RULE_ADAMW);
    a.weight_decay = h.weight_decay;
    one muon, adamw;
    one_create(&muon, LST_RULE_MUON, &h, &vector);
    one_create(&adamw, LST_RULE_ADAMW, &a, &vector);
    for (int step = 0; step < 3; step++) {
        one_step(&muon);
        one_step(&adamw);
    }
    assert_memory_equal(muon.w, adamw.w, muon.n * sizeof(float));
    one_destroy(&muon);
    one_destroy(&adamw);
}

/* ---- Adam-mini ---- */

static void adam_mini_of_single_values_is_adamw(void **state)
{
    (void)state;
    const lst_hyper h = defaults(LST_RULE_ADAM_MINI), a = defaults(LST_RULE_ADAMW);
    lst_tensor t = small;
    one mini, adamw;
    one_create(&adamw, LST_RULE_ADAMW, &a, &t);
    t.moment_block = 1;
    one_create(&mini, LST_RULE_ADAM_MINI, &h, &t);
    for (int step = 0; step < 3; step++) {
        one_step(&mini);
        one_step(&adamw);
    }
    assert_memory_equal(mini.w, adamw.w, mini.n * sizeof(float));
    one_destroy(&mini);
    one_destroy(&adamw);
}

/* Which block an element of a rows x columns matrix is in. */
static size_t block_index(size_t i, size_t columns, size_t block)
{
    return block == LST_MOMENT_COLUMNS ? i % columns : i / block;
}

static void adam_mini_matches_its_reference(void **state)
{
    (void)state;
    enum { ROWS = 96, COLUMNS = 1100, ALL = ROWS * COLUMNS, STEPS = 4 };
    static const size_t given[] = {0, 8 * COLUMNS, ALL, LST_MOMENT_COLUMNS, 100};
    for (size_t c = 0; c < sizeof given / sizeof *given; c++) {
        const size_t block = given[c] == 0 ? COLUMNS : given[c];
        const lst_tensor t = {.name = "w", .n_dims = 2, .dims = {ROWS, COLUMNS}, .moment_block = given[c]};
        const lst_hyper h = defaults(LST_RULE_ADAM_MINI);
        one o;
        one_create(&o, LST_RULE_ADAM_MINI, &h, &t);
        double *w = malloc(ALL * sizeof *w), *m = calloc(ALL, sizeof *m), *v = calloc(ALL, sizeof *v);
        for (size_t i = 0; i < ALL; i++)
            w[i] = (double)o.w[i];
        for (int step = 1; step <= STEPS; step++) {
            double *sum = calloc(ALL, sizeof *sum), *count = calloc(ALL, sizeof *count);
            for (size_t i = 0; i < ALL; i++) {
                o.g[i] = fixture_value((uint64_t)step, 5, i);
                sum[block_index(i, COLUMNS, block)] += (double)o.g[i] * (double)o.g[i];
                count[block_index(i, COLUMNS, block)] += 1;
            }
            for (size_t b = 0; b < ALL && count[b] > 0; b++)
                v[b] = h.beta2 * v[b] + (1 - h.beta2) * sum[b] / count[b];
            for (size_t i = 0; i < ALL; i++) {
                m[i] = h.beta1 * m[i] + (1 - h.beta1) * (double)o.g[i];
                const double below = sqrt(v[block_index(i, COLUMNS, block)] / (1 - pow(h.beta2, step))) + h.eps;
                w[i] = w[i] * (1 - h.lr * h.weight_decay) - h.lr * m[i] / (1 - pow(h.beta1, step)) / below;
            }
            one_step(&o);
            free(sum);
            free(count);
        }
        for (size_t i = 0; i < ALL; i++)
            if (!(fabs((double)o.w[i] - w[i]) <= 1e-6 * (1 + fabs(w[i]))))
                fail_msg("block %zu, element %zu: %.9g, expected %.9g", block, i, (double)o.w[i], w[i]);
        free(w);
        free(m);
        free(v);
        one_destroy(&o);
    }
}

/* ---- schedule-free ---- */

static void the_average_starts_as_the_weights(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_SCHEDULE_FREE);
    one o;
    one_create(&o, LST_RULE_SCHEDULE_FREE, &h, &small);
    float *x = fixture_memory(o.n * sizeof *x);
    MUST(lst_optim_get_eval_weights_f32(o.optim, 0, x, ERR));
    assert_memory_equal(x, o.w, o.n * sizeof *x);
    for (int step = 0; step < 5; step++)
        one_step(&o);
    MUST(lst_optim_get_eval_weights_f32(o.optim, 0, x, ERR));
    assert_true(memcmp(x, o.w, o.n * sizeof *x) != 0);
    free(x);
    one_destroy(&o);
    h = defaults(LST_RULE_ADAMW);
    one_create(&o, LST_RULE_ADAMW, &h, &small);
    one_step(&o);
    x = fixture_memory(o.n * sizeof *x);
    MUST(lst_optim_get_eval_weights_f32(o.optim, 0, x, ERR));
    assert_memory_equal(x, o.w, o.n * sizeof *x);
    free(x);
    one_destroy(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_pinned),
        cmocka_unit_test(adafactor_is_sublinear),
        cmocka_unit_test(adam_mini_counts_blocks),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(scratch_must_be_there),
        cmocka_unit_test(zero_norms_still_train),
        cmocka_unit_test(norms_do_not_overflow),
        cmocka_unit_test(norms_and_biases_are_excluded),
        cmocka_unit_test(lion_of_nothing_stays),
        cmocka_unit_test(centered_rmsprop_survives_rounding),
        cmocka_unit_test(adafactor_matches_its_reference),
        cmocka_unit_test(adafactor_of_zero_weights),
        cmocka_unit_test(products_match_double),
        cmocka_unit_test(muon_orthogonalises),
        cmocka_unit_test(muon_steps_the_rest_by_adamw),
        cmocka_unit_test(adam_mini_of_single_values_is_adamw),
        cmocka_unit_test(adam_mini_matches_its_reference),
        cmocka_unit_test(the_average_starts_as_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
