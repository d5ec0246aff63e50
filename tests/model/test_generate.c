/* SPDX-License-Identifier: MIT
 *
 * Generation: the cache against the full forward, sampling, a full cache, refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "fixture.h"

typedef struct written {
    int32_t ids[512];
    size_t n, stop_at; /* stop_at: refuse the token with this index */
} written;

static lst_status take(void *user, int32_t id, lst_error *err)
{
    written *w = user;
    (void)err;
    if (w->stop_at && w->n == w->stop_at)
        return LST_ERR_INTERRUPTED;
    w->ids[w->n++] = id;
    return LST_OK;
}

static const int32_t prompt[] = {5, 17, 2, 40, 8};

/* The greedy continuation by whole forward passes of a training plan with batch 1. */
static void continue_slowly(const lst_arch *arch, int32_t *out, size_t n_prompt, size_t n)
{
    int32_t ids[64];
    memcpy(ids, prompt, n_prompt * sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        size_t seq = n_prompt + i;
        fixture f;
        lst_recipe r = fixture_recipe();
        r.batch = 1;
        r.seq = seq;
        if (fixture_open(&f, arch, &r, 1))
            fail_msg("%s", f.err.message);
        model_init_random(f.m, 21);
        for (size_t t = 0; t < seq; t++) {
            model_ids(f.m, 0)[t] = ids[t];
            model_targets(f.m, 0)[t] = MODEL_IGNORE;
        }
        float *logits = malloc(seq * arch->vocab * sizeof *logits), *last = logits + (seq - 1) * arch->vocab;
        assert_int_equal(model_logits(f.m, logits, &f.err), LST_OK);
        size_t best = 0;
        for (size_t v = 1; v < arch->vocab; v++)
            best = last[v] > last[best] ? v : best;
        out[i] = ids[seq] = (int32_t)best;
        free(logits);
        fixture_close(&f);
    }
}

static written generate(const lst_arch *arch, lst_weight_form form, size_t positions, size_t threads,
                        const int32_t *from, size_t n, model_sampling s)
{
    fixture f;
    written w = {.n = 0};
    if (fixture_open_generator(&f, arch, form, positions, threads))
        fail_msg("%s", f.err.message);
    model_init_random(f.m, 21);
    if (model_generate(f.m, from, n, &s, take, &w, &f.err) != LST_OK)
        fail_msg("%s", f.err.message);
    fixture_close(&f);
    return w;
}

static void the_cache_gives_what_the_full_forward_gives(void **state)
{
    (void)state;
    for (int family = 0; family < LST_N_FAMILIES; family++) {
        lst_arch arch = fixture_arch((lst_family)family, family % 2);
        int32_t want[12];
        continue_slowly(&arch, want, 5, 12);
        written w = generate(&arch, LST_WEIGHT_F32, 20, 2, prompt, 5, (model_sampling){.max_tokens = 12, .stop = -1});
        assert_int_equal(w.n, 12);
        assert_memory_equal(w.ids, want, sizeof want);
    }
}

static void a_training_plan_generates_too(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 1);
    lst_recipe r = fixture_recipe();
    fixture f;
    written w = {.n = 0};
    double loss;
    model_sampling s = {.max_tokens = 6, .stop = -1};
    assert_int_equal(fixture_open(&f, &arch, &r, 2), 0);
    model_init_random(f.m, 21);
    model_set_poison(f.m, true);
    fixture_tokens(&f, 1);
    assert_int_equal(model_step(f.m, 1.0f, NULL, &loss, &f.err), LST_OK);
    assert_int_equal(model_generate(f.m, prompt, 5, &s, take, &w, &f.err), LST_OK);
    fixture_close(&f);
    written fresh = generate(&arch, LST_WEIGHT_F32, 11, 1, prompt, 5, s);
    assert_int_equal(w.n, 6);
    assert_memory_equal(w.ids, fresh.ids, 6 * sizeof *w.ids);
}

/* A prompt longer than a block, read in blocks of 32 or token by token, as the cache is large or tiny. */
static void long_prompts_and_full_caches(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_QWEN3, 0);
    int32_t long_prompt[50];
    for (size_t i = 0; i < 50; i++)
        long_prompt[i] = (int32_t)(i * 7 % 53);
    model_sampling s = {.max_tokens = 100, .stop = -1};
    written w = generate(&arch, LST_WEIGHT_F32, 60, 2, long_prompt, 50, s);
    assert_int_equal(w.n, 100); /* far beyond the cache of 60 */
    written tail = generate(&arch, LST_WEIGHT_F32, 8, 1, long_prompt, 50, s);
    written same = generate(&arch, LST_WEIGHT_F32, 8, 1, long_prompt + 42, 8, s);
    assert_int_equal(tail.n, 100);
    assert_memory_equal(tail.ids, same.ids, 100 * sizeof *tail.ids);
}

static void sampling_depends_on_the_seed_alone(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_QWEN2, 1);
    model_sampling s = {.max_tokens = 40, .temperature = 1.0, .top_k = 9, .seed = 4, .stop = -1};
    written one = generate(&arch, LST_WEIGHT_SPLIT32, 60, 1, prompt, 5, s);
    written two = generate(&arch, LST_WEIGHT_SPLIT32, 60, 2, prompt, 5, s);
    s.seed = 5;
    written other = generate(&arch, LST_WEIGHT_SPLIT32, 60, 1, prompt, 5, s);
    assert_memory_equal(one.ids, two.ids, sizeof one.ids);
    assert_memory_not_equal(one.ids, other.ids, sizeof one.ids);
}

static void top_1_is_greedy(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 0);
    written greedy = generate(&arch, LST_WEIGHT_F32, 40, 1, prompt, 5, (model_sampling){.max_tokens = 30, .stop = -1});
    written top1 = generate(&arch, LST_WEIGHT_F32, 40, 1, prompt, 5,
                            (model_sampling){.max_tokens = 30, .temperature = 2.0, .top_k = 1, .stop = -1});
    assert_memory_equal(greedy.ids, top1.ids, sizeof greedy.ids);
}

/* Frequencies of the first sampled token follow the softmax of the logits, and top-k cuts the rest. */
static void sampling_follows_the_probabilities(void **state)
{
    (void)state;
    enum { DRAWS = 4000, K = 4 };
    lst_arch arch = fixture_arch(LST_FAMILY_GPT2, 1);
    arch.vocab = 12;
    arch.init_range = 0.15;
    size_t all[12] = {0}, top[12] = {0}, n_top = 0;
    const int32_t start[] = {3, 1};
    fixture f;
    assert_int_equal(fixture_open_generator(&f, &arch, LST_WEIGHT_F32, 8, 1), 0);
    model_init_random(f.m, 21);
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        written w = {.n = 0};
        model_sampling s = {.max_tokens = 1, .temperature = 0.8, .seed = seed, .stop = -1};
        assert_int_equal(model_generate(f.m, start, 2, &s, take, &w, &f.err), LST_OK);
        s.top_k = K;
        assert_int_equal(model_generate(f.m, start, 2, &s, take, &w, &f.err), LST_OK);
        all[w.ids[0]]++;
        top[w.ids[1]]++;
    }
    for (size_t v = 0; v < 12; v++) {
        assert_true(all[v] > 0);
        n_top += top[v] > 0;
        assert_true(top[v] == 0 || (double)top[v] > (double)all[v] * 0.9);
    }
    assert_int_equal(n_top, K);
    fixture_close(&f);
}

static void it_stops_where_it_is_told(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 0);
    model_sampling s = {.max_tokens = 20, .stop = -1};
    written w = generate(&arch, LST_WEIGHT_F32, 40, 1, prompt, 5, s);
    s.stop = w.ids[7];
    size_t first = 0;
    while (w.ids[first] != s.stop)
        first++;
    assert_int_equal(generate(&arch, LST_WEIGHT_F32, 40, 1, prompt, 5, s).n, first);
    s.max_tokens = 0;
    assert_int_equal(generate(&arch, LST_WEIGHT_F32, 40, 1, prompt, 5, s).n, 0);
}

static void refuse(fixture *f, const int32_t *ids, size_t n, model_sampling s, const char *says)
{
    written w = {.n = 0};
    assert_int_equal(model_generate(f->m, ids, n, &s, take, &w, &f->err), LST_ERR_ARGUMENT);
    assert_non_null(strstr(f->err.message, says));
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    lst_arch arch = fixture_arch(LST_FAMILY_LLAMA, 0);
    const int32_t bad[] = {1, 53};
    fixture f;
    double loss;
    assert_int_equal(fixture_open_generator(&f, &arch, LST_WEIGHT_F32, 20, 1), 0);
    refuse(&f, prompt, 0, (model_sampling){.max_tokens = 1}, "empty prompt");
    refuse(&f, bad, 2, (model_sampling){.max_tokens = 1}, "prompt token 1 is 53");
    refuse(&f, prompt, 5, (model_sampling){.max_tokens = 1, .temperature = -1.0}, "temperature");
    refuse(&f, prompt, 5, (model_sampling){.max_tokens = 1, .temperature = NAN}, "temperature");
    refuse(&f, prompt, 5, (model_sampling){.max_tokens = 1, .top_k = 5}, "no effect");
    assert_int_equal(model_step(f.m, 1.0f, NULL, &loss, &f.err), LST_ERR_STATE);
    written w = {.stop_at = 3};
    model_init_random(f.m, 21);
    model_sampling s = {.max_tokens = 9, .stop = -1};
    assert_int_equal(model_generate(f.m, prompt, 5, &s, take, &w, &f.err), LST_ERR_INTERRUPTED);
    assert_int_equal(w.n, 3);
    ((float *)model_weight(f.m, 0))[0] = NAN; /* in the embedding of id 0 */
    const int32_t zero[] = {0};
    assert_int_equal(model_generate(f.m, zero, 1, &s, take, &w, &f.err), LST_ERR_NONFINITE);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_gives_what_the_full_forward_gives),
        cmocka_unit_test(a_training_plan_generates_too),
        cmocka_unit_test(long_prompts_and_full_caches),
        cmocka_unit_test(sampling_depends_on_the_seed_alone),
        cmocka_unit_test(top_1_is_greedy),
        cmocka_unit_test(sampling_follows_the_probabilities),
        cmocka_unit_test(it_stops_where_it_is_told),
        cmocka_unit_test(bad_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
