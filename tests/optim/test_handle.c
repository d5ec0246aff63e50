/* SPDX-License-Identifier: MIT
 *
 * The handle: bytes known before they are taken, memory bound as planned, calls in the wrong order, wrong options.
 */
#include "optim/fixture.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"

/* The call fails with this status, and its message holds these words. */
#define REFUSES(call, code, ...)                                                                                       \
    do {                                                                                                               \
        lst_error must_err = {.message = ""};                                                                          \
        const lst_status refused = (call);                                                                             \
        if (refused != (code))                                                                                         \
            fail_msg("%s: status %s, expected %s", #call, lst_status_name(refused), lst_status_name(code));            \
        expect_words(must_err.message, (const char *[]){__VA_ARGS__, NULL});                                           \
    } while (0)

static void expect_words(const char *message, const char *const *words)
{
    for (; *words; words++)
        if (!strstr(message, *words))
            fail_msg("the message \"%s\" does not say \"%s\"", message, *words);
}

static lst_hyper defaults(lst_rule rule)
{
    lst_hyper h;
    lst_hyper_default(rule, &h);
    return h;
}

static void bytes_per_parameter_are_pinned(void **state)
{
    (void)state;
    static const struct {
        lst_rule rule;
        size_t bytes;
    } pins[] = {
        {LST_RULE_SGD, 0}, {LST_RULE_MOMENTUM, 4}, {LST_RULE_NESTEROV, 4}, {LST_RULE_ADAM, 8}, {LST_RULE_ADAMW, 8}};
    static const struct {
        lst_weight_form form;
        size_t bytes;
    } forms[] = {{LST_WEIGHT_F32, 0},
                 {LST_WEIGHT_BF16_MASTER, 4},
                 {LST_WEIGHT_F16_MASTER, 4},
                 {LST_WEIGHT_SPLIT32, 2},
                 {LST_WEIGHT_BF16_NEAREST, 0}};
    const lst_tensor tensor = {.name = "w", .n_dims = 2, .dims = {4096, 4096}};
    for (size_t r = 0; r < sizeof pins / sizeof *pins; r++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            const lst_hyper h = defaults(pins[r].rule);
            lst_optim_options options = fixture_options(pins[r].rule, &h, 1);
            options.weights = forms[f].form;
            lst_optim *optim;
            MUST(lst_optim_create(&optim, &options, &tensor, 1, ERR));
            assert_int_equal(lst_optim_state_bytes(optim), (pins[r].bytes + forms[f].bytes) << 24);
            assert_int_equal(lst_optim_bucket_bytes(optim, LST_BUCKET_MASTER), forms[f].bytes << 24);
            lst_optim_destroy(optim);
        }
}

static void amsgrad_keeps_one_more(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.amsgrad = true;
    const lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    lst_slot slots[LST_MAX_SLOTS];
    size_t n;
    MUST(lst_optim_slots(&options, &fixture_tensors[1], slots, &n, ERR));
    assert_int_equal(n, 3);
    assert_string_equal(slots[2].name, "max_exp_avg_sq");
    assert_int_equal(slots[2].bytes, 3 * 5 * 7 * 4);
}

/* What lst_optim_slots says for each tensor is what the handle has, and lies in the block without overlap. */
static void planned_equals_bound(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++)
        for (unsigned form = 0; form < LST_N_WEIGHT_FORMS; form++) {
            const lst_hyper h = defaults((lst_rule)rule);
            lst_optim_options options = fixture_options((lst_rule)rule, &h, 1);
            options.weights = (lst_weight_form)form;
            fixture f;
            fixture_create(&f, &options);
            size_t sum = 0;
            const char *end = f.block;
            for (size_t i = 0; i < FIXTURE_TENSORS; i++) {
                lst_slot slots[LST_MAX_SLOTS];
                size_t n;
                MUST(lst_optim_slots(&options, &fixture_tensors[i], slots, &n, ERR));
                assert_int_equal(n, lst_optim_slot_count(f.optim, i));
                for (size_t k = 0; k < n; k++) {
                    const lst_slot *bound = lst_optim_slot(f.optim, i, k);
                    assert_int_equal(bound->bytes, slots[k].bytes);
                    assert_int_equal(bound->bytes, lst_codec_bytes(bound->codec, bound->n_elems));
                    assert_true((const char *)bound->memory >= end);
                    assert_int_equal((uintptr_t)bound->memory % 64, 0);
                    end = (const char *)bound->memory + bound->bytes;
                    sum += bound->bytes;
                }
            }
            assert_int_equal(sum, lst_optim_state_bytes(f.optim));
            assert_true(end <= (const char *)f.block + lst_optim_block_bytes(f.optim));
            assert_true(lst_optim_block_bytes(f.optim) >= sum);
            fixture_destroy(&f);
        }
}

/* Slots that stream together lie at different offsets modulo 4,096. */
static void slots_are_staggered(void **state)
{
    (void)state;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    h.amsgrad = true;
    lst_optim_options options = fixture_options(LST_RULE_ADAMW, &h, 1);
    options.weights = LST_WEIGHT_BF16_MASTER;
    fixture f;
    fixture_create(&f, &options);
    for (size_t a = 0; a < lst_optim_slot_count(f.optim, 0); a++)
        for (size_t b = 0; b < a; b++) {
            const uintptr_t x = (uintptr_t)lst_optim_slot(f.optim, 0, a)->memory % 4096;
            const uintptr_t y = (uintptr_t)lst_optim_slot(f.optim, 0, b)->memory % 4096;
            assert_true((x > y ? x - y : y - x) >= 256);
        }
    fixture_destroy(&f);
}

static void options_are_checked(void **state)
{
    (void)state;
    lst_optim *optim;
    lst_hyper h = defaults(LST_RULE_ADAMW);
    lst_optim_options o = fixture_options(LST_RULE_ADAMW, &h, 1);
#define TRY(code, ...) REFUSES(lst_optim_create(&optim, &o, fixture_tensors, FIXTURE_TENSORS, ERR), code, __VA_ARGS__)
    o.struct_size = 8;
    TRY(LST_ERR_ARGUMENT, "struct_size", "8");
    o = fixture_options((lst_rule)99, &h, 1);
    TRY(LST_ERR_ARGUMENT, "rule", "99");
    o = fixture_options(LST_RULE_ADAMW, &h, 0);
    TRY(LST_ERR_ARGUMENT, "group");
    o = fixture_options(LST_RULE_ADAMW, &h, 1);
    o.weights = (lst_weight_form)77;
    TRY(LST_ERR_ARGUMENT, "weights", "77");
    o.weights = LST_WEIGHT_F32;
    o.grads = LST_CODEC_LO16;
    TRY(LST_ERR_UNSUPPORTED, "lo16", "bf16");
    o.grads = LST_CODEC_F32;
    o.state = LST_CODEC_BF16;
    TRY(LST_ERR_UNSUPPORTED, "bf16", "f32");
#undef TRY
}

static void hyper_parameters_are_checked(void **state)
{
    (void)state;
    const struct {
        lst_rule rule;
        size_t offset;
        double value;
        const char *word;
    } bad[] = {
        {LST_RULE_ADAMW, offsetof(lst_hyper, beta1), 1.0, "beta1"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, beta2), 1.0, "beta2"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, beta2), -0.1, "beta2"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, beta1), NAN, "beta1"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, eps), -1e-8, "eps"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, eps), INFINITY, "eps"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, lr), -1e-3, "lr"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, lr), NAN, "lr"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, weight_decay), INFINITY, "weight_decay"},
        {LST_RULE_ADAMW, offsetof(lst_hyper, momentum), 0.9, "momentum"},
        {LST_RULE_SGD, offsetof(lst_hyper, momentum), 0.9, "momentum"},
        {LST_RULE_SGD, offsetof(lst_hyper, beta1), 0.9, "beta1"},
        {LST_RULE_MOMENTUM, offsetof(lst_hyper, momentum), 0.0, "sgd"},
        {LST_RULE_MOMENTUM, offsetof(lst_hyper, eps), 1e-8, "eps"},
        {LST_RULE_NESTEROV, offsetof(lst_hyper, dampening), 0.1, "dampening"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lst_hyper h[2] = {defaults(bad[i].rule), defaults(bad[i].rule)};
        memcpy((char *)&h[1] + bad[i].offset, &bad[i].value, sizeof(double));
        const lst_optim_options options = fixture_options(bad[i].rule, h, 2);
        lst_optim *optim;
        REFUSES(lst_optim_create(&optim, &options, fixture_tensors, FIXTURE_TENSORS, ERR), LST_ERR_ARGUMENT,
                bad[i].word, "group 1");
    }
    lst_hyper h = defaults(LST_RULE_SGD);
    h.amsgrad = true;
    const lst_optim_options options = fixture_options(LST_RULE_SGD, &h, 1);
    lst_optim *optim;
    REFUSES(lst_optim_create(&optim, &options, fixture_tensors, FIXTURE_TENSORS, ERR), LST_ERR_ARGUMENT, "amsgrad",
            "sgd");
}

static void tensors_are_checked(void **state)
{
    (void)state;
    const lst_hyper h = defaults(LST_RULE_ADAMW);
    const lst_optim_options o = fixture_options(LST_RULE_ADAMW, &h, 1);
    lst_optim *optim;
    const lst_tensor twice[] = {{.name = "a"}, {.name = "b"}, {.name = "a"}};
    REFUSES(lst_optim_create(&optim, &o, twice, 3, ERR), LST_ERR_ARGUMENT, "\"a\"", "tied");
    const lst_tensor empty = {.name = "e", .n_dims = 2, .dims = {3, 0}};
    REFUSES(lst_optim_create(&optim, &o, &empty, 1, ERR), LST_ERR_ARGUMENT, "e", "dimension 1");
    const lst_tensor huge = {.name = "h", .n_dims = 2, .dims = {SIZE_MAX / 2, 3}};
    REFUSES(lst_optim_create(&optim, &o, &huge, 1, ERR), LST_ERR_ARGUMENT, "h", "too large");
    const lst_tensor stray = {.name = "s", .group = 1};
    REFUSES(lst_optim_create(&optim, &o, &stray, 1, ERR), LST_ERR_ARGUMENT, "s", "group 1");
    const lst_tensor nameless = {.name = ""};
    REFUSES(lst_optim_create(&optim, &o, &nameless, 1, ERR), LST_ERR_ARGUMENT, "name");
    const lst_tensor deep = {.name = "d", .n_dims = LST_MAX_DIMS + 1};
    REFUSES(lst_optim_create(&optim, &o, &deep, 1, ERR), LST_ERR_ARGUMENT, "d", "dimensions");
    REFUSES(lst_optim_create(&optim, &o, NULL, 0, ERR), LST_ERR_ARGUMENT, "at least one tensor");
}

static void calls_in_the_wrong_order(void **state)
{
    (void)state;
    const lst_hyper h = defaults(LST_RULE_ADAMW);
    const lst_optim_options o = fixture_options(LST_RULE_ADAMW, &h, 1);
    const lst_tensor tensor = {.name = "w", .n_dims = 1, .dims = {3}};
    float w[3] = {1, 2, 3}, g[3] = {1, 1, 1};
    _Alignas(64) float state_memory[4096];
    lst_optim *optim;
    const lst_grad_scale one = {1, 1};
    MUST(lst_optim_create(&optim, &o, &tensor, 1, ERR));
    assert_true(lst_optim_block_bytes(optim) <= sizeof state_memory);
    REFUSES(lst_optim_reset(optim, ERR), LST_ERR_STATE, "w", "bind_weights");
    REFUSES(lst_optim_bind_weights(optim, 0, (char *)w + 1, ERR), LST_ERR_ARGUMENT, "w", "aligned");
    REFUSES(lst_optim_bind_weights(optim, 1, w, ERR), LST_ERR_ARGUMENT, "no tensor 1");
    MUST(lst_optim_bind_weights(optim, 0, w, ERR));
    REFUSES(lst_optim_reset(optim, ERR), LST_ERR_STATE, "exp_avg", "lst_optim_bind");
    REFUSES(lst_optim_bind(optim, state_memory, 8, ERR), LST_ERR_ARGUMENT, "8 bytes");
    REFUSES(lst_optim_bind(optim, (char *)state_memory + 4, sizeof state_memory, ERR), LST_ERR_ARGUMENT, "64");
    MUST(lst_optim_bind(optim, state_memory, sizeof state_memory, ERR));
    REFUSES(lst_optim_begin(optim, ERR) == LST_OK ? lst_optim_step_tensor(optim, 0, g, one, ERR) : LST_OK,
            LST_ERR_STATE, "lst_optim_reset");
    MUST(lst_optim_reset(optim, ERR));
    REFUSES(lst_optim_step_tensor(optim, 0, g, one, ERR), LST_ERR_STATE, "w", "lst_optim_begin");
    MUST(lst_optim_begin(optim, ERR));
    REFUSES(lst_optim_step_tensor(optim, 0, NULL, one, ERR), LST_ERR_ARGUMENT, "w", "NULL");
    REFUSES(lst_optim_step_tensor(optim, 7, g, one, ERR), LST_ERR_ARGUMENT, "no tensor 7");
    MUST(lst_optim_step_tensor(optim, 0, g, one, ERR));
    const float moved = w[0];
    REFUSES(lst_optim_step_tensor(optim, 0, g, one, ERR), LST_ERR_STATE, "w", "already");
    assert_true(w[0] == moved && lst_optim_steps(optim, 0) == 1);
    lst_optim_set_begun(optim, 41);
    REFUSES(lst_optim_step_tensor(optim, 0, g, one, ERR), LST_ERR_STATE, "lst_optim_begin");
    MUST(lst_optim_begin(optim, ERR));
    assert_int_equal(lst_optim_begun(optim), 42);
    REFUSES(lst_optim_set_steps(optim, 0, -1, ERR), LST_ERR_ARGUMENT, "-1");
    REFUSES(lst_optim_set_lr(optim, 0, -1, ERR), LST_ERR_ARGUMENT, "lr");
    REFUSES(lst_optim_set_lr(optim, 5, 1, ERR), LST_ERR_ARGUMENT, "no group 5");
    lst_optim_destroy(optim);
}

static void tied_weights_are_one_tensor(void **state)
{
    (void)state;
    const lst_hyper h = defaults(LST_RULE_SGD);
    const lst_optim_options o = fixture_options(LST_RULE_SGD, &h, 1);
    const lst_tensor tensors[] = {{.name = "embed", .n_dims = 1, .dims = {8}},
                                  {.name = "head", .n_dims = 1, .dims = {8}}};
    float w[16];
    lst_optim *optim;
    MUST(lst_optim_create(&optim, &o, tensors, 2, ERR));
    MUST(lst_optim_bind_weights(optim, 0, w, ERR));
    REFUSES(lst_optim_bind_weights(optim, 1, w, ERR), LST_ERR_ARGUMENT, "embed", "head", "tied");
    REFUSES(lst_optim_bind_weights(optim, 1, w + 7, ERR), LST_ERR_ARGUMENT, "overlap");
    MUST(lst_optim_bind_weights(optim, 1, w + 8, ERR));
    MUST(lst_optim_bind_weights(optim, 1, w + 8, ERR)); /* again is fine */
    lst_optim_destroy(optim);
}

/* Every allocation of a creation fails once: a clean error, nothing leaked (run under a sanitizer). */
static void creation_survives_every_fault(void **state)
{
    (void)state;
    const lst_hyper h = defaults(LST_RULE_ADAMW);
    const lst_optim_options o = fixture_options(LST_RULE_ADAMW, &h, 1);
    for (uint64_t n = 1;; n++) {
        lst_optim *optim = NULL;
        lst_error err;
        lst__fault_arm(n);
        const lst_status status = lst_optim_create(&optim, &o, fixture_tensors, FIXTURE_TENSORS, &err);
        const int struck = lst__fault_struck();
        lst__fault_arm(0);
        if (status == LST_OK) {
            assert_false(struck);
            assert_true(n > FIXTURE_TENSORS); /* at least a name each */
            lst_optim_destroy(optim);
            break;
        }
        assert_int_equal(status, LST_ERR_MEMORY);
        assert_null(optim);
    }
}

static void rules_have_names(void **state)
{
    (void)state;
    for (unsigned rule = 0; rule < LST_N_RULES; rule++) {
        lst_rule found;
        MUST(lst_rule_find(lst_rule_name((lst_rule)rule), &found, ERR));
        assert_int_equal(found, rule);
    }
    lst_rule found;
    REFUSES(lst_rule_find("adamx", &found, ERR), LST_ERR_ARGUMENT, "adamx", "adamw", "momentum");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_per_parameter_are_pinned),
        cmocka_unit_test(amsgrad_keeps_one_more),
        cmocka_unit_test(planned_equals_bound),
        cmocka_unit_test(slots_are_staggered),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(hyper_parameters_are_checked),
        cmocka_unit_test(tensors_are_checked),
        cmocka_unit_test(calls_in_the_wrong_order),
        cmocka_unit_test(tied_weights_are_one_tensor),
        cmocka_unit_test(creation_survives_every_fault),
        cmocka_unit_test(rules_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
