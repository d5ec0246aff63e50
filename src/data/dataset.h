/* SPDX-License-Identifier: MIT
 *
 * What is trained on: a path turned into rows of tokens for training and for validation.
 *
 *     text       a text file, or a folder of them: documents joined by the end token, cut into rows
 *     examples   a file of JSON lines (.jsonl), or a folder whose text files are all of that kind: one example a row,
 *                or packed
 *     tokens     a token file of llm.c's
 *
 * Bytes and token files are read where they are. What a tokenizer makes is written to a store (data/store.h) first.
 * Batches are a function of (seed, position) alone.
 */
#ifndef LST_DATA_DATASET_H
#define LST_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batches.h"
#include "data/encoder.h"
#include "data/jsonl.h"
#include "data/rows.h"
#include "data/token_file.h"
#include "data/tokenized.h"

typedef enum data_kind { DATA_KIND_TEXT, DATA_KIND_EXAMPLES, DATA_KIND_TOKENS } data_kind;

typedef struct data_request {
    const char *path;
    size_t seq;
    uint64_t seed;
    double valid_fraction; /* 0: all is training data */
    bool pack, loss_all;   /* of examples; refused for other data, where they have no effect */
    const char *store;     /* an existing folder for the store */
} data_request;

#define DATA_N_LENGTHS 24

/* What was found and what became of it. */
typedef struct data_counts {
    uint64_t forms[DATA_N_FORMS]; /* lines */
    uint64_t n_lines, n_valid_lines;
    uint64_t n_tokens, n_counted; /* of whole examples, before anything was cut */
    uint64_t longest, shortest;
    uint64_t lengths[DATA_N_LENGTHS]; /* lines of 2^i to 2^(i+1) - 1 tokens; the last: or more */
    uint64_t n_split;                 /* texts longer than a row, cut into several */
    uint64_t n_cut, n_cut_tokens;     /* other examples whose end was cut off */
    uint64_t n_left_out;              /* of them, those of which nothing that counts was left */
} data_counts;

typedef struct data_set {
    bool is_open;
    data_kind kind;
    uint64_t hash;       /* of everything that decides the tokens; of bytes, the corpus's */
    uint64_t disk_bytes; /* of the store */
    data_counts counts;  /* of examples */
    data_batches train, valid;
    /* what they are made of */
    data_corpus corpus;
    data_store store;
    data_token_file file;
    data_tokenized tokenized;
    data_examples examples;
    data_documents documents;
    data_split split;
    data_rows train_rows, valid_rows;
} data_set;

/* Opens in place: a set must not be moved. The encoder is not kept. */
LST_MUST_USE lst_status data_set_open(data_set *set, const data_request *request, data_encoder *encoder,
                                      lst_error *err);
void data_set_close(data_set *set); /* a set of zeroes is allowed */
/* Tokens of the training and of the validation data, fill not counted. */
uint64_t data_set_tokens(const data_set *set, bool valid);
/* ---- its parts ---- */
/* Lines to examples in set->examples, with counts. */
LST_MUST_USE lst_status data__read_examples(data_set *set, const data_request *request, data_encoder *encoder,
                                            lst_error *err);

#endif
