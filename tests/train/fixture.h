/* SPDX-License-Identifier: MIT
 *
 * A small model, a small text, and runs of a few steps: what the tests of this room share.
 */
#ifndef TESTS_TRAIN_FIXTURE_H
#define TESTS_TRAIN_FIXTURE_H

#include "data/temp_folder.h"

#include <math.h>

#include "base/fail.h"
#include "train/loop.h"

/* 2 layers of 16, 4 heads, 2 of them for keys; byte-level. */
static inline lst_arch small_arch(void)
{
    lst_arch arch;
    lst_arch_default(LST_FAMILY_LLAMA, &arch);
    arch.vocab = 257;
    arch.hidden = 16;
    arch.layers = 2;
    arch.heads = 4;
    arch.kv_heads = 2;
    arch.head_dim = 4;
    arch.ffn = 24;
    arch.max_positions = 64;
    arch.tied = true;
    return arch;
}

/* 12 documents of words drawn from a short list: something to learn in a few steps. */
static inline void write_text(const temp_folder *folder, const char *name)
{
    static const char *const words[] = {"plan ", "arena ", "weights ", "gradient ", "step ", "byte ", "moment "};
    uint64_t state = 12345;
    for (int doc = 0; doc < 12; doc++) {
        char text[600] = "", path[64];
        for (int i = 0; i < 60; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            strcat(text, words[(state >> 33) % 7]);
        }
        snprintf(path, sizeof path, "%s/doc%02d.txt", name, doc);
        temp_write(folder, path, text);
    }
}

static inline train_settings small_settings(const temp_folder *folder)
{
    train_settings s;
    train_settings_default(&s);
    s.arch = small_arch();
    snprintf(s.data, sizeof s.data, "%s", temp_path(folder, "text"));
    strcpy(s.model, "small");
    s.recipe.batch = 2;
    s.recipe.seq = 24;
    s.recipe.accumulation = 2;
    s.recipe.loss_chunk = 16;
    s.recipe.hyper.lr = 3e-3;
    s.schedule.total_steps = 12;
    s.schedule.warmup_steps = 2;
    s.eval_every = 4;
    s.eval_sequences = 5;
    s.save_every = 5;
    s.seed = 7;
    return s;
}

/* An observer that says nothing and stops after `stop_at` steps (0: never). */
typedef struct quiet {
    int64_t stop_at, step;
    size_t n_saves;
} quiet;

static inline void quiet_step(void *user, const train_progress *p)
{
    ((quiet *)user)->step = p->step;
}

static inline void quiet_valid(void *user, int64_t step, double loss)
{
    (void)user, (void)step, (void)loss;
}

static inline void quiet_save(void *user, int64_t step)
{
    (void)step;
    ((quiet *)user)->n_saves++;
}

static inline bool quiet_stop(void *user)
{
    quiet *q = user;
    return q->stop_at && q->step >= q->stop_at;
}

static inline train_observer quiet_observer(quiet *q)
{
    return (train_observer){q, quiet_step, quiet_valid, quiet_save, quiet_stop};
}

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        lst_error err_ = {0};                                                                                          \
        lst_error *err = &err_;                                                                                        \
        if ((call) != LST_OK)                                                                                          \
            fail_msg("%s", err_.message);                                                                              \
    } while (0)

/* The call fails with this status and a message that holds `says`. */
#define FAILS(call, status, says)                                                                                      \
    do {                                                                                                               \
        lst_error err_ = {0};                                                                                          \
        lst_error *err = &err_;                                                                                        \
        assert_int_equal((call), status);                                                                              \
        if (!strstr(err_.message, says))                                                                               \
            fail_msg("\"%s\" does not say \"%s\"", err_.message, says);                                                \
    } while (0)

/* All weights and slots of a run in one hash. */
static inline uint64_t state_hash(const train_run *run)
{
    uint64_t hash = 14695981039346656037u;
    const train_engine *e = run->engine;
    for (size_t i = 0; i < e->n_tensors; i++)
        for (size_t s = 0; s <= lst_optim_slot_count(e->optim, i); s++) {
            const lst_slot *slot = s ? lst_optim_slot(e->optim, i, s - 1) : NULL;
            const lst_buffer *w = lst_plan_find(run->plan, LST_BUFFER_WEIGHT, -1, i);
            const unsigned char *bytes = slot ? slot->memory : model_weight(e->model, i);
            for (size_t k = 0; k < (slot ? slot->bytes : w->bytes); k++)
                hash = (hash ^ bytes[k]) * 1099511628211u;
        }
    return hash;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_folder_make, temp_folder_remove)

#endif
