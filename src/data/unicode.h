/* SPDX-License-Identifier: MIT
 *
 * Characters: UTF-8 in and out, the classes that pre-tokenizers ask for, and NFC.
 *
 * Bytes that are no valid UTF-8 are read one at a time as DATA_INVALID, a character of no class. So any bytes can be
 * tokenized, and decoding gives the same bytes back.
 */
#ifndef DATA_UNICODE_H
#define DATA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/status.h"

#define DATA_INVALID UINT32_MAX

/* Bytes that grow. Start with {0}; release with lst__free(text.data). */
typedef struct data_text {
    char *data;
    size_t n, capacity;
} data_text;
LST_MUST_USE lst_status data_text_add(data_text *text, const void *bytes, size_t n, lst_error *err);

/* The character at text (n >= 1 bytes): its code point, or DATA_INVALID; returns the bytes it takes (1 if invalid). */
size_t data_utf8_read(const char *text, size_t n, uint32_t *code);
/* Writes a code point (at most 0x10ffff) as UTF-8; returns its 1 to 4 bytes. */
size_t data_utf8_write(uint32_t code, char out[4]);
/* Appends text with each maximal invalid part replaced by U+FFFD, as the Unicode standard (3.9) recommends. */
LST_MUST_USE lst_status data_utf8_lossy(data_text *out, const char *text, size_t n, lst_error *err);

bool data_is_letter(uint32_t code);
bool data_is_number(uint32_t code);
bool data_is_space(uint32_t code);
bool data_is_digit(uint32_t code); /* what a splitter of single digits takes apart */

/* Appends text in normalization form C. Invalid bytes pass through. */
LST_MUST_USE lst_status data_nfc(data_text *out, const char *text, size_t n, lst_error *err);

#endif
