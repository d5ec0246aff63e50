/* SPDX-License-Identifier: MIT
 *
 * From text to a model's ids: the tokenizer of a folder (a Hugging Face model's, or a run's, which carries a copy),
 * what ends a text in it, and its chat template; or bytes, where there is no tokenizer.
 */
#ifndef LST_DATA_ENCODER_H
#define LST_DATA_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/bpe.h"
#include "data/chat.h"
#include "data/tokenizer.h"
#include "leanstep/status.h"

/* The files that belong to a tokenizer: what a run carries. tokenizer.json is the one that must be there. */
#define DATA_N_TOKENIZER_FILES 8
extern const char *const data_tokenizer_files[DATA_N_TOKENIZER_FILES];
bool data_has_tokenizer(const char *folder);

typedef struct data_encoder {
    data_tokenizer *tokenizer; /* NULL: bytes (data/bytes.h) */
    size_t vocab;              /* the model's: every id is below it */
    int32_t end;               /* stands after a document, and after a completion */
    bool has_chat;
    data_chat chat;
    const char *chat_from; /* how the template is known, for people: "--chat", "tokenizer_config.json" */
    uint64_t hash;         /* of what decides the ids; 0 for bytes */
} data_encoder;

/* `folder` NULL: bytes. `vocab` is the model's and may be larger than the tokenizer's, not smaller (refused). The end
 * is tokenizer_config.json's "eos_token", or the "eos_token_id" of generation_config.json or config.json, or a token
 * called <|endoftext|>, <|end_of_text|> or </s>; -1 if there is none. `chat` names a template; NULL or "": the one
 * that tokenizer_config.json's "chat_template" (or chat_template.jinja) is recognised as, if any. */
LST_MUST_USE lst_status data_encoder_open(data_encoder *out, const char *folder, size_t vocab, const char *chat,
                                          lst_error *err);
void data_encoder_close(data_encoder *encoder);

/* Whether there is an end; LST_ERR_ARGUMENT says that training text needs one. */
LST_MUST_USE lst_status data_encoder_needs_end(const data_encoder *encoder, lst_error *err);

/* Where in a text a piece lies: what a tokenizer's template puts before a text goes before the first, and so on. */
typedef enum data_place { DATA_INSIDE = 0, DATA_FIRST = 1, DATA_LAST = 2, DATA_WHOLE = 3 } data_place;
/* Appends the ids of n bytes of text, without the end. */
LST_MUST_USE lst_status data_encoder_text(data_encoder *encoder, const char *text, size_t n, data_place place,
                                          data_ids *out, lst_error *err);
/* How many of the first n bytes can be encoded by themselves, with the same ids as if the rest came with them: a place
 * behind the last line that begins with a letter; n if there is none. */
size_t data_encoder_cut(const data_encoder *encoder, const char *text, size_t n);
/* The text of ids, special tokens written out; ids that no token has are left out. */
LST_MUST_USE lst_status data_encoder_decode(const data_encoder *encoder, const int32_t *ids, size_t n, data_text *out,
                                            lst_error *err);

/* "bytes", or "tokenizer.json, 49,152 tokens". */
void data_encoder_describe(const data_encoder *encoder, char *out, size_t n);

#endif
