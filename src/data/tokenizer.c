/* SPDX-License-Identifier: MIT
 *
 * Encoding goes in the reference's order: added tokens that are searched for in the raw text; normalization of what is
 * between them; added tokens searched for in normalized text; words; byte pairs.
 */
#include "data/tokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/random.h"
#include "data/tokenizer_parts.h"

void data_tokenizer_free(data_tokenizer *t)
{
    if (!t)
        return;
    data_bpe_free(&t->bpe);
    lst__free(t->tokens);
    lst__free(t->bytes.data);
    lst__free(t->places);
    for (size_t i = 0; i < t->n_added; i++)
        lst__free(t->added[i].text);
    lst__free(t->added);
    lst__free(t->before.ids);
    lst__free(t->after.ids);
    lst__free(t);
}

size_t data_tokenizer_count(const data_tokenizer *t)
{
    return t->n_tokens;
}

size_t data_tokenizer_vocab(const data_tokenizer *t)
{
    return t->n_ids;
}

size_t data_tokenizer_token_bytes(const data_tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->n_ids && t->tokens[id].there ? t->tokens[id].n_bytes : 0;
}

lst_status data_tokenizer_normalize(const data_tokenizer *t, data_text *out, const char *text, size_t n, lst_error *err)
{
    return t->nfc ? data_nfc(out, text, n, err) : data_text_add(out, text, n, err);
}

int32_t data_tokenizer_added(const data_tokenizer *t, const char *text)
{
    for (size_t i = 0; i < t->n_added; i++) {
        const data__token *token = &t->tokens[t->added[i].id];
        if (token->n_bytes == strlen(text) && memcmp(t->bytes.data + token->offset, text, token->n_bytes) == 0)
            return t->added[i].id;
    }
    return -1;
}

uint64_t data__word_hash(const char *word, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u; /* FNV-1a's prime */
    return lst__random_mix(hash);
}

int32_t data__whole_word(const data_tokenizer *t, const char *word, size_t n)
{
    for (size_t i = data__word_hash(word, n) & (t->n_places - 1);; i = (i + 1) & (t->n_places - 1)) {
        const int32_t id = t->places[i] - 1;
        if (id < 0)
            return -1;
        if (t->tokens[id].n_bytes == n && memcmp(t->bytes.data + t->tokens[id].offset, word, n) == 0)
            return id;
    }
}

static lst_status encode_words(data_tokenizer *t, const char *text, size_t n, data_ids *out, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK;) {
        const size_t length = data_first_word(t->splitter, text + i, n - i);
        const int32_t whole = t->ignore_merges ? data__whole_word(t, text + i, length) : -1;
        status = whole >= 0 ? data_ids_add(out, whole, err) : data_bpe_encode(&t->bpe, text + i, length, out, err);
        i += length;
    }
    return status;
}

/* The longest added token at text, or NULL. */
static const data__added *added_at(const data_tokenizer *t, bool normalized, const char *text, size_t n)
{
    if (!t->added_starts[normalized][(unsigned char)text[0]])
        return NULL;
    const data__added *best = NULL;
    for (size_t i = 0; i < t->n_added; i++) {
        const data__added *a = &t->added[i];
        if (a->normalized == normalized && a->n_bytes <= n && (!best || a->n_bytes > best->n_bytes) &&
            memcmp(a->text, text, a->n_bytes) == 0)
            best = a;
    }
    return best;
}

/* Where the white space that ends at `end` begins, not before `start`. */
static size_t space_before(const char *text, size_t start, size_t end)
{
    size_t from = end;
    for (size_t i = start; i < end;) {
        uint32_t c;
        const size_t length = data_utf8_read(text + i, end - i, &c);
        if (!data_is_space(c))
            from = end;
        else if (from == end)
            from = i;
        i += length;
    }
    return from;
}

static size_t space_after(const char *text, size_t n, size_t i)
{
    while (i < n) {
        uint32_t c;
        const size_t length = data_utf8_read(text + i, n - i, &c);
        if (!data_is_space(c))
            break;
        i += length;
    }
    return i;
}

typedef lst_status piece_fn(data_tokenizer *t, const char *text, size_t n, data_ids *out, lst_error *err);

/* Cuts text at the added tokens of one kind, leftmost and longest first; what is between goes to `rest`. */
static lst_status split_added(data_tokenizer *t, bool normalized, const char *text, size_t n, piece_fn *rest,
                              data_ids *out, lst_error *err)
{
    lst_status status = LST_OK;
    size_t from = 0;
    for (size_t i = 0; i < n && status == LST_OK;) {
        const data__added *a = added_at(t, normalized, text + i, n - i);
        if (!a) {
            i++;
            continue;
        }
        const size_t end = a->takes_left ? space_before(text, from, i) : i;
        if (end > from)
            status = rest(t, text + from, end - from, out, err);
        if (status == LST_OK)
            status = data_ids_add(out, a->id, err);
        i += a->n_bytes;
        if (a->takes_right)
            i = space_after(text, n, i);
        from = i;
    }
    if (status == LST_OK && from < n)
        status = rest(t, text + from, n - from, out, err);
    return status;
}

static lst_status encode_normalized(data_tokenizer *t, const char *text, size_t n, data_ids *out, lst_error *err)
{
    return split_added(t, true, text, n, encode_words, out, err);
}

static lst_status encode_raw(data_tokenizer *t, const char *text, size_t n, data_ids *out, lst_error *err)
{
    if (!t->nfc)
        return encode_normalized(t, text, n, out, err);
    data_text composed = {0};
    lst_status status = data_tokenizer_normalize(t, &composed, text, n, err);
    if (status == LST_OK)
        status = encode_normalized(t, composed.data, composed.n, out, err);
    lst__free(composed.data);
    return status;
}

static lst_status add_all(data_ids *out, const data_ids *more, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < more->n && status == LST_OK; i++)
        status = data_ids_add(out, more->ids[i], err);
    return status;
}

lst_status data_tokenizer_encode(data_tokenizer *t, const char *text, size_t n, bool specials, data_ids *out,
                                 lst_error *err)
{
    lst_status status = specials ? add_all(out, &t->before, err) : LST_OK;
    if (status == LST_OK)
        status = split_added(t, false, text, n, encode_raw, out, err);
    if (status == LST_OK && specials)
        status = add_all(out, &t->after, err);
    return status;
}

lst_status data_tokenizer_decode(const data_tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                                 data_text *out, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= t->n_ids || !t->tokens[ids[i]].there)
            return lst__fail(err, LST_ERR_ARGUMENT, "token id %d is not in the vocabulary of %zu ids", (int)ids[i],
                             t->n_ids);
        const data__token *token = &t->tokens[ids[i]];
        if (!(skip_special && token->special))
            status = data_text_add(out, t->bytes.data + token->offset, token->n_bytes, err);
    }
    return status;
}
