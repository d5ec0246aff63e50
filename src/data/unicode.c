/* SPDX-License-Identifier: MIT */
#include "data/unicode.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/unicode_tables.h"

lst_status data_text_add(data_text *text, const void *bytes, size_t n, lst_error *err)
{
    if (n > text->capacity - text->n) {
        const size_t capacity = (text->n + n) * 2 + 64;
        char *grown = lst__realloc(text->data, capacity, 1);
        if (!grown)
            return lst__fail_memory(err, "a text", capacity);
        text->data = grown;
        text->capacity = capacity;
    }
    if (n > 0)
        memcpy(text->data + text->n, bytes, n);
    text->n += n;
    return LST_OK;
}

/* Bytes of the longest prefix that begins a valid sequence (at least 1), and whether it is a whole character. Follows
 * table 3-7 of the Unicode standard: the second byte's range depends on the first. */
static size_t sequence(const unsigned char *s, size_t n, bool *whole)
{
    const unsigned char first = s[0];
    *whole = first < 0x80;
    if (first < 0xc2 || first > 0xf4)
        return 1;
    const size_t want = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xbf;
    if (first == 0xe0)
        low = 0xa0;
    if (first == 0xed)
        high = 0x9f;
    if (first == 0xf0)
        low = 0x90;
    if (first == 0xf4)
        high = 0x8f;
    size_t have = 1;
    while (have < want && have < n && s[have] >= low && s[have] <= high) {
        low = 0x80;
        high = 0xbf;
        have++;
    }
    *whole = have == want;
    return have;
}

size_t data_utf8_read(const char *text, size_t n, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    bool whole;
    const size_t length = sequence(s, n, &whole);
    *code = DATA_INVALID;
    if (!whole)
        return 1;
    static const unsigned char first_bits[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t value = s[0] & first_bits[length];
    for (size_t i = 1; i < length; i++)
        value = value << 6 | (s[i] & 0x3fu);
    *code = value;
    return length;
}

size_t data_utf8_write(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(marks[length] | code);
    return length;
}

lst_status data_utf8_lossy(data_text *out, const char *text, size_t n, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK;) {
        bool whole;
        const size_t length = sequence((const unsigned char *)text + i, n - i, &whole);
        status = whole ? data_text_add(out, text + i, length, err) : data_text_add(out, "\xef\xbf\xbd", 3, err);
        i += length;
    }
    return status;
}

static bool in_ranges(const struct data__range *ranges, size_t n, uint32_t code)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].high)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && code >= ranges[low].low && code <= ranges[low].high;
}
#define IN_RANGES(table, code) in_ranges(table, sizeof(table) / sizeof((table)[0]), code)

bool data_is_letter(uint32_t code)
{
    if (code < 0x80)
        return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
    return IN_RANGES(data__letters, code);
}

bool data_is_number(uint32_t code)
{
    if (code < 0x80)
        return code >= '0' && code <= '9';
    return IN_RANGES(data__numbers, code);
}

bool data_is_space(uint32_t code)
{
    return IN_RANGES(data__spaces, code);
}

bool data_is_digit(uint32_t code)
{
    return data_is_number(code) || IN_RANGES(data__digits_more, code);
}

static lst_status add_composed(data_text *out, const char *text, size_t n, lst_error *err)
{
    if (n == 0)
        return LST_OK;
    utf8proc_uint8_t *composed = NULL;
    const utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &composed,
                                                 UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (length < 0)
        return lst__fail(err, LST_ERR_MEMORY, "normalizing %zu bytes of text: %s", n, utf8proc_errmsg(length));
    lst_status status = data_text_add(out, composed, (size_t)length, err);
    free(composed);
    return status;
}

/* The library's tables are newer than the reference's: what the reference does not know stands between the pieces that
 * are normalized, and passes through. A character unknown to an older Unicode neither reorders nor composes. */
lst_status data_nfc(data_text *out, const char *text, size_t n, lst_error *err)
{
    size_t from = 0;
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK;) {
        uint32_t code;
        const size_t length = data_utf8_read(text + i, n - i, &code);
        if (code == DATA_INVALID || (code >= 0x80 && IN_RANGES(data__nfc_unknown, code))) {
            status = add_composed(out, text + from, i - from, err);
            if (status == LST_OK)
                status = data_text_add(out, text + i, length, err);
            from = i + length;
        }
        i += length;
    }
    return status != LST_OK ? status : add_composed(out, text + from, n - from, err);
}
