/* SPDX-License-Identifier: MIT
 *
 * Optimizer state under other programs' names and back: bytes that stay, values that are decoded, what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "base/files.h"
#include "ckpt/toy.h"
#include "io/safetensors.h"
#include "store/codec.h"

static char folder[64];
static char own[128], there[128], back[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lst_test_convert_XXXXXX");
    int failed = mkdtemp(folder) == NULL;
    snprintf(own, sizeof own, "%s/" LST_CKPT_OPTIM, folder);
    snprintf(there, sizeof there, "%s/there", folder);
    snprintf(back, sizeof back, "%s/back", folder);
    return failed;
}

static int drop_folder(void **state)
{
    (void)state;
    return lst__remove_tree(folder, NULL) != LST_OK;
}

/* An optimizer after three steps, saved. Tensors of 1, 1,887 and 5,000 values: only the last has blocks. */
static void save(toy *t, lst_rule rule, lst_weight_form form, lst_codec state)
{
    lst_tensor tensors[TOY_TENSORS];
    lst_hyper groups[2];
    lst_error err;
    toy_describe(tensors);
    lst_hyper_default(rule, &groups[0]);
    groups[1] = groups[0];
    groups[1].weight_decay = 0;
    assert_int_equal(toy_create_coded(t, rule, form, state, tensors, TOY_TENSORS, groups, 42), LST_OK);
    assert_int_equal(toy_start(t), LST_OK);
    for (int64_t step = 1; step <= 3; step++)
        assert_int_equal(toy_step(t, step), LST_OK);
    assert_int_equal(lst_ckpt_save_optim(own, t->optim, "{\"position\": 7}", &err), LST_OK);
}

static void convert(const char *from, const char *to, lst_ckpt_layout layout, lst_codec state)
{
    lst_error err;
    if (lst_ckpt_convert_optim(from, to, layout, state, &err) != LST_OK)
        fail_msg("%s", err.message);
}

static void same_file(const char *a, const char *b)
{
    lst_map x, y;
    assert_int_equal(lst__map_open(a, &x, NULL), LST_OK);
    assert_int_equal(lst__map_open(b, &y, NULL), LST_OK);
    assert_int_equal(x.n_bytes, y.n_bytes);
    assert_memory_equal(x.data, y.data, x.n_bytes);
    lst__map_close(&x);
    lst__map_close(&y);
}

static const lst_st_tensor *find(const lst_st *st, const char *name, lst_st_dtype dtype, size_t n_elems)
{
    const lst_st_tensor *t = lst__st_find(st, name);
    if (!t)
        fail_msg("%s is missing", name);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->n_elems, n_elems);
    return t;
}

static void there_and_back_is_the_same_file(void **state)
{
    (void)state;
    static const struct {
        lst_rule rule;
        lst_weight_form form;
        lst_codec state;
    } cases[] = {
        {LST_RULE_ADAMW, LST_WEIGHT_BF16_MASTER, LST_CODEC_Q8_DYNAMIC},
        {LST_RULE_ADAMW, LST_WEIGHT_SPLIT24, LST_CODEC_Q8_DYNAMIC_2048},
        {LST_RULE_ADAM, LST_WEIGHT_F32, LST_CODEC_F32},
        {LST_RULE_LION, LST_WEIGHT_BF16_SR, LST_CODEC_Q8_DYNAMIC},
        {LST_RULE_MOMENTUM, LST_WEIGHT_SPLIT32, LST_CODEC_Q8_DYNAMIC},
        {LST_RULE_RMSPROP, LST_WEIGHT_F32, LST_CODEC_Q8_DYNAMIC},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        toy t;
        save(&t, cases[i].rule, cases[i].form, cases[i].state);
        convert(own, there, LST_CKPT_BITSANDBYTES, LST_N_CODECS);
        lst_error err;
        assert_int_equal(lst_ckpt_load_optim(there, t.optim, &err), LST_ERR_FORMAT);
        assert_non_null(strstr(err.message, "bitsandbytes"));
        convert(there, back, LST_CKPT_LEANSTEP, LST_N_CODECS);
        same_file(own, back);
        assert_int_equal(lst_ckpt_load_optim(back, t.optim, &err), LST_OK);
        toy_destroy(&t);
    }
    for (unsigned rule = 0; rule < LST_N_RULES; rule++) { /* float32: PyTorch's layout loses nothing either */
        toy t;
        save(&t, (lst_rule)rule, LST_WEIGHT_SPLIT24, LST_CODEC_F32);
        convert(own, there, LST_CKPT_TORCH, LST_N_CODECS);
        convert(there, back, LST_CKPT_LEANSTEP, LST_N_CODECS);
        same_file(own, back);
        toy_destroy(&t);
    }
}

static void names_and_bytes_are_bitsandbytes(void **state)
{
    (void)state;
    toy t;
    lst_st *st;
    save(&t, LST_RULE_ADAMW, LST_WEIGHT_F32, LST_CODEC_Q8_DYNAMIC);
    convert(own, there, LST_CKPT_BITSANDBYTES, LST_N_CODECS);
    assert_int_equal(lst__st_open(&st, there, NULL), LST_OK);
    const lst_slot *m = lst_optim_slot(t.optim, 2, 0);
    const lst_st_tensor *codes = find(st, "state.bias.state1", LST_ST_U8, 5000);
    assert_memory_equal(codes->data, m->memory, 5000);
    const lst_st_tensor *scales = find(st, "state.bias.absmax1", LST_ST_F32, 20); /* 5,000 / 256, up */
    assert_memory_equal(scales->data, (char *)m->memory + 5000, 80);
    find(st, "state.bias.qmap1", LST_ST_F32, 256);
    find(st, "state.bias.state2", LST_ST_U8, 5000);
    find(st, "state.scalar.state1", LST_ST_F32, 1);
    int64_t steps;
    memcpy(&steps, find(st, "state.scalar.step", LST_ST_I64, 1)->data, sizeof steps);
    assert_int_equal(steps, 2); /* it had no gradient once */
    assert_non_null(strstr(lst__st_metadata(st, "param_groups"), "\"betas\":[0.9"));
    lst__st_close(st);
    toy_destroy(&t);
}

static void values_are_decoded_for_pytorch(void **state)
{
    (void)state;
    static const lst_codec states[] = {LST_CODEC_Q8, LST_CODEC_Q4, LST_CODEC_Q8_DYNAMIC};
    for (size_t i = 0; i < 3; i++) {
        toy t;
        lst_st *st;
        static float want[5000];
        save(&t, LST_RULE_ADAMW, LST_WEIGHT_F32, states[i]);
        convert(own, there, LST_CKPT_TORCH, LST_N_CODECS);
        assert_int_equal(lst__st_open(&st, there, NULL), LST_OK);
        for (size_t k = 0; k < 2; k++) {
            const lst_slot *s = lst_optim_slot(t.optim, 2, k);
            lst__codec(s->codec)->decode(s->memory, 5000, 0, 5000, want);
            assert_memory_equal(find(st, k ? "state.bias.exp_avg_sq" : "state.bias.exp_avg", LST_ST_F32, 5000)->data,
                                want, sizeof want);
        }
        float steps;
        memcpy(&steps, find(st, "state.bias.step", LST_ST_F32, 1)->data, sizeof steps);
        assert_true(steps == 3.0f);
        lst__st_close(st);
        if (states[i] != LST_CODEC_Q8_DYNAMIC) { /* native codes are levels: coding them again finds them */
            convert(there, back, LST_CKPT_LEANSTEP, states[i]);
            same_file(own, back);
        }
        toy_destroy(&t);
    }
}

static void refused(lst_ckpt_layout layout, lst_codec codec, const char *word)
{
    lst_error err = {.message = ""};
    assert_int_not_equal(lst_ckpt_convert_optim(own, there, layout, codec, &err), LST_OK);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" does not name %s", err.message, word);
    assert_false(lst__is_file(there));
}

static void what_has_no_place_is_refused(void **state)
{
    (void)state;
    toy t;
    unlink(there);
    save(&t, LST_RULE_ADAMW, LST_WEIGHT_F32, LST_CODEC_Q8);
    refused(LST_CKPT_BITSANDBYTES, LST_N_CODECS, "q8-dynamic");
    refused(LST_CKPT_TORCH, LST_CODEC_Q8, "float32");
    toy_destroy(&t);
    save(&t, LST_RULE_ADAM_MINI, LST_WEIGHT_F32, LST_CODEC_F32);
    refused(LST_CKPT_BITSANDBYTES, LST_N_CODECS, "adam-mini");
    toy_destroy(&t);
}

/* ---- files of others ---- */

typedef struct foreign {
    size_t n;
    lst_st_entry entries[8];
    const void *data[8];
    size_t bytes[8];
} foreign;

static lst_status foreign_source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes,
                                 lst_error *err)
{
    (void)err;
    const foreign *f = context;
    *data = (const char *)f->data[entry] + offset;
    *n_bytes = f->bytes[entry] - offset;
    return LST_OK;
}

static void put(foreign *f, const char *name, lst_st_dtype dtype, const size_t *dim, const void *data)
{
    f->entries[f->n] = (lst_st_entry){.name = name, .dtype = dtype, .n_dims = dim != NULL, .dims = dim};
    f->data[f->n] = data;
    f->bytes[f->n++] = (dim ? *dim : 1) * lst__st_dtype_bits(dtype) / 8;
}

/* What a Python script writes from bitsandbytes' state_dict: no word of Leanstep in it. */
static void a_file_without_our_metadata_is_read(void **state)
{
    (void)state;
    static const size_t n = 4100, blocks = 17, levels = 256;
    static uint8_t codes[4100];
    static float scales[17], map[256];
    const int64_t step = 12;
    foreign f = {0};
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint8_t)(i % 251);
    for (size_t i = 0; i < blocks; i++)
        scales[i] = 0.5f + (float)i;
    put(&f, "state.a.b.state1", LST_ST_U8, &n, codes);
    put(&f, "state.a.b.state2", LST_ST_U8, &n, codes);
    put(&f, "state.a.b.absmax1", LST_ST_F32, &blocks, scales);
    put(&f, "state.a.b.absmax2", LST_ST_F32, &blocks, scales);
    put(&f, "state.a.b.step", LST_ST_I64, NULL, &step);
    const lst_st_pair pair = {"param_groups", "[{\"params\":[\"a.b\"],\"lr\":0.01,\"betas\":[0.8,0.95]}]"};
    lst_st_content content = {.entries = f.entries,
                              .n_entries = f.n,
                              .metadata = &pair,
                              .n_metadata = 1,
                              .source = foreign_source,
                              .context = &f};
    assert_int_equal(lst__st_write(there, &content, NULL), LST_OK);
    convert(there, back, LST_CKPT_LEANSTEP, LST_N_CODECS);
    lst_st *st;
    assert_int_equal(lst__st_open(&st, back, NULL), LST_OK);
    const lst_st_tensor *t = find(st, "state.a.b.exp_avg", LST_ST_U8, 4100 + 17 * 4);
    assert_memory_equal(t->data, codes, n);
    assert_memory_equal(t->data + n, scales, sizeof scales);
    assert_string_equal(lst__st_metadata(st, "leanstep.begun"), "12");
    assert_string_equal(lst__st_metadata(st, "leanstep.state"), "q8-dynamic");
    assert_non_null(strstr(lst__st_metadata(st, "leanstep.groups"), "\"beta2\":0.9"));
    lst__st_close(st);

    lst_error err = {.message = ""};
    put(&f, "state.a.b.qmap1", LST_ST_F32, &levels, map); /* all zeros: a map of another kind */
    content.n_entries = f.n;
    assert_int_equal(lst__st_write(there, &content, NULL), LST_OK);
    assert_int_equal(lst_ckpt_convert_optim(there, back, LST_CKPT_LEANSTEP, LST_N_CODECS, &err), LST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "qmap1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back_is_the_same_file),     cmocka_unit_test(names_and_bytes_are_bitsandbytes),
        cmocka_unit_test(values_are_decoded_for_pytorch),      cmocka_unit_test(what_has_no_place_is_refused),
        cmocka_unit_test(a_file_without_our_metadata_is_read),
    };
    return cmocka_run_group_tests_name("ckpt_convert", tests, make_folder, drop_folder);
}
