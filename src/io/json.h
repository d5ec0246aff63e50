/* SPDX-License-Identifier: MIT
 *
 * JSON from files that nobody vouches for: a thin layer over jansson with bounds, and getters whose messages name the
 * file, the key, what was found and what was expected.
 *
 * `where` in every call is how the document is called in messages: a path, or a path and a key inside it.
 */
#ifndef LST_IO_JSON_H
#define LST_IO_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

/* Deepest nesting and most values (numbers, strings, arrays, ..., keys not counted) of one document. The second bounds
 * the memory of a parse: jansson needs up to about 100 bytes a value beside the text. */
#define LST_JSON_MAX_DEPTH 64
#define LST_JSON_MAX_VALUES ((size_t)4 << 20)

/* Parses exactly one value of n_bytes of UTF-8 (white space around it is allowed). Refuses duplicate keys, NUL
 * characters, lone surrogates, and what exceeds the bounds. Messages have line and column; err->position the byte. The
 * caller owns *out (json_decref). */
LST_MUST_USE lst_status lst__json_parse(json_t **out, const char *where, const char *text, size_t n_bytes,
                                        lst_error *err);
/* The same for a whole file of at most limit_bytes. */
LST_MUST_USE lst_status lst__json_load(json_t **out, const char *path, size_t limit_bytes, lst_error *err);
/* Writes the value with two spaces of indent and a final newline, complete or not at all. */
LST_MUST_USE lst_status lst__json_save(const json_t *value, const char *path, lst_error *err);
/* The value on one line in fresh memory (lst__free): doubles with 17 digits, so that they are read back bit for bit. */
LST_MUST_USE lst_status lst__json_text(const json_t *value, char **out, lst_error *err);

/* "a string", "an integer", ...: how a message calls what was found. NULL is "nothing". */
const char *lst__json_kind(const json_t *value);

/* Whether the key is there and not null: what an optional key is asked before one of the getters. */
bool lst__json_has(const json_t *object, const char *key);

/* Getters. The key must be there with the right type, else LST_ERR_FORMAT. Strings, objects and arrays are borrowed. */
LST_MUST_USE lst_status lst__json_get_int(const json_t *object, const char *where, const char *key, int64_t *out,
                                          lst_error *err);
/* An integer of at least 0. */
LST_MUST_USE lst_status lst__json_get_size(const json_t *object, const char *where, const char *key, size_t *out,
                                           lst_error *err);
/* An integer or a real. */
LST_MUST_USE lst_status lst__json_get_real(const json_t *object, const char *where, const char *key, double *out,
                                           lst_error *err);
LST_MUST_USE lst_status lst__json_get_bool(const json_t *object, const char *where, const char *key, bool *out,
                                           lst_error *err);
LST_MUST_USE lst_status lst__json_get_string(const json_t *object, const char *where, const char *key, const char **out,
                                             lst_error *err);
LST_MUST_USE lst_status lst__json_get_object(const json_t *object, const char *where, const char *key, json_t **out,
                                             lst_error *err);
LST_MUST_USE lst_status lst__json_get_array(const json_t *object, const char *where, const char *key, json_t **out,
                                            lst_error *err);

/* Refuses a key that is not in the list, and names those that are. */
LST_MUST_USE lst_status lst__json_only_keys(const json_t *object, const char *where, const char *const *keys,
                                            size_t n_keys, lst_error *err);

#endif
