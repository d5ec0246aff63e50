/* SPDX-License-Identifier: MIT */
#include "data/encoder.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "data/bytes.h"
#include "data/scan.h"
#include "data/tokenizer_parts.h"
#include "io/json.h"

/* A tokenizer_config.json lists every added token: a few hundred KB at most. */
#define MAX_CONFIG ((size_t)16 << 20)

const char *const data_tokenizer_files[DATA_N_TOKENIZER_FILES] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",     "chat_template.jinja",   "generation_config.json"};

bool data_has_tokenizer(const char *folder)
{
    char *path = lst__path_join(folder, data_tokenizer_files[0]);
    bool found = path && lst__is_file(path);
    lst__free(path);
    return found;
}

/* The object in DIR/NAME, or NULL where there is no such file. */
static lst_status load_object(const char *folder, const char *name, json_t **out, lst_error *err)
{
    *out = NULL;
    char *path = lst__path_join(folder, name);
    if (!path)
        return lst__fail_memory(err, name, strlen(folder) + strlen(name) + 2);
    lst_status status = lst__is_file(path) ? lst__json_load(out, path, MAX_CONFIG, err) : LST_OK;
    lst__free(path);
    return status;
}

/* ---- what ends a text ---- */

/* A token is named by a string or, in older files, by an object that holds it. */
static int32_t named_end(const data_encoder *e, const json_t *config)
{
    const json_t *named = json_object_get(config, "eos_token");
    if (json_is_object(named))
        named = json_object_get(named, "content");
    return json_is_string(named) ? data_tokenizer_added(e->tokenizer, json_string_value(named)) : -1;
}

static lst_status numbered_end(data_encoder *e, const char *folder, const char *file, lst_error *err)
{
    json_t *config;
    if (e->end >= 0)
        return LST_OK;
    lst_status status = load_object(folder, file, &config, err);
    const json_t *id = json_object_get(config, "eos_token_id");
    if (json_is_array(id))
        id = json_array_get(id, 0);
    const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    json_decref(config);
    if (status == LST_OK && value >= (json_int_t)e->vocab)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s/%s: \"eos_token_id\" is %lld, and the model's vocabulary has %zu tokens", folder, file,
                         (long long)value, e->vocab);
    if (status == LST_OK && value >= 0)
        e->end = (int32_t)value;
    return status;
}

static lst_status find_end(data_encoder *e, const char *folder, const json_t *config, lst_error *err)
{
    static const char *const usual[] = {"<|endoftext|>", "<|end_of_text|>", "</s>"};
    e->end = named_end(e, config);
    lst_status status = numbered_end(e, folder, "generation_config.json", err);
    if (status == LST_OK)
        status = numbered_end(e, folder, "config.json", err);
    for (size_t i = 0; i < sizeof usual / sizeof *usual && e->end < 0; i++)
        e->end = data_tokenizer_added(e->tokenizer, usual[i]);
    return status;
}

/* ---- the chat template ---- */

/* By what only this template says. */
static bool recognise(const char *template, data_chat *out)
{
    static const struct {
        const char *marks[2];
        data_chat chat;
    } known[] = {
        {{"<|start_header_id|>", "Cutting Knowledge Date"}, DATA_CHAT_LLAMA31},
        {{"<|start_header_id|>", "<|eot_id|>"}, DATA_CHAT_LLAMA3},
        {{"<|im_start|>", "You are Qwen, created by Alibaba Cloud"}, DATA_CHAT_QWEN25},
        {{"<|im_start|>", "assistant named SmolLM, trained by Hugging Face"}, DATA_CHAT_SMOLLM2},
        {{"<|im_start|>", "You are a helpful assistant"}, DATA_CHAT_QWEN2},
        {{"<|im_start|>", "<|im_end|>"}, DATA_CHAT_CHATML},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strstr(template, known[i].marks[0]) || !strstr(template, known[i].marks[1]))
            continue;
        *out = known[i].chat;
        return true;
    }
    return false;
}

/* "chat_template" is a string, or a list of named ones of which "default" counts. */
static const char *template_of(const json_t *config)
{
    const json_t *found = json_object_get(config, "chat_template");
    for (size_t i = 0; json_is_array(found) && i < json_array_size(found); i++) {
        const json_t *entry = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(entry, "template"));
    }
    return json_string_value(found);
}

static lst_status find_chat(data_encoder *e, const char *folder, const json_t *config, const char *chat, lst_error *err)
{
    if (chat && chat[0]) {
        e->has_chat = true;
        e->chat_from = "--chat";
        return data_chat_find(chat, &e->chat, err);
    }
    const char *template = template_of(config);
    e->chat_from = "tokenizer_config.json";
    if (template) {
        e->has_chat = recognise(template, &e->chat);
        return LST_OK;
    }
    char *path = lst__path_join(folder, "chat_template.jinja"), *text = NULL;
    size_t n;
    if (!path)
        return lst__fail_memory(err, "a path", strlen(folder) + 32);
    lst_status status = lst__is_file(path) ? lst__file_read(path, MAX_CONFIG, &text, &n, err) : LST_OK;
    e->chat_from = "chat_template.jinja";
    e->has_chat = text && recognise(text, &e->chat);
    lst__free(text);
    lst__free(path);
    return status;
}

/* ---- */

static lst_status load(data_encoder *e, const char *folder, lst_error *err)
{
    lst_map map;
    char *path = lst__path_join(folder, data_tokenizer_files[0]);
    if (!path)
        return lst__fail_memory(err, "a path", strlen(folder) + 32);
    lst_status status = lst__map_open(path, &map, err);
    if (status == LST_OK) {
        e->hash = data__hash(1, map.data, map.n_bytes);
        status = data_tokenizer_parse(&e->tokenizer, path, (const char *)map.data, map.n_bytes, err);
        lst__map_close(&map);
    }
    if (status == LST_OK && data_tokenizer_vocab(e->tokenizer) > e->vocab)
        status = lst__fail(err, LST_ERR_FORMAT,
                           "%s does not fit the model: its ids go up to %zu, and the model's vocabulary has %zu tokens",
                           path, data_tokenizer_vocab(e->tokenizer) - 1, e->vocab);
    lst__free(path);
    return status;
}

lst_status data_encoder_open(data_encoder *out, const char *folder, size_t vocab, const char *chat, lst_error *err)
{
    data_encoder e = {.vocab = vocab, .end = DATA_BYTES_END, .chat_from = ""};
    json_t *config = NULL;
    lst_status status = LST_OK;
    if (!folder && vocab < DATA_BYTES_VOCAB)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "the model's vocabulary has %zu tokens, and byte-level text needs %d: 256 bytes and "
                         "the end of a document. Set \"vocab_size\": %d.",
                         vocab, DATA_BYTES_VOCAB, DATA_BYTES_VOCAB);
    if (!folder && chat && chat[0])
        return lst__fail(err, LST_ERR_ARGUMENT, "--chat has no effect on a byte-level model: its text has no turns");
    if (folder)
        status = load(&e, folder, err);
    if (folder && status == LST_OK)
        status = load_object(folder, "tokenizer_config.json", &config, err);
    if (folder && status == LST_OK)
        status = find_end(&e, folder, config, err);
    if (folder && status == LST_OK)
        status = find_chat(&e, folder, config, chat, err);
    json_decref(config);
    if (status != LST_OK) {
        data_encoder_close(&e);
        return status;
    }
    if (folder)
        e.hash = data__hash(e.hash, &e.end, sizeof e.end);
    *out = e;
    return LST_OK;
}

void data_encoder_close(data_encoder *encoder)
{
    data_tokenizer_free(encoder->tokenizer);
    encoder->tokenizer = NULL;
}

lst_status data_encoder_needs_end(const data_encoder *encoder, lst_error *err)
{
    if (encoder->end >= 0)
        return LST_OK;
    return lst__fail(
        err, LST_ERR_FORMAT,
        "no token ends a text in this tokenizer, and training joins texts with one: name it as \"eos_token\" "
        "in tokenizer_config.json, or as \"eos_token_id\" in config.json");
}

static lst_status add_ids(data_ids *out, const data_ids *more, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < more->n && status == LST_OK; i++)
        status = data_ids_add(out, more->ids[i], err);
    return status;
}

/* What a template puts behind a text, without an end that the caller will add. */
static lst_status add_after(const data_encoder *e, data_ids *out, lst_error *err)
{
    data_ids after = e->tokenizer->after;
    if (after.n > 0 && after.ids[after.n - 1] == e->end)
        after.n--;
    return add_ids(out, &after, err);
}

lst_status data_encoder_text(data_encoder *encoder, const char *text, size_t n, data_place place, data_ids *out,
                             lst_error *err)
{
    data_tokenizer *t = encoder->tokenizer;
    lst_status status = LST_OK;
    for (size_t i = 0; !t && i < n && status == LST_OK; i++)
        status = data_ids_add(out, (unsigned char)text[i], err);
    if (!t)
        return status;
    if (place & DATA_FIRST)
        status = add_ids(out, &t->before, err);
    if (status == LST_OK)
        status = data_tokenizer_encode(t, text, n, false, out, err);
    if (status == LST_OK && place & DATA_LAST)
        status = add_after(encoder, out, err);
    return status;
}

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "x\nA": no pattern joins a letter with the line feed before it, and one line feed behind a visible ASCII character is
 * a word or the end of one, whatever follows. Added tokens may see across it: then nothing is cut. */
size_t data_encoder_cut(const data_encoder *encoder, const char *text, size_t n)
{
    const data_tokenizer *t = encoder->tokenizer;
    for (size_t i = 0; t && i < t->n_added; i++)
        if (t->added[i].takes_left || memchr(t->added[i].text, '\n', t->added[i].n_bytes))
            return n;
    for (size_t i = n; t && i-- > 2;)
        if (text[i - 1] == '\n' && is_letter((unsigned char)text[i]) && text[i - 2] > ' ' && text[i - 2] < 127)
            return i;
    return n;
}

lst_status data_encoder_decode(const data_encoder *encoder, const int32_t *ids, size_t n, data_text *out,
                               lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK; i++) {
        const char byte = (char)(unsigned char)ids[i];
        if (!encoder->tokenizer && ids[i] != DATA_BYTES_END)
            status = data_text_add(out, &byte, 1, err);
        else if (!encoder->tokenizer)
            status = data_text_add(out, "<end>", 5, err);
        else if (data_tokenizer_token_bytes(encoder->tokenizer, ids[i]) > 0)
            status = data_tokenizer_decode(encoder->tokenizer, ids + i, 1, false, out, err);
    }
    return status;
}

void data_encoder_describe(const data_encoder *encoder, char *out, size_t n)
{
    if (encoder->tokenizer)
        snprintf(out, n, "tokenizer.json, %zu tokens", data_tokenizer_count(encoder->tokenizer));
    else
        snprintf(out, n, "bytes");
}
