/* SPDX-License-Identifier: MIT
 *
 * A GGUF file's tokenizer.ggml.* keys, put as the tokenizer.json that they came from: one reader for both.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tokenizer_parts.h"
#include "io/gguf.h"
#include "io/json.h"
#include "io/printable.h"

#define KEY "tokenizer.ggml."

enum { TYPE_INT32 = 5, TYPE_STRING = 8 };   /* of array elements */
enum { TOKEN_CONTROL = 3, TOKEN_USER = 4 }; /* tokenizer.ggml.token_type */

typedef struct strings {
    size_t n;
    const unsigned char *at;
} strings;

static const struct {
    const char *pre;
    const char *settings; /* what tokenizer.json says beside vocabulary and merges */
} known[] = {
    {"gpt-2", "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
              "\"use_regex\": true}}"},
    {"smollm", "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", "
               "\"individual_digits\": true}, {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": "
               "true, \"use_regex\": "
               "true}]}}"},
    {"llama-bpe", "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
                  "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", \"trim_offsets\": true, "
                  "\"add_prefix_space\": "
                  "false, \"use_regex\": false}]}}"},
    {"qwen2", "{\"normalizer\": {\"type\": \"NFC\"}, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
              "[{\"type\": \"Split\", \"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", "
              "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": false}]}}"},
};

static lst_status get_strings(const lst_gguf *g, const char *key, strings *out, lst_error *err)
{
    uint32_t type;
    lst_status status = lst__gguf_get_array(g, key, &type, &out->n, &out->at, err);
    if (status == LST_OK && type != TYPE_STRING)
        return lst__fail(err, LST_ERR_FORMAT, "%s: %s must be an array of strings", g->path, key);
    return status;
}

/* The next one: its text, not terminated. The header's reader has checked that it lies in the file. */
static const char *next_string(strings *s, size_t *n)
{
    uint64_t length;
    memcpy(&length, s->at, sizeof length);
    const char *text = (const char *)s->at + sizeof length;
    *n = (size_t)length;
    s->at += sizeof length + *n;
    return text;
}

/* Everything but the tables, by the name of the pre-tokenizer. */
static lst_status start(const lst_gguf *g, json_t **root, lst_error *err)
{
    const char *text;
    char shown[64] = "";
    size_t n;
    lst_status status = lst__gguf_get_text(g, KEY "model", &text, &n, err);
    if (status != LST_OK)
        return status;
    if (n != 4 || memcmp(text, "gpt2", 4) != 0)
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s: its " KEY "model is not \"gpt2\" (byte-level BPE), the only one that is implemented",
                         g->path);
    status = lst__gguf_get_text(g, KEY "pre", &text, &n, err);
    if (status != LST_OK)
        return status;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (n != strlen(known[i].pre) || memcmp(text, known[i].pre, n) != 0)
            continue;
        status = lst__json_parse(root, g->path, known[i].settings, strlen(known[i].settings), err);
        json_t *first =
            status == LST_OK
                ? json_array_get(json_object_get(json_object_get(*root, "pre_tokenizer"), "pretokenizers"), 0)
                : NULL;
        if (i >= 2 && first)
            (void)json_object_set_new(first, "pattern",
                                      json_pack("{s:s}", "Regex", i == 2 ? data_llama3_pattern : data_qwen2_pattern));
        return status;
    }
    memcpy(shown, text, n < sizeof shown ? n : sizeof shown - 1);
    char printable[96];
    return lst__fail(err, LST_ERR_UNSUPPORTED,
                     "%s: " KEY "pre is \"%s\"; gpt-2, smollm, llama-bpe and qwen2 are implemented", g->path,
                     lst__printable(shown, printable, sizeof printable));
}

static lst_status add_token(const lst_gguf *g, json_t *root, strings *tokens, size_t id, int32_t type, lst_error *err)
{
    size_t n;
    const char *text = next_string(tokens, &n);
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    json_t *string = n > 0 && !memchr(text, 0, n) ? json_stringn(text, n) : NULL;
    if (!string)
        return lst__fail(err, LST_ERR_FORMAT, "%s: token %zu is empty or no UTF-8 text", g->path, id);
    lst_status status = LST_OK;
    if (type == TOKEN_CONTROL || type == TOKEN_USER)
        (void)json_array_append_new(json_object_get(root, "added_tokens"),
                                    json_pack("{s:I, s:O, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content",
                                              string, "special", type == TOKEN_CONTROL, "normalized", 0, "single_word",
                                              0, "lstrip", 0, "rstrip", 0));
    if (json_object_get(vocab, json_string_value(string)))
        status = lst__fail(err, LST_ERR_FORMAT, "%s: token %zu is there twice", g->path, id);
    else
        (void)json_object_set_new(vocab, json_string_value(string), json_integer((json_int_t)id));
    json_decref(string);
    return status;
}

static lst_status add_tokens(const lst_gguf *g, json_t *root, lst_error *err)
{
    strings tokens;
    uint32_t type = 0;
    size_t n_types = 0;
    const unsigned char *types = NULL;
    lst_status status = get_strings(g, KEY "tokens", &tokens, err);
    if (status == LST_OK)
        status = lst__gguf_get_array(g, KEY "token_type", &type, &n_types, &types, err);
    if (status == LST_OK && (type != TYPE_INT32 || n_types != tokens.n))
        return lst__fail(err, LST_ERR_FORMAT, "%s: " KEY "token_type must be an INT32 for each of the %zu tokens",
                         g->path, tokens.n);
    for (size_t i = 0, n = tokens.n; status == LST_OK && i < n; i++) {
        int32_t kind;
        memcpy(&kind, types + 4 * i, 4);
        status = add_token(g, root, &tokens, i, kind, err);
    }
    return status;
}

static lst_status add_merges(const lst_gguf *g, json_t *merges, lst_error *err)
{
    strings list;
    lst_status status = get_strings(g, KEY "merges", &list, err);
    for (size_t i = 0, n = list.n; status == LST_OK && i < n; i++) {
        size_t length;
        const char *text = next_string(&list, &length);
        json_t *string = memchr(text, 0, length) ? NULL : json_stringn(text, length);
        if (!string || json_array_append_new(merges, string) != 0)
            status = lst__fail(err, LST_ERR_FORMAT, "%s: merge %zu is no UTF-8 text", g->path, i);
    }
    return status;
}

/* A file that says add_bos_token puts one before every text: tokenizer.json's template for that. */
static lst_status add_template(const lst_gguf *g, json_t *root, lst_error *err)
{
    const lst_gguf_key *key = lst__gguf_find_key(g, KEY "add_bos_token");
    size_t id, i;
    json_t *token;
    if (!key || key->type != 7 || !*key->value) /* 7: bool */
        return LST_OK;
    lst_status status = lst__gguf_get_size(g, KEY "bos_token_id", &id, err);
    if (status != LST_OK)
        return status;
    json_array_foreach(json_object_get(root, "added_tokens"), i, token)
    {
        const char *text = json_string_value(json_object_get(token, "content"));
        if (!text || (size_t)json_integer_value(json_object_get(token, "id")) != id)
            continue;
        json_t *single = json_pack("[{s:{s:s,s:i}},{s:{s:s,s:i}}]", "SpecialToken", "id", text, "type_id", 0,
                                   "Sequence", "id", "A", "type_id", 0);
        json_t *pair = json_pack("[{s:{s:s,s:i}},{s:{s:s,s:i}}]", "Sequence", "id", "A", "type_id", 0, "Sequence", "id",
                                 "B", "type_id", 1);
        (void)json_object_set_new(root, "post_processor",
                                  json_pack("{s:s,s:o,s:o,s:{s:{s:s,s:[I],s:[s]}}}", "type", "TemplateProcessing",
                                            "single", single, "pair", pair, "special_tokens", text, "id", text, "ids",
                                            (json_int_t)id, "tokens", text));
        return LST_OK;
    }
    return lst__fail(err, LST_ERR_FORMAT, "%s: " KEY "bos_token_id is %zu, which no added token has", g->path, id);
}

lst_status data_tokenizer_json_of_gguf(char **out, const lst_gguf *g, lst_error *err)
{
    json_t *root = NULL;
    lst_status status = start(g, &root, err);
    if (status != LST_OK)
        return status;
    const char *pre;
    size_t n;
    bool llama = lst__gguf_get_text(g, KEY "pre", &pre, &n, NULL) == LST_OK && n == 9 && !memcmp(pre, "llama-bpe", 9);
    json_t *merges = json_array();
    (void)json_object_set_new(root, "version", json_string("1.0"));
    (void)json_object_set_new(root, "added_tokens", json_array());
    (void)json_object_set_new(root, "decoder",
                              json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                                        "trim_offsets", 1, "use_regex", 1));
    (void)json_object_set_new(
        root, "model",
        json_pack("{s:s, s:b, s:{}, s:O}", "type", "BPE", "ignore_merges", llama, "vocab", "merges", merges));
    status = add_tokens(g, root, err);
    if (status == LST_OK)
        status = add_merges(g, merges, err);
    if (status == LST_OK)
        status = add_template(g, root, err);
    *out = status == LST_OK ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(merges);
    json_decref(root);
    if (status == LST_OK && !*out)
        return lst__fail_memory(err, "the text of a tokenizer", 0);
    return status;
}

lst_status data_tokenizer_from_gguf(data_tokenizer **out, const lst_gguf *g, lst_error *err)
{
    char *text = NULL;
    lst_status status = data_tokenizer_json_of_gguf(&text, g, err);
    if (status == LST_OK)
        status = data_tokenizer_parse(out, g->path, text, strlen(text), err);
    free(text);
    return status;
}
