/* SPDX-License-Identifier: MIT */
#include "plan/torch_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

/* The script's gpt2 configurations have 1,024 positions. */
#define GPT2_POSITIONS 1024

static lst_status read_shape(const lst_csv *csv, size_t row, lst_shape *s, lst_error *err)
{
    const char *family = lst__csv_get(csv, row, "family");
    memset(s, 0, sizeof *s);
    if (family && strcmp(family, "gpt2") == 0)
        s->family = LST_SHAPE_GPT2;
    else if (family && strcmp(family, "llama") == 0)
        s->family = LST_SHAPE_LLAMA;
    else if (family && strcmp(family, "qwen2") == 0)
        s->family = LST_SHAPE_QWEN2;
    else
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: line %zu: family \"%.40s\"; gpt2, llama or qwen2 was expected",
                         csv->path, csv->line[row + 1], family ? family : "");
    snprintf(s->name, sizeof s->name, "%s", family);
    uint64_t tied = 0;
    const struct {
        const char *column;
        size_t *out;
    } sizes[] = {{"hidden", &s->hidden}, {"layers", &s->layers},     {"heads", &s->heads},
                 {"inter", &s->ffn},     {"kv_heads", &s->kv_heads}, {"vocab", &s->vocab}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t value = 0;
        const lst_status status = lst__csv_get_u64(csv, row, sizes[i].column, &value, err);
        if (status != LST_OK)
            return status;
        *sizes[i].out = value;
    }
    const lst_status status = lst__csv_get_u64(csv, row, "tied", &tied, err);
    if (status != LST_OK)
        return status;
    if (s->heads == 0 || s->hidden % s->heads)
        return lst__fail(err, LST_ERR_FORMAT, "%s: line %zu: %zu heads do not divide a width of %zu", csv->path,
                         csv->line[row + 1], s->heads, s->hidden);
    s->tied = tied;
    s->head_dim = s->hidden / s->heads;
    if (s->family == LST_SHAPE_GPT2) {
        s->positions = GPT2_POSITIONS;
        s->kv_heads = s->heads;
        s->qkv_bias = s->o_bias = s->mlp_bias = true;
    }
    s->qkv_bias |= s->family == LST_SHAPE_QWEN2;
    return LST_OK;
}

static lst_status read_optim(const lst_csv *csv, size_t row, lst_torch_run *run, lst_error *err)
{
    static const struct {
        const char *name;
        lst_torch_optim optim;
        lst_torch_form form;
        bool compiled;
    } names[] = {
        {"sgd", LST_TORCH_SGD, LST_TORCH_LOOP, false},
        {"sgd_foreach", LST_TORCH_SGD, LST_TORCH_FOREACH, false},
        {"sgd_momentum", LST_TORCH_MOMENTUM, LST_TORCH_LOOP, false},
        {"sgd_momentum_foreach", LST_TORCH_MOMENTUM, LST_TORCH_FOREACH, false},
        {"adamw", LST_TORCH_ADAMW, LST_TORCH_LOOP, false},
        {"adamw_foreach", LST_TORCH_ADAMW, LST_TORCH_FOREACH, false},
        {"adamw_fused", LST_TORCH_ADAMW, LST_TORCH_FUSED, false},
        {"adafactor", LST_TORCH_ADAFACTOR, LST_TORCH_LOOP, false},
        {"adafactor_foreach", LST_TORCH_ADAFACTOR, LST_TORCH_FOREACH, false},
        {"adamw8bit_bnb", LST_TORCH_ADAMW8_BNB, LST_TORCH_LOOP, false},
        {"adamw8bit_torchao", LST_TORCH_ADAMW8_AO, LST_TORCH_LOOP, false},
        {"adamw8bit_torchao_compiled", LST_TORCH_ADAMW8_AO, LST_TORCH_LOOP, true},
    };
    const char *name = lst__csv_get(csv, row, "optim");
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) == 0) {
            run->optim = names[i].optim;
            run->form = names[i].form;
            run->compiled_optim = names[i].compiled;
            return LST_OK;
        }
    }
    return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: line %zu: optimizer \"%.40s\" is not known", csv->path,
                     csv->line[row + 1], name ? name : "");
}

static lst_status read_words(const lst_csv *csv, size_t row, lst_torch_run *run, lst_error *err)
{
    const char *attention = lst__csv_get(csv, row, "attn"), *dtype = lst__csv_get(csv, row, "dtype");
    const char *lora = lst__csv_get(csv, row, "lora");
    if (!attention || !dtype || !lora)
        return lst__fail(err, LST_ERR_FORMAT, "%s lacks a column: attn, dtype and lora are needed", csv->path);
    run->attention = strcmp(attention, "eager") == 0 ? LST_TORCH_EAGER : LST_TORCH_SDPA;
    run->dtype = strcmp(dtype, "bfloat16") == 0   ? LST_TORCH_BFLOAT16
                 : strcmp(dtype, "autocast") == 0 ? LST_TORCH_AUTOCAST
                                                  : LST_TORCH_FLOAT32;
    run->lora = strcmp(lora, "qv") == 0 ? LST_TARGET_Q | LST_TARGET_V : *lora ? LST_TARGET_ALL : 0;
    return LST_OK;
}

static lst_status read_numbers(const lst_csv *csv, size_t row, lst_torch_run *run, lst_error *err)
{
    uint64_t clip = 0, pad = 0, cache = 0, ckpt = 0, to_none = 1, hold = 0, batch = 0, seq = 0, accum = 0, rank = 0;
    const struct {
        const char *column;
        uint64_t *out;
    } numbers[] = {{"clip", &clip},           {"pad_mask", &pad}, {"use_cache", &cache}, {"ckpt", &ckpt},
                   {"set_to_none", &to_none}, {"hold", &hold},    {"batch", &batch},     {"seq", &seq},
                   {"accum", &accum},         {"lora_r", &rank}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const lst_status status = lst__csv_get_u64(csv, row, numbers[i].column, numbers[i].out, err);
        if (status != LST_OK)
            return status;
    }
    run->clip = clip;
    run->pad_mask = pad;
    run->use_cache = cache;
    run->checkpoint = ckpt;
    run->keep_grads = !to_none;
    run->hold_output = hold;
    run->batch = batch;
    run->seq = seq;
    run->accumulation = accum;
    run->lora_rank = rank;
    const lst_status status = lst__csv_get_real(csv, row, "dropout", &run->dropout, err);
    return status != LST_OK ? status : lst__csv_get_real(csv, row, "lora_dropout", &run->lora_dropout, err);
}

lst_status lst__torch_row(const lst_csv *csv, size_t row, lst_torch_run *out, lst_error *err)
{
    lst_torch_run_default(out);
    lst_status status = read_shape(csv, row, &out->shape, err);
    if (status == LST_OK)
        status = read_words(csv, row, out, err);
    if (status == LST_OK)
        status = read_numbers(csv, row, out, err);
    if (status == LST_OK)
        status = read_optim(csv, row, out, err);
    if (status == LST_OK && !out->lora)
        out->lora_dropout = 0;
    return status;
}
