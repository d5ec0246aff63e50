/* SPDX-License-Identifier: MIT
 *
 * Chats: messages written as text by one of the templates known here, and encoded with a mask of what the assistant
 * said. The templates are the published ones; a template language is not interpreted.
 *
 * The mask is 1 on the tokens of an assistant's content and of its end-of-turn token, 0 on the header before it and on
 * the line feed after it. Special tokens written inside a message become special tokens, as in the reference.
 */
#ifndef DATA_CHAT_H
#define DATA_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/tokenizer.h"
#include "leanstep/status.h"

/* X(identifier, name, what it is) */
#define DATA_CHAT_LIST(X)                                                                                              \
    X(CHATML, "chatml", "<|im_start|>role, content, <|im_end|>; no default system message")                            \
    X(QWEN2, "qwen2", "chatml with Qwen2's default system message")                                                    \
    X(QWEN25, "qwen2.5", "chatml with Qwen2.5's default system message")                                               \
    X(SMOLLM2, "smollm2", "chatml with SmolLM2's default system message")                                              \
    X(LLAMA3, "llama3", "Llama 3's headers; contents without the white space around them")                             \
    X(LLAMA31, "llama3.1", "Llama 3.1's: the same after a system message with the knowledge and today's date")

typedef enum data_chat {
#define DATA_X(id, name, text) DATA_CHAT_##id,
    DATA_CHAT_LIST(DATA_X)
#undef DATA_X
        DATA_N_CHATS
} data_chat;

LST_MUST_USE lst_status data_chat_find(const char *name, data_chat *out, lst_error *err);
const char *data_chat_name(data_chat chat);

typedef struct data_message {
    const char *role, *content; /* NUL-terminated UTF-8 */
} data_message;

/* Stretches of a rendered chat that the assistant wrote, as [start, end) of its bytes. */
typedef struct data_span {
    size_t start, end;
} data_span;

typedef struct data_rendered {
    data_text text;
    size_t n_spans, span_room;
    data_span *spans;
} data_rendered;

/* Writes n messages; with add_generation, the header that the assistant's answer follows. Start with {0}. */
LST_MUST_USE lst_status data_chat_render(data_chat chat, const data_message *messages, size_t n, bool add_generation,
                                         data_rendered *out, lst_error *err);
void data_rendered_free(data_rendered *rendered);

/* Appends ids and, for each of them, 1 where the assistant wrote it (mask.ids is as long as ids.ids). */
LST_MUST_USE lst_status data_chat_encode(data_tokenizer *t, const data_rendered *rendered, data_ids *ids,
                                         data_ids *mask, lst_error *err);

#endif
