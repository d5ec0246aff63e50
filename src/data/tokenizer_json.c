/* SPDX-License-Identifier: MIT
 *
 * Reads a Hugging Face tokenizer.json. Two tables are built from it, of ids and of merges, and the document is freed.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "data/tokenizer_parts.h"
#include "io/json.h"
#include "io/printable.h"

#define MAX_FILE_BYTES ((size_t)256 << 20) /* published ones take up to 20 MB */

typedef struct reader {
    const char *where;
    const json_t *root, *model, *vocab;
    data_tokenizer *t;
    int32_t byte_of[512]; /* code point of the byte alphabet -> byte, or -1 */
} reader;

/* ---- GPT-2's alphabet of bytes: printable ones stand for themselves, the others follow from U+0100 on, in order
 * ---- */

static bool stands_for_itself(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

static void make_alphabet(reader *r)
{
    for (size_t i = 0; i < 512; i++)
        r->byte_of[i] = -1;
    int next = 256;
    for (int byte = 0; byte < 256; byte++)
        r->byte_of[stands_for_itself(byte) ? byte : next++] = byte;
}

/* Appends the bytes that a token's text stands for: those of the alphabet, or its UTF-8 if any letter is not in it. */
static lst_status add_token_bytes(reader *r, const char *text, size_t n, bool *mapped, lst_error *err)
{
    data_text *bytes = &r->t->bytes;
    const size_t start = bytes->n;
    *mapped = true;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        i += data_utf8_read(text + i, n - i, &code);
        if (code >= 512 || r->byte_of[code] < 0) {
            *mapped = false;
            bytes->n = start;
            return data_text_add(bytes, text, n, err);
        }
        const char byte = (char)r->byte_of[code];
        const lst_status status = data_text_add(bytes, &byte, 1, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

/* ---- ids ---- */

static lst_status read_id(const reader *r, const json_t *value, const char *text, int64_t *id, lst_error *err)
{
    char shown[64];
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > INT32_MAX)
        return lst__fail(err, LST_ERR_FORMAT, "%s: the id of token \"%s\" must be an integer from 0 to %d", r->where,
                         lst__printable(text, shown, sizeof shown), INT32_MAX);
    *id = json_integer_value(value);
    return LST_OK;
}

static lst_status widest_id(const reader *r, const json_t *added, size_t *n_ids, lst_error *err)
{
    int64_t largest = -1, id = 0;
    size_t n_tokens = json_object_size(r->vocab), i;
    const char *text;
    json_t *value;
    json_object_foreach((json_t *)r->vocab, text, value)
    {
        lst_status status = read_id(r, value, text, &id, err);
        if (status != LST_OK)
            return status;
        largest = id > largest ? id : largest;
    }
    json_array_foreach(added, i, value)
    {
        lst_status status = read_id(r, json_object_get(value, "id"), "of added_tokens", &id, err);
        if (status != LST_OK)
            return status;
        largest = id > largest ? id : largest;
        n_tokens++;
    }
    /* The table has a place for every id: a few gaps are normal, a billion of them are an attack. */
    if ((size_t)(largest + 1) > 4 * n_tokens + 65536)
        return lst__fail(err, LST_ERR_FORMAT, "%s: the largest id is %lld, but there are only %zu tokens", r->where,
                         (long long)largest, n_tokens);
    *n_ids = (size_t)(largest + 1);
    return LST_OK;
}

static lst_status set_token(reader *r, int64_t id, const char *text, size_t n, bool in_vocab, lst_error *err)
{
    data_tokenizer *t = r->t;
    bool mapped;
    const size_t offset = t->bytes.n;
    lst_status status = add_token_bytes(r, text, n, &mapped, err);
    if (status != LST_OK)
        return status;
    if (t->bytes.n > UINT32_MAX)
        return lst__fail(err, LST_ERR_FORMAT, "%s: the texts of the tokens exceed 4 GiB", r->where);
    t->tokens[id] = (data__token){.offset = (uint32_t)offset,
                                  .n_bytes = (uint32_t)(t->bytes.n - offset),
                                  .there = true,
                                  .whole_word = in_vocab && mapped};
    t->n_tokens++;
    return LST_OK;
}

static lst_status read_vocab(reader *r, lst_error *err)
{
    const char *text;
    json_t *value;
    json_object_foreach((json_t *)r->vocab, text, value)
    {
        const int64_t id = json_integer_value(value);
        char shown[64];
        if (r->t->tokens[id].there)
            return lst__fail(err, LST_ERR_FORMAT, "%s: token \"%s\" has the id %lld of another token", r->where,
                             lst__printable(text, shown, sizeof shown), (long long)id);
        lst_status status = set_token(r, id, text, strlen(text), true, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

static lst_status find_bytes(reader *r, lst_error *err)
{
    for (uint32_t code = 0; code < 512; code++) {
        if (r->byte_of[code] < 0)
            continue;
        char text[5] = {0};
        data_utf8_write(code, text);
        const json_t *id = json_object_get(r->vocab, text);
        if (!id && (r->byte_of[code] < ' ' || r->byte_of[code] > '~')) {
            r->t->bpe.byte_ids[r->byte_of[code]] = -1; /* SmolLM2 has none for 21 rare bytes */
            continue;
        }
        if (!id)
            return lst__fail(err, LST_ERR_UNSUPPORTED,
                             "%s: the vocabulary has no token for byte 0x%02x; byte-level BPE has those of ASCII",
                             r->where, (unsigned)r->byte_of[code]);
        r->t->bpe.byte_ids[r->byte_of[code]] = (int32_t)json_integer_value(id);
    }
    return LST_OK;
}

/* ---- merges: ["a", "b"] or "a b" ---- */

static lst_status merge_parts(const reader *r, const json_t *merge, size_t index, char **left, char **right,
                              lst_error *err)
{
    const char *a = NULL, *b = NULL;
    size_t a_bytes = 0;
    if (json_is_array(merge) && json_array_size(merge) == 2) {
        a = json_string_value(json_array_get(merge, 0));
        b = json_string_value(json_array_get(merge, 1));
        a_bytes = a ? strlen(a) : 0;
    } else if (json_is_string(merge)) {
        const char *space = strchr(json_string_value(merge), ' ');
        if (space && !strchr(space + 1, ' ')) {
            a = json_string_value(merge);
            a_bytes = (size_t)(space - a);
            b = space + 1;
        }
    }
    if (!a || !b || a_bytes == 0 || !*b)
        return lst__fail(err, LST_ERR_FORMAT, "%s: merge %zu must be two texts: [\"a\", \"b\"] or \"a b\"", r->where,
                         index);
    const size_t b_bytes = strlen(b);
    *left = lst__alloc(a_bytes + b_bytes + 2, 1); /* "a", NUL, "b", NUL: the caller closes the gap for "ab" */
    if (!*left)
        return lst__fail_memory(err, "a merge", a_bytes + b_bytes + 2);
    memcpy(*left, a, a_bytes);
    *right = *left + a_bytes + 1;
    memcpy(*right, b, b_bytes);
    return LST_OK;
}

/* The vocabulary's id of a text, or -1. */
static int32_t vocab_id(const reader *r, const char *text)
{
    const json_t *id = json_object_get(r->vocab, text);
    return id ? (int32_t)json_integer_value(id) : -1;
}

static lst_status read_merge(reader *r, const json_t *merge, size_t index, lst_error *err)
{
    char *left = NULL, *right = NULL;
    lst_status status = merge_parts(r, merge, index, &left, &right, err);
    if (status != LST_OK)
        return status;
    const int32_t a = vocab_id(r, left), b = vocab_id(r, right);
    const size_t a_bytes = strlen(left), b_bytes = strlen(right);
    memmove(left + a_bytes, right, b_bytes + 1);
    const int32_t both = vocab_id(r, left);
    char shown[64];
    if (a < 0 || b < 0 || both < 0)
        status = lst__fail(err, LST_ERR_FORMAT, "%s: merge %zu makes \"%s\": %s is not in the vocabulary", r->where,
                           index, lst__printable(left, shown, sizeof shown),
                           a < 0   ? "its left part"
                           : b < 0 ? "its right part"
                                   : "the result");
    else
        data_bpe_add_merge(&r->t->bpe, a, b, (int32_t)index, both);
    lst__free(left);
    return status;
}

static lst_status read_merges(reader *r, lst_error *err)
{
    json_t *merges;
    lst_status status = lst__json_get_array(r->model, r->where, "merges", &merges, err);
    if (status != LST_OK)
        return status;
    int32_t byte_ids[256];
    memcpy(byte_ids, r->t->bpe.byte_ids, sizeof byte_ids);
    status = data_bpe_make(&r->t->bpe, json_array_size(merges), err);
    memcpy(r->t->bpe.byte_ids, byte_ids, sizeof byte_ids);
    size_t i;
    json_t *merge;
    if (status == LST_OK)
        json_array_foreach(merges, i, merge)
        {
            status = read_merge(r, merge, i, err);
            if (status != LST_OK)
                break;
        }
    return status;
}

/* ---- added tokens ---- */

static bool flag(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static lst_status set_added_text(reader *r, data__added *a, const char *content, lst_error *err)
{
    data_text text = {0};
    const size_t n = strlen(content);
    lst_status status =
        a->normalized && r->t->nfc ? data_nfc(&text, content, n, err) : data_text_add(&text, content, n, err);
    if (status != LST_OK) {
        lst__free(text.data);
        return status;
    }
    a->text = text.data;
    a->n_bytes = text.n;
    r->t->added_starts[a->normalized][(unsigned char)text.data[0]] = true;
    return LST_OK;
}

static lst_status read_added_token(reader *r, const json_t *token, size_t index, lst_error *err)
{
    const char *content;
    char shown[64];
    lst_status status = lst__json_get_string(token, r->where, "content", &content, err);
    if (status != LST_OK)
        return status;
    const int64_t id = json_integer_value(json_object_get(token, "id"));
    if (!*content)
        return lst__fail(err, LST_ERR_FORMAT, "%s: added_tokens[%zu] has no text", r->where, index);
    lst__printable(content, shown, sizeof shown);
    if (flag(token, "single_word"))
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: added token \"%s\" has single_word, which is not implemented",
                         r->where, shown);
    const int32_t known = vocab_id(r, content);
    if (known != id && (known >= 0 || r->t->tokens[id].there))
        return lst__fail(err, LST_ERR_FORMAT, "%s: added token \"%s\" has id %lld, which is another token's", r->where,
                         shown, (long long)id);
    if (known < 0)
        status = set_token(r, id, content, strlen(content), false, err);
    if (status != LST_OK)
        return status;
    r->t->tokens[id].special = flag(token, "special");
    data__added *a = &r->t->added[r->t->n_added++];
    *a = (data__added){.id = (int32_t)id,
                       .normalized = flag(token, "normalized"),
                       .takes_left = flag(token, "lstrip"),
                       .takes_right = flag(token, "rstrip")};
    return set_added_text(r, a, content, err);
}

static lst_status read_added(reader *r, const json_t *added, lst_error *err)
{
    r->t->added = lst__alloc(json_array_size(added) + 1, sizeof *r->t->added);
    if (!r->t->added)
        return lst__fail_memory(err, "added tokens", json_array_size(added) * sizeof *r->t->added);
    size_t i;
    json_t *token;
    json_array_foreach(added, i, token)
    {
        lst_status status = read_added_token(r, token, i, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

/* ---- normalizer, pre-tokenizer, model options, template ---- */

static const char *type_of(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "";
}

static lst_status refuse(const reader *r, const char *what, const json_t *value, lst_error *err)
{
    char shown[96];
    const char *type = type_of(value);
    return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: %s \"%s\" is not implemented", r->where, what,
                     lst__printable(*type ? type : lst__json_kind(value), shown, sizeof shown));
}

static lst_status read_normalizer(reader *r, lst_error *err)
{
    const json_t *normalizer = json_object_get(r->root, "normalizer");
    if (!normalizer || json_is_null(normalizer))
        return LST_OK;
    if (strcmp(type_of(normalizer), "NFC") != 0)
        return refuse(r, "normalizer", normalizer, err);
    r->t->nfc = true;
    return LST_OK;
}

/* The pre-tokenizers as one list, whether or not the file wraps them in a Sequence. Returns their number, at most 2. */
static size_t pretokenizers(const json_t *pre, const json_t *out[2])
{
    if (strcmp(type_of(pre), "Sequence") != 0) {
        out[0] = pre;
        return 1;
    }
    const json_t *list = json_object_get(pre, "pretokenizers");
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n && i < 2; i++)
        out[i] = json_array_get(list, i);
    return n;
}

static lst_status split_of_pattern(reader *r, const json_t *split, lst_error *err)
{
    const char *pattern = json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(split, "behavior"));
    char shown[160];
    if (!pattern || !behavior || strcmp(behavior, "Isolated") != 0 || flag(split, "invert"))
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: pre_tokenizer Split must be a Regex, Isolated, not inverted",
                         r->where);
    if (strcmp(pattern, data_llama3_pattern) == 0)
        r->t->splitter = DATA_SPLIT_LLAMA3;
    else if (strcmp(pattern, data_qwen2_pattern) == 0)
        r->t->splitter = DATA_SPLIT_QWEN2;
    else
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s: the split pattern %s is not known; those of GPT-2, SmolLM, Llama-3 and Qwen2 are",
                         r->where, lst__printable(pattern, shown, sizeof shown));
    return LST_OK;
}

static lst_status read_pretokenizer(reader *r, lst_error *err)
{
    const json_t *pre = json_object_get(r->root, "pre_tokenizer"), *parts[2] = {NULL, NULL};
    const size_t n = pretokenizers(pre, parts);
    const json_t *last = n == 1 || n == 2 ? parts[n - 1] : NULL;
    if (strcmp(type_of(last), "ByteLevel") != 0)
        return refuse(r, "pre_tokenizer", last ? last : pre, err);
    if (flag(last, "add_prefix_space"))
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: add_prefix_space is not implemented", r->where);
    const bool use_regex = !json_is_false(json_object_get(last, "use_regex"));
    if (n == 1 && use_regex) {
        r->t->splitter = DATA_SPLIT_GPT2;
        return LST_OK;
    }
    const char *first = n == 2 ? type_of(parts[0]) : "";
    if (strcmp(first, "Digits") == 0 && use_regex && flag(parts[0], "individual_digits")) {
        r->t->splitter = DATA_SPLIT_SMOLLM;
        return LST_OK;
    }
    if (strcmp(first, "Split") == 0 && !use_regex)
        return split_of_pattern(r, parts[0], err);
    return refuse(r, "pre_tokenizer", n == 2 ? parts[0] : pre, err);
}

static lst_status read_model_options(reader *r, lst_error *err)
{
    const char *type = type_of(r->model);
    if (*type && strcmp(type, "BPE") != 0)
        return refuse(r, "model", r->model, err);
    const json_t *dropout = json_object_get(r->model, "dropout");
    if (json_is_number(dropout) && json_number_value(dropout) != 0.0)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: BPE dropout is not implemented", r->where);
    const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < 2; i++) {
        const char *affix = json_string_value(json_object_get(r->model, affixes[i]));
        if (affix && *affix)
            return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: %s is not implemented", r->where, affixes[i]);
    }
    if (flag(r->model, "byte_fallback"))
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: byte_fallback (SentencePiece) is not implemented", r->where);
    r->t->ignore_merges = flag(r->model, "ignore_merges");
    return LST_OK;
}

static lst_status read_template(reader *r, const json_t *template, lst_error *err)
{
    const json_t *single = json_object_get(template, "single");
    data_ids *side = &r->t->before;
    size_t i;
    json_t *item;
    json_array_foreach(single, i, item)
    {
        const json_t *special = json_object_get(item, "SpecialToken");
        if (!special) {
            side = &r->t->after;
            continue;
        }
        const char *name = json_string_value(json_object_get(special, "id"));
        const int32_t id = name ? data_tokenizer_added(r->t, name) : -1;
        if (id < 0)
            return lst__fail(err, LST_ERR_FORMAT, "%s: the template's special token is not among added_tokens",
                             r->where);
        lst_status status = data_ids_add(side, id, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

static lst_status read_processor(reader *r, const json_t *processor, lst_error *err)
{
    const char *type = type_of(processor);
    if (!processor || json_is_null(processor) || strcmp(type, "ByteLevel") == 0)
        return LST_OK; /* moves offsets, not ids */
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(r, processor, err);
    return refuse(r, "post_processor", processor, err);
}

static lst_status read_processors(reader *r, lst_error *err)
{
    const json_t *post = json_object_get(r->root, "post_processor");
    if (strcmp(type_of(post), "Sequence") != 0)
        return read_processor(r, post, err);
    size_t i;
    json_t *processor;
    json_array_foreach(json_object_get(post, "processors"), i, processor)
    {
        lst_status status = read_processor(r, processor, err);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

/* ---- the whole ---- */

static lst_status make_word_table(data_tokenizer *t, lst_error *err)
{
    size_t n_places = 16;
    while (n_places < 2 * t->n_ids)
        n_places *= 2;
    t->places = lst__alloc(n_places, sizeof *t->places);
    if (!t->places)
        return lst__fail_memory(err, "the table of whole words", n_places * sizeof *t->places);
    t->n_places = n_places;
    for (size_t id = 0; id < t->n_ids; id++) {
        if (!t->tokens[id].whole_word)
            continue;
        size_t i = data__word_hash(t->bytes.data + t->tokens[id].offset, t->tokens[id].n_bytes) & (n_places - 1);
        while (t->places[i])
            i = (i + 1) & (n_places - 1);
        t->places[i] = (int32_t)id + 1;
    }
    return LST_OK;
}

static lst_status read_all(reader *r, lst_error *err)
{
    data_tokenizer *t = r->t;
    json_t *model, *vocab;
    lst_status status = lst__json_get_object(r->root, r->where, "model", &model, err);
    if (status != LST_OK)
        return status;
    r->model = model;
    if ((status = read_model_options(r, err)) != LST_OK || (status = read_normalizer(r, err)) != LST_OK ||
        (status = read_pretokenizer(r, err)) != LST_OK ||
        (status = lst__json_get_object(model, r->where, "vocab", &vocab, err)) != LST_OK)
        return status;
    r->vocab = vocab;
    const json_t *added = json_object_get(r->root, "added_tokens");
    if ((status = widest_id(r, added, &t->n_ids, err)) != LST_OK)
        return status;
    t->tokens = lst__alloc(t->n_ids + 1, sizeof *t->tokens);
    if (!t->tokens)
        return lst__fail_memory(err, "the vocabulary", t->n_ids * sizeof *t->tokens);
    if ((status = read_vocab(r, err)) != LST_OK || (status = find_bytes(r, err)) != LST_OK ||
        (status = read_merges(r, err)) != LST_OK || (status = read_added(r, added, err)) != LST_OK)
        return status;
    if ((status = read_processors(r, err)) != LST_OK)
        return status;
    return t->ignore_merges ? make_word_table(t, err) : LST_OK;
}

lst_status data_tokenizer_parse(data_tokenizer **out, const char *where, const char *text, size_t n_bytes,
                                lst_error *err)
{
    json_t *root;
    lst_status status = lst__json_parse(&root, where, text, n_bytes, err);
    if (status != LST_OK)
        return status;
    reader r = {.where = where, .root = root, .t = lst__alloc(1, sizeof *r.t)};
    make_alphabet(&r);
    if (!r.t)
        status = lst__fail_memory(err, "a tokenizer", sizeof *r.t);
    else if (!json_is_object(root))
        status = lst__fail(err, LST_ERR_FORMAT, "%s: expected an object, found %s", where, lst__json_kind(root));
    else
        status = read_all(&r, err);
    json_decref(root);
    if (status != LST_OK)
        data_tokenizer_free(r.t);
    else
        *out = r.t;
    return status;
}

lst_status data_tokenizer_load(data_tokenizer **out, const char *path, lst_error *err)
{
    char *text;
    size_t n_bytes;
    lst_status status = lst__file_read(path, MAX_FILE_BYTES, &text, &n_bytes, err);
    if (status != LST_OK)
        return status;
    status = data_tokenizer_parse(out, path, text, n_bytes, err);
    lst__free(text);
    return status;
}
