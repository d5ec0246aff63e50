/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/files.h"
#include "ckpt/toy.h"
#include "io/safetensors.h"
#include "numeric/bf16.h"
#include "numeric/f16.h"

/* Weights: bytes as they are, conversion where codecs differ, exact masters, shards, and what is refused. */

static char folder[64];
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lst_test_weights_XXXXXX");
    int failed = mkdtemp(folder) == NULL;
    snprintf(path, sizeof path, "%s/" LST_CKPT_WEIGHTS, folder);
    return failed;
}

static int drop_folder(void **state)
{
    (void)state;
    return lst__remove_tree(folder, NULL) != LST_OK;
}

enum { N = 5003 };

static float value_at(size_t i)
{
    return i == 0 ? 0.0f : i == 1 ? -0.0f : i == 2 ? 65504.0f : i == 3 ? 1e-7f : (float)lst__random_normal(3, 0, i);
}

/* Fills memory of a codec with the rounding of value_at, and answers what the values then are. */
static void fill(lst_codec codec, void *memory, float *exact)
{
    for (size_t i = 0; i < N; i++) {
        float x = value_at(i);
        if (codec == LST_CODEC_F32) {
            memcpy((float *)memory + i, &x, 4);
        } else {
            uint16_t h = codec == LST_CODEC_BF16 ? lst__bf16_from_f32(x) : lst__f16_from_f32(x);
            memcpy((uint16_t *)memory + i, &h, 2);
            x = codec == LST_CODEC_BF16 ? lst__bf16_to_f32(h) : lst__f16_to_f32(h);
        }
        exact[i] = x;
    }
}

static float read_one(lst_codec codec, const void *memory, size_t i)
{
    if (codec == LST_CODEC_F32)
        return ((const float *)memory)[i];
    uint16_t h = ((const uint16_t *)memory)[i];
    return codec == LST_CODEC_BF16 ? lst__bf16_to_f32(h) : lst__f16_to_f32(h);
}

static float rounded(lst_codec codec, float x)
{
    return codec == LST_CODEC_F32    ? x
           : codec == LST_CODEC_BF16 ? lst__bf16_to_f32(lst__bf16_from_f32(x))
                                     : lst__f16_to_f32(lst__f16_from_f32(x));
}

static void test_every_conversion(void **state)
{
    (void)state;
    static const lst_codec codecs[] = {LST_CODEC_F32, LST_CODEC_BF16, LST_CODEC_F16};
    float *memory = calloc(N, 4), *back = calloc(N, 4), *exact = calloc(N, 4);
    for (size_t from = 0; from < 3; from++)
        for (size_t to = 0; to < 3; to++) {
            lst_error err;
            lst_ckpt_tensor t = {.name = "w", .codec = codecs[from], .n_dims = 1, .dims = {N}, .memory = memory};
            fill(codecs[from], memory, exact);
            assert_int_equal(lst_ckpt_save_weights(path, &t, 1, &err), LST_OK);
            t.codec = codecs[to];
            t.memory = back;
            memset(back, 0x77, N * 4);
            assert_int_equal(lst_ckpt_load_weights(path, &t, 1, NULL, &err), LST_OK);
            for (size_t i = 0; i < N; i++) {
                float found = read_one(codecs[to], back, i), expected = rounded(codecs[to], exact[i]);
                assert_memory_equal(&found, &expected, 4);
            }
        }
    free(memory);
    free(back);
    free(exact);
}

/* A float32 file goes into weights and master without loss, and comes out again the same. */
static void test_exact_masters(void **state)
{
    (void)state;
    toy source, t;
    lst_error err = {0};
    assert_int_equal(toy_create(&source, LST_RULE_ADAMW, LST_WEIGHT_F32), LST_OK);
    assert_int_equal(toy_start(&source), LST_OK);
    lst_ckpt_tensor list[TOY_TENSORS];
    toy_list(&source, list);
    assert_int_equal(lst_ckpt_save_weights(path, list, TOY_TENSORS, &err), LST_OK);
    static const lst_weight_form exact_forms[] = {LST_WEIGHT_F32, LST_WEIGHT_BF16_MASTER, LST_WEIGHT_F16_MASTER,
                                                  LST_WEIGHT_SPLIT32};
    for (size_t f = 0; f < 4; f++) {
        assert_int_equal(toy_create(&t, LST_RULE_ADAMW, exact_forms[f]), LST_OK);
        assert_int_equal(lst_optim_reset(t.optim, &err), LST_OK);
        assert_int_equal(lst_ckpt_load_weights_exact(folder, t.optim, NULL, &err), LST_OK);
        char again[160];
        snprintf(again, sizeof again, "%s/again.safetensors", folder);
        assert_int_equal(lst_ckpt_save_weights_f32(again, t.optim, &err), LST_OK);
        for (size_t i = 0; i < TOY_TENSORS; i++) {
            float *values = calloc(t.n_elems[i], 4);
            assert_int_equal(lst_optim_get_weights_f32(t.optim, i, values, &err), LST_OK);
            assert_memory_equal(values, source.weights[i], t.n_elems[i] * 4);
            free(values);
        }
        lst_map first, second;
        assert_int_equal(lst__map_open(path, &first, &err), LST_OK);
        assert_int_equal(lst__map_open(again, &second, &err), LST_OK);
        assert_int_equal(first.n_bytes, second.n_bytes);
        assert_memory_equal(first.data, second.data, first.n_bytes);
        lst__map_close(&first);
        lst__map_close(&second);
        toy_destroy(&t);
    }
    toy_destroy(&source);
}

static void write_text(const char *name, const char *text)
{
    char file[256];
    snprintf(file, sizeof file, "%s/%s", folder, name);
    lst_writer *writer;
    assert_int_equal(lst__writer_open(&writer, file, NULL), LST_OK);
    assert_int_equal(lst__writer_write(writer, text, strlen(text), NULL), LST_OK);
    assert_int_equal(lst__writer_commit(writer, NULL), LST_OK);
}

static void test_shards(void **state)
{
    (void)state;
    float a[2] = {1, 2}, b[3] = {3, 4, 5}, extra[1] = {6};
    char file[256];
    lst_error err;
    lst_ckpt_tensor first = {.name = "a", .codec = LST_CODEC_F32, .n_dims = 1, .dims = {2}, .memory = a};
    lst_ckpt_tensor rest[2] = {{.name = "b", .codec = LST_CODEC_F32, .n_dims = 1, .dims = {3}, .memory = b},
                               {.name = "extra", .codec = LST_CODEC_F32, .n_dims = 1, .dims = {1}, .memory = extra}};
    snprintf(file, sizeof file, "%s/model-00001-of-00002.safetensors", folder);
    assert_int_equal(lst_ckpt_save_weights(file, &first, 1, &err), LST_OK);
    snprintf(file, sizeof file, "%s/model-00002-of-00002.safetensors", folder);
    assert_int_equal(lst_ckpt_save_weights(file, rest, 2, &err), LST_OK);
    write_text("model.safetensors.index.json",
               "{\"metadata\": {\"total_size\": 24}, \"weight_map\": {\"b\": \"model-00002-of-00002.safetensors\", "
               "\"extra\": \"model-00002-of-00002.safetensors\", \"a\": \"model-00001-of-00002.safetensors\"}}");
    float back_a[2] = {0}, back_b[3] = {0};
    lst_ckpt_tensor list[2] = {first, rest[0]};
    list[0].memory = back_a;
    list[1].memory = back_b;
    size_t n_ignored = 0;
    assert_int_equal(lst_ckpt_load_weights(folder, list, 2, &n_ignored, &err), LST_OK);
    assert_memory_equal(a, back_a, sizeof a);
    assert_memory_equal(b, back_b, sizeof b);
    assert_int_equal(n_ignored, 1);
}

static void test_refusals_change_nothing(void **state)
{
    (void)state;
    float a[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0}, zero[6] = {0};
    lst_error err;
    lst_ckpt_tensor good = {.name = "a", .codec = LST_CODEC_F32, .n_dims = 2, .dims = {2, 3}, .memory = a};
    assert_int_equal(lst_ckpt_save_weights(path, &good, 1, &err), LST_OK);
    good.memory = back;
    lst_ckpt_tensor list[2] = {good, good};
    list[1].name = "absent\n";
    assert_int_equal(lst_ckpt_load_weights(path, list, 2, NULL, &err), LST_ERR_STATE);
    assert_non_null(strstr(err.message, "weights of another model: no tensor \"absent?\" among its 1"));
    list[1].name = "a";
    list[1].dims[0] = 3;
    list[1].dims[1] = 2;
    assert_int_equal(lst_ckpt_load_weights(path, list, 2, NULL, &err), LST_ERR_STATE);
    assert_non_null(strstr(err.message, "tensor \"a\" has the shape [2, 3]; [3, 2] is expected"));
    list[1] = good;
    list[1].codec = LST_CODEC_LO16;
    assert_int_equal(lst_ckpt_load_weights(path, list, 2, NULL, &err), LST_ERR_ARGUMENT);
    assert_memory_equal(back, zero, sizeof zero);
    assert_int_equal(lst_ckpt_load_weights(folder, &good, 1, NULL, &err), LST_OK);
    assert_memory_equal(back, a, sizeof a);
    assert_int_equal(lst_ckpt_load_weights("/nonexistent", &good, 1, NULL, &err), LST_ERR_IO);
    unlink(path);
    assert_int_equal(lst_ckpt_load_weights(folder, &good, 1, NULL, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "holds neither model.safetensors nor"));
}

static lst_status ints(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes, lst_error *err)
{
    (void)entry;
    (void)err;
    *data = (const char *)context + offset;
    *n_bytes = 8 - offset;
    return LST_OK;
}

static void test_integers_are_no_weights(void **state)
{
    (void)state;
    char bytes[8] = {0};
    size_t dims[] = {1};
    lst_st_entry entry = {.name = "a", .dtype = LST_ST_I64, .n_dims = 1, .dims = dims};
    lst_st_content content = {.entries = &entry, .n_entries = 1, .source = ints, .context = bytes};
    lst_error err;
    float back[1];
    lst_ckpt_tensor t = {.name = "a", .codec = LST_CODEC_F32, .n_dims = 1, .dims = {1}, .memory = back};
    assert_int_equal(lst__st_write(path, &content, &err), LST_OK);
    assert_int_equal(lst_ckpt_load_weights(path, &t, 1, NULL, &err), LST_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "is stored as I64; F32, BF16 and F16 can be read"));
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_every_conversion),        WITH_FOLDER(test_exact_masters),           WITH_FOLDER(test_shards),
        WITH_FOLDER(test_refusals_change_nothing), WITH_FOLDER(test_integers_are_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
