/* SPDX-License-Identifier: MIT
 *
 * Text written by a model with a tokenizer.
 */
#ifndef LST_TRAIN_WRITE_H
#define LST_TRAIN_WRITE_H

#include "data/tokenizer.h"
#include "leanstep/status.h"
#include "model/model.h"

#define TRAIN_MAX_STOPS 16

/* Ids that end a text. */
typedef struct train_stops {
    size_t n;
    int32_t ids[TRAIN_MAX_STOPS];
} train_stops;

/* Adds an id; one that is there already, or beyond the room, is left out. */
void train_stops_add(train_stops *stops, int32_t id);
/* "eos_token_id" (a number or a list) of DIR/generation_config.json and DIR/config.json. Files that are not there are
 * passed over. */
LST_MUST_USE lst_status train_stops_read(train_stops *stops, const char *dir, lst_error *err);

typedef struct train_writer {
    const data_tokenizer *tokenizer;
    train_stops stops;
    /* Gets valid UTF-8 as it is written: characters are never cut, invalid bytes become U+FFFD. */
    void (*on_text)(void *user, const char *text, size_t n);
    void *user;
} train_writer;

/* Continues n >= 1 ids by at most sampling->max_tokens tokens; ends before the first stop. sampling->stop is not
 * looked at. */
LST_MUST_USE lst_status train_write(model *m, const int32_t *ids, size_t n, const model_sampling *sampling,
                                    const train_writer *writer, lst_error *err);

#endif
