/* SPDX-License-Identifier: MIT
 *
 * Examples in JSON, one a line. Which form a line has follows from its keys, looked for in this order; other keys
 * (ids, sources, scores) are passed over.
 */
#ifndef LST_DATA_JSONL_H
#define LST_DATA_JSONL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/chat.h"
#include "data/corpus.h"
#include "leanstep/status.h"

/* X(identifier, the keys that tell it, what it is) */
#define DATA_FORM_LIST(X)                                                                                              \
    X(MESSAGES, "messages", "{\"messages\": [{\"role\", \"content\"}, ...]}")                                          \
    X(SHAREGPT, "conversations", "{\"conversations\": [{\"from\", \"value\"}, ...]}")                                  \
    X(COMPLETION, "prompt", "{\"prompt\", \"completion\"}")                                                            \
    X(ALPACA, "instruction", "{\"instruction\", \"input\", \"output\"}")                                               \
    X(TEXT, "text", "{\"text\"}")

typedef enum data_form {
#define DATA_X(id, key, text) DATA_FORM_##id,
    DATA_FORM_LIST(DATA_X)
#undef DATA_X
        DATA_N_FORMS
} data_form;

/* Strings belong to `json`. */
typedef struct data_record {
    data_form form;
    json_t *json;
    const char *prompt, *completion; /* COMPLETION of strings; NULL where it is one of lists of messages */
    const char *instruction, *input, *output;
    const char *text;
    size_t n_messages, n_prompt; /* MESSAGES, SHAREGPT; and COMPLETION of lists, with the prompt's messages first */
    data_message *messages;      /* roles are system, user, assistant */
} data_record;

/* A line's longest: a document of some millions of words. It bounds what a parse takes. */
#define DATA_MAX_LINE ((size_t)64 << 20)

/* `where` is the file and line for messages. Refused: what is no JSON object in UTF-8, keys that make no form, values
 * of another type than the form has, roles that templates do not know, and what is empty: a text, a completion, a list
 * of messages, an assistant's answer. */
LST_MUST_USE lst_status data_record_parse(data_record *out, const char *where, const char *line, size_t n,
                                          lst_error *err);
void data_record_free(data_record *record);
const char *data_form_text(data_form form);

/* The lines of a file of a corpus, one after another; blank ones are passed over. */
typedef struct data_lines {
    data_corpus *corpus;
    size_t file;
    size_t number;    /* of the line at hand, from 1 */
    const char *text; /* not terminated; valid until the next */
    size_t n;
    char where[300]; /* "file:number" */
    /* what has been read */
    char *buffer;
    size_t begin, held, room;
    uint64_t offset;
} data_lines;

void data_lines_start(data_lines *out, data_corpus *corpus, size_t file);
/* *more is false where there is none left. */
LST_MUST_USE lst_status data_lines_next(data_lines *lines, bool *more, lst_error *err);
void data_lines_end(data_lines *lines);

#endif
