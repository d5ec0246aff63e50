/* SPDX-License-Identifier: MIT
 *
 * Tokenizers: byte-level BPE as GPT-2, Llama-3, Qwen2 and SmolLM have it, from a Hugging Face tokenizer.json. The ids
 * are those of the reference library; whatever a file asks for that is not implemented is refused by name.
 *
 * Any bytes can be encoded. Bytes that are no valid UTF-8 are characters of no class: each becomes the token of its
 * byte, and decoding gives the same bytes back. (The reference library cannot be given such text.) A vocabulary may
 * lack rare bytes, as SmolLM2's lacks 21; they are left out of the ids, as the reference does.
 *
 * A tokenizer has scratch of its own and belongs to one thread.
 */
#ifndef DATA_TOKENIZER_H
#define DATA_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/bpe.h"
#include "data/unicode.h"
#include "io/gguf.h"
#include "leanstep/status.h"

typedef struct data_tokenizer data_tokenizer;

LST_MUST_USE lst_status data_tokenizer_load(data_tokenizer **out, const char *path, lst_error *err);
/* From the text of a tokenizer.json; `where` is how messages call it. */
LST_MUST_USE lst_status data_tokenizer_parse(data_tokenizer **out, const char *where, const char *text, size_t n_bytes,
                                             lst_error *err);
/* The same as the text of a tokenizer.json (free() it). */
LST_MUST_USE lst_status data_tokenizer_json_of_gguf(char **out, const lst_gguf *gguf, lst_error *err);
/* From the tokenizer.ggml.* keys of a GGUF file: model gpt2, pre-tokenizers gpt-2, smollm, llama-bpe and qwen2. */
LST_MUST_USE lst_status data_tokenizer_from_gguf(data_tokenizer **out, const lst_gguf *gguf, lst_error *err);
void data_tokenizer_free(data_tokenizer *t); /* NULL is allowed */

/* Number of tokens, added ones included, and the largest id + 1 (a model's table may be longer still). */
size_t data_tokenizer_count(const data_tokenizer *t);
size_t data_tokenizer_vocab(const data_tokenizer *t);
/* Id of an added token by its text ("<|im_end|>"), or -1. */
int32_t data_tokenizer_added(const data_tokenizer *t, const char *text);

/* Bytes that a token spells; 0 for an id that no token has. */
size_t data_tokenizer_token_bytes(const data_tokenizer *t, int32_t id);
/* Appends text as the tokenizer normalizes it (NFC for Qwen2, unchanged otherwise): what the tokens of it spell. */
LST_MUST_USE lst_status data_tokenizer_normalize(const data_tokenizer *t, data_text *out, const char *text, size_t n,
                                                 lst_error *err);

/* Appends the ids of n bytes of text. Added tokens written in the text are recognised. With `specials`, what the file's
 * template puts around a text (Llama-3's <|begin_of_text|>) as well. */
LST_MUST_USE lst_status data_tokenizer_encode(data_tokenizer *t, const char *text, size_t n, bool specials,
                                              data_ids *out, lst_error *err);
/* Appends the bytes of n ids (a token may end inside a character); special tokens are left out on request.
 * LST_ERR_ARGUMENT for an id that no token has. */
LST_MUST_USE lst_status data_tokenizer_decode(const data_tokenizer *t, const int32_t *ids, size_t n, bool skip_special,
                                              data_text *out, lst_error *err);

#endif
