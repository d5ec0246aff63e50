/* SPDX-License-Identifier: MIT */
#include "cli/bench_optim.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "leanstep/codec.h"

const cli_bench_recipe cli_bench_recipes[] = {
    {"adamw f32", LST_RULE_ADAMW, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"adamw bf16+master", LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, LST_CODEC_BF16, LST_CODEC_F32},
    {"adamw split32", LST_RULE_ADAMW, LST_WEIGHT_SPLIT32, LST_CODEC_BF16, LST_CODEC_F32},
    {"adamw q8", LST_RULE_ADAMW, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_Q8},
    {"adamw bf16+master+q8", LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, LST_CODEC_BF16, LST_CODEC_Q8},
    {"adamw split24+q8", LST_RULE_ADAMW, LST_WEIGHT_SPLIT24, LST_CODEC_BF16, LST_CODEC_Q8},
    {"adamw bf16-sr+q8", LST_RULE_ADAMW, LST_WEIGHT_BF16_SR, LST_CODEC_BF16, LST_CODEC_Q8},
    {"adamw q4", LST_RULE_ADAMW, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_Q4},
    {"adamw split24+q4", LST_RULE_ADAMW, LST_WEIGHT_SPLIT24, LST_CODEC_BF16, LST_CODEC_Q4},
    {"adamw q8-dynamic", LST_RULE_ADAMW, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_Q8_DYNAMIC},
    {"adam f32", LST_RULE_ADAM, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"lion f32", LST_RULE_LION, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"lion q8", LST_RULE_LION, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_Q8},
    {"rmsprop f32", LST_RULE_RMSPROP, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"momentum f32", LST_RULE_MOMENTUM, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"momentum q8", LST_RULE_MOMENTUM, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_Q8},
    {"nesterov f32", LST_RULE_NESTEROV, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"sgd f32", LST_RULE_SGD, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"lars f32", LST_RULE_LARS, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"lamb f32", LST_RULE_LAMB, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"adafactor f32", LST_RULE_ADAFACTOR, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"adam-mini f32", LST_RULE_ADAM_MINI, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
    {"schedule-free-adamw f32", LST_RULE_SCHEDULE_FREE, LST_WEIGHT_F32, LST_CODEC_F32, LST_CODEC_F32},
};
const size_t cli_bench_n_recipes = sizeof cli_bench_recipes / sizeof *cli_bench_recipes;

enum {
    STAGGER = 576, /* as the optimizer's own block: arrays apart modulo 4,096 */
    TASK = 32768,  /* elements of a task of the plain loop */
    MAX_TIMINGS = 4096,
    MIN_TIMING_NS = 2000000 /* what fits in cache is stepped often enough for the clock */
};

/* ---- the plain loop ---- */

typedef struct stream {
    lst_arena arena;
    float *arrays[4];
    size_t n_elems;
} stream;

static lst_status stream_open(stream *s, size_t n_elems, lst_pool *pool, lst_error *err)
{
    const size_t each = (n_elems * sizeof(float) + 4095) / 4096 * 4096;
    s->n_elems = n_elems;
    lst_status status = lst__arena_reserve(&s->arena, 4 * (each + STAGGER), pool, err);
    for (size_t i = 0; i < 4 && status == LST_OK; i++)
        s->arrays[i] = (float *)(s->arena.base + i * (each + STAGGER));
    return status;
}

static void stream_task(void *context, size_t index, size_t worker)
{
    (void)worker;
    const stream *s = context;
    const size_t first = index * TASK;
    const lst__rule_args args = {.n = s->n_elems - first < TASK ? s->n_elems - first : TASK,
                                 .w = s->arrays[0] + first,
                                 .g = s->arrays[1] + first,
                                 .s = {s->arrays[2] + first, s->arrays[3] + first}};
    lst__kernels_get()->rules[LST__LOOP_stream](&args);
}

static void stream_once(const stream *s, lst_pool *pool)
{
    lst_pool_run(pool, (s->n_elems + TASK - 1) / TASK, stream_task, (void *)s);
}

/* ---- a recipe ---- */

typedef struct subject {
    lst_optim *optim;
    lst_arena arena;
    void *grads;
} subject;

/* Small normal numbers in the gradient's codec, the same at every step. */
static void fill_grads(void *grads, lst_codec codec, size_t n_elems)
{
    for (size_t i = 0; i < n_elems; i++) {
        const float g = (float)(lst__random_unit(1, 2, i) - 0.5) * 0.02f;
        uint32_t bits;
        memcpy(&bits, &g, sizeof bits);
        if (codec == LST_CODEC_F32)
            ((float *)grads)[i] = g;
        else
            ((uint16_t *)grads)[i] = (uint16_t)(bits >> 16);
    }
}

static lst_status subject_bind(subject *s, const lst_optim_options *options, size_t n_elems, lst_error *err)
{
    const size_t page = 4096;
    const size_t weights = (lst_codec_bytes(lst_weight_form_codec(options->weights), n_elems) + page - 1) / page * page;
    const size_t grads = (lst_codec_bytes(options->grads, n_elems) + page - 1) / page * page + STAGGER;
    const size_t block = (lst_optim_block_bytes(s->optim) + page - 1) / page * page;
    const size_t at_block = (weights + grads + page - 1) / page * page;
    lst_status status =
        lst__arena_reserve(&s->arena, at_block + block + lst_optim_scratch_bytes(s->optim), options->pool, err);
    if (status != LST_OK)
        return status;
    s->grads = s->arena.base + weights + STAGGER;
    fill_grads(s->grads, options->grads, n_elems);
    if ((status = lst_optim_bind_weights(s->optim, 0, s->arena.base, err)) != LST_OK ||
        (status = lst_optim_bind(s->optim, s->arena.base + at_block, block, err)) != LST_OK ||
        (status = lst_optim_bind_scratch(s->optim, s->arena.base + at_block + block, lst_optim_scratch_bytes(s->optim),
                                         err)) != LST_OK)
        return status;
    return lst_optim_reset(s->optim, err);
}

static lst_status subject_open(subject *s, const cli_bench_recipe *recipe, const cli_bench_setup *setup, lst_error *err)
{
    lst_hyper hyper;
    lst_hyper_default(recipe->rule, &hyper);
    const lst_optim_options options = {.struct_size = sizeof options,
                                       .rule = recipe->rule,
                                       .weights = recipe->weights,
                                       .grads = recipe->grads,
                                       .state = recipe->state,
                                       .n_groups = 1,
                                       .groups = &hyper,
                                       .pool = setup->pool};
    /* As a matrix of rows of 1,024 where that goes: what rules that look at the shape are made for. */
    const size_t columns = setup->n_elems % 1024 == 0 ? 1024 : setup->n_elems;
    const lst_tensor tensor = {.name = "w", .n_dims = 2, .dims = {setup->n_elems / columns, columns}};
    lst_status status = lst_optim_create(&s->optim, &options, &tensor, 1, err);
    return status == LST_OK ? subject_bind(s, &options, setup->n_elems, err) : status;
}

static void subject_close(subject *s)
{
    lst_optim_destroy(s->optim);
    lst__arena_release(&s->arena);
}

/* Bytes a step reads and writes again, by parameter: gradients and a master's rounded weights go one way only. */
static double bytes_moved(const cli_bench_recipe *recipe, const lst_optim *optim, size_t n_elems)
{
    double bytes = (double)lst_codec_bytes(recipe->grads, n_elems);
    const double weights = (double)lst_codec_bytes(lst_weight_form_codec(recipe->weights), n_elems);
    const bool one_way = lst_weight_form_master(recipe->weights) == LST_CODEC_F32;
    bytes += one_way ? weights : 2 * weights;
    bytes += 2 * (double)lst_optim_state_bytes(optim);
    return bytes / (double)n_elems;
}

/* ---- timing ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_stream(const stream *s, lst_pool *pool, size_t repeats)
{
    const uint64_t start = lst__clock_ns();
    for (size_t i = 0; i < repeats; i++)
        stream_once(s, pool);
    return (double)(lst__clock_ns() - start) / (double)repeats;
}

static double time_steps(const subject *s, size_t repeats, lst_status *status, lst_error *err)
{
    const void *grads[1] = {s->grads};
    const uint64_t start = lst__clock_ns();
    for (size_t i = 0; i < repeats && *status == LST_OK; i++)
        *status = lst_optim_step(s->optim, grads, (lst_grad_scale){1, 1}, err);
    return (double)(lst__clock_ns() - start) / (double)repeats;
}

static lst_status measure(const subject *s, const stream *plain, const cli_bench_setup *setup, cli_bench_row *out,
                          lst_error *err)
{
    static double timings[MAX_TIMINGS];
    lst_status status = LST_OK;
    double best_stream = time_stream(plain, setup->pool, 1);
    const double first = time_steps(s, 1, &status, err);
    const size_t repeats = first < MIN_TIMING_NS ? (size_t)(MIN_TIMING_NS / first) + 1 : 1;
    const uint64_t start = lst__clock_ns();
    size_t n = 0;
    while (status == LST_OK && n < MAX_TIMINGS && (n < 5 || (double)(lst__clock_ns() - start) < setup->seconds * 1e9)) {
        const double nanoseconds = time_stream(plain, setup->pool, repeats);
        best_stream = nanoseconds < best_stream ? nanoseconds : best_stream;
        timings[n++] = time_steps(s, repeats, &status, err);
    }
    if (status != LST_OK)
        return status;
    qsort(timings, n, sizeof *timings, compare_doubles);
    out->best = (double)setup->n_elems * 1e9 / timings[0];
    out->median = (double)setup->n_elems * 1e9 / timings[n / 2];
    out->stream_gb_per_s = 28.0 * (double)setup->n_elems / best_stream;
    out->n_timings = n;
    return LST_OK;
}

lst_status cli_bench_run(const cli_bench_recipe *recipe, const cli_bench_setup *setup, cli_bench_row *out,
                         lst_error *err)
{
    subject s = {0};
    stream plain = {0};
    lst_status status = stream_open(&plain, setup->n_elems, setup->pool, err);
    if (status == LST_OK)
        status = subject_open(&s, recipe, setup, err);
    if (status == LST_OK) {
        out->bytes_per_param = bytes_moved(recipe, s.optim, setup->n_elems);
        status = measure(&s, &plain, setup, out, err);
    }
    subject_close(&s);
    lst__arena_release(&plain.arena);
    return status;
}
