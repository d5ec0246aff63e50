/* SPDX-License-Identifier: MIT
 *
 * What a tokenizer is made of: shared by its reader (tokenizer_json.c) and its use (tokenizer.c).
 */
#ifndef DATA_TOKENIZER_PARTS_H
#define DATA_TOKENIZER_PARTS_H

#include "data/pretokenize.h"
#include "data/tokenizer.h"

/* A token's bytes, as a stretch of data_tokenizer.bytes. */
typedef struct data__token {
    uint32_t offset, n_bytes;
    bool there, special;
    bool whole_word; /* can be emitted by ignore_merges: it stands in the vocabulary and is made of mapped bytes */
} data__token;

typedef struct data__added {
    char *text; /* as searched for: normalized if the token asks for it */
    size_t n_bytes;
    int32_t id;
    bool normalized, takes_left, takes_right; /* takes the white space beside it */
} data__added;

struct data_tokenizer {
    data_splitter splitter;
    bool nfc;
    bool ignore_merges;
    data_bpe bpe;
    size_t n_ids; /* largest id + 1 */
    size_t n_tokens;
    data__token *tokens; /* [n_ids] */
    data_text bytes;
    size_t n_places; /* hash of whole words: ids + 1, 0 is empty; only with ignore_merges */
    int32_t *places;
    size_t n_added;
    data__added *added;
    bool added_starts[2][256]; /* [normalized][byte]: whether an added token begins with it */
    data_ids before, after;    /* what the template puts around a text */
};

/* Id of the vocabulary's token with these bytes, or -1. */
int32_t data__whole_word(const data_tokenizer *t, const char *word, size_t n);
uint64_t data__word_hash(const char *word, size_t n);

#endif
