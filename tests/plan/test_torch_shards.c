/* SPDX-License-Identifier: MIT
 *
 * Sharding to the byte, llm.c's arenas to the MiB, adapter counts as published.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "leanstep/estimate.h"

static const lst_zero_sizes paper = {2, 2, 12};

static uint64_t zero(const char *model, size_t ranks, unsigned stage, lst_sharding sharding)
{
    lst_shape shape;
    lst_error err;
    uint64_t bytes = 0;
    assert_int_equal(lst_shape_by_name(model, &shape, &err), LST_OK);
    assert_int_equal(lst_zero_bytes(&shape, ranks, stage, sharding, &paper, &bytes, &err), LST_OK);
    return bytes;
}

static void zero_stages_of_llama_8b_on_8_ranks(void **state)
{
    (void)state;
    const uint64_t p = 8030261248u; /* 8 divides it: 1,003,782,656 a rank */
    assert_int_equal(zero("Llama-3.1-8B", 8, 0, LST_SHARD_FLAT), 16 * p);
    assert_int_equal(zero("Llama-3.1-8B", 8, 1, LST_SHARD_FLAT), 4 * p + 12 * (p / 8));
    assert_int_equal(zero("Llama-3.1-8B", 8, 2, LST_SHARD_FLAT), 2 * p + 14 * (p / 8));
    assert_int_equal(zero("Llama-3.1-8B", 8, 3, LST_SHARD_FLAT), 16 * (p / 8));
    /* the table's GiB */
    assert_int_equal(zero("Llama-3.1-8B", 8, 1, LST_SHARD_FLAT) * 100 >> 30, 4113);
    assert_int_equal(zero("Llama-3.2-1B", 4, 2, LST_SHARD_FLAT) * 100 >> 30, 633);
    assert_int_equal(zero("Qwen2.5-7B", 8, 3, LST_SHARD_FLAT) * 100 >> 30, 1418);
}

static void ranks_that_do_not_divide_are_padded(void **state)
{
    (void)state;
    const uint64_t p = 124439808;
    assert_int_equal(zero("gpt2", 7, 3, LST_SHARD_FLAT), 16 * ((p + 6) / 7));
    /* by rows on 7 ranks, a layer: 110 rows of 768 become 110 = ceil(768 / 7) and so on, worked out by hand:
     * wte 50257 -> 7180, wpe 1024 -> 147; ln 4 * 110; c_attn 110 * 2304 + 330; c_proj 110 * 768 + 110;
     * c_fc 110 * 3072 + 439; mlp c_proj 439 * 768 + 110; ln_f 2 * 110 */
    const uint64_t layer = 4 * 110 + 110 * 2304 + 330 + 110 * 768 + 110 + 110 * 3072 + 439 + 439 * 768 + 110;
    const uint64_t rows = (7180 + 147) * 768 + 12 * layer + 2 * 110;
    assert_int_equal(zero("gpt2", 7, 3, LST_SHARD_ROWS), 16 * rows);
    assert_int_equal(zero("gpt2", 7, 2, LST_SHARD_ROWS), 2 * p + 14 * rows);
}

static void one_rank_is_no_sharding(void **state)
{
    (void)state;
    for (size_t i = 0; lst_shape_builtin(i); i++) {
        for (unsigned stage = 0; stage <= 3; stage++) {
            for (int sharding = 0; sharding < 2; sharding++) {
                lst_shape shape;
                lst_error err;
                assert_int_equal(lst_shape_by_name(lst_shape_builtin(i), &shape, &err), LST_OK);
                assert_int_equal(zero(lst_shape_builtin(i), 1, stage, (lst_sharding)sharding),
                                 16 * lst_shape_params(&shape));
            }
        }
    }
    lst_shape shape;
    lst_error err;
    uint64_t bytes = 0;
    assert_int_equal(lst_shape_by_name("gpt2", &shape, &err), LST_OK);
    assert_int_equal(lst_zero_bytes(&shape, 2, 4, LST_SHARD_FLAT, &paper, &bytes, &err), LST_ERR_ARGUMENT);
    assert_int_equal(lst_zero_bytes(&shape, 0, 1, LST_SHARD_FLAT, &paper, &bytes, &err), LST_ERR_ARGUMENT);
}

static uint64_t arena_mib(const char *model, size_t batch, unsigned recompute)
{
    lst_shape shape;
    lst_error err;
    assert_int_equal(lst_shape_by_name(model, &shape, &err), LST_OK);
    return (lst_llmc_arena_bytes(&shape, 50304, batch, 1024, recompute, true) >>
            20); /* the program prints whole MiB, cut off */
}

static void llmc_arenas_are_exact_to_the_mib(void **state)
{
    (void)state;
    assert_int_equal(arena_mib("gpt2", 4, 1), 1326);
    assert_int_equal(arena_mib("gpt2", 56, 1), 18564);
    assert_int_equal(arena_mib("gpt2-xl", 16, 0), 40409);
}

static void adapter_counts_are_the_published_ones(void **state)
{
    (void)state;
    const unsigned qv = LST_TARGET_Q | LST_TARGET_V, mlp = LST_TARGET_GATE | LST_TARGET_UP | LST_TARGET_DOWN;
    const struct {
        const char *model;
        size_t rank;
        unsigned targets;
        bool dora;
        uint64_t count;
    } published[] = {
        {"Llama-2-7b-hf", 8, LST_TARGET_Q | LST_TARGET_V, false, 4194304},
        {"Llama-2-13b-hf", 8, qv, false, 6553600},
        {"Llama-3.2-3B", 32, qv, false, 9175040},
        {"Llama-3.2-3B", 64, qv, false, 18350080},
        {"Llama-3.2-3B", 10, mlp, false, 9461760},
        {"Llama-3.2-3B", 32, qv, true, 9289728},
        {"SmolLM2-135M", 1, LST_TARGET_ALL, false, 305280},
        {"gemma-3-270m", 1, LST_TARGET_ALL, false, 237312},
        {"Qwen2.5-7B", 1, LST_TARGET_ALL, false, 2523136},
        {"Llama-3.1-8B", 1, qv, false, 425984},
        {"Qwen3-4B", 1, LST_TARGET_O, false, 239616},
    };
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        lst_torch_run run;
        lst_estimate *e = NULL;
        lst_error err;
        lst_torch_run_default(&run);
        assert_int_equal(lst_shape_by_name(published[i].model, &run.shape, &err), LST_OK);
        run.lora = published[i].targets;
        run.lora_rank = published[i].rank;
        run.dora = published[i].dora;
        assert_int_equal(lst_torch_estimate(&e, &run, &err), LST_OK);
        assert_int_equal(e->trainable, published[i].count);
        lst_estimate_destroy(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_stages_of_llama_8b_on_8_ranks),
        cmocka_unit_test(ranks_that_do_not_divide_are_padded),
        cmocka_unit_test(one_rank_is_no_sharding),
        cmocka_unit_test(llmc_arenas_are_exact_to_the_mib),
        cmocka_unit_test(adapter_counts_are_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
