/* SPDX-License-Identifier: MIT */
#include "data/pretokenize.h"

#include <stdbool.h>

#include "data/unicode.h"

const char *const data_llama3_pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char *const data_qwen2_pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static bool is_symbol(uint32_t c)
{
    return !data_is_space(c) && !data_is_letter(c) && !data_is_number(c);
}

static bool is_line_end(uint32_t c)
{
    return c == '\r' || c == '\n';
}

/* Bytes from i on while the class holds. */
static size_t run(const char *text, size_t n, size_t i, bool (*holds)(uint32_t))
{
    while (i < n) {
        uint32_t c;
        const size_t length = data_utf8_read(text + i, n - i, &c);
        if (!holds(c))
            break;
        i += length;
    }
    return i;
}

/* Length of a contraction at text, 0 if none: 's 't 're 've 'm 'll 'd. With fold, in any case, and the long s too. */
static size_t contraction(const char *text, size_t n, bool fold)
{
    if (n < 2 || text[0] != '\'')
        return 0;
    const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
        size_t k = 0;
        while (endings[e][k] && k + 1 < n) {
            const char c = text[k + 1];
            if (c != endings[e][k] && !(fold && c == endings[e][k] - 'a' + 'A'))
                break;
            k++;
        }
        if (!endings[e][k])
            return k + 1;
    }
    return fold && n >= 3 && text[1] == '\xc5' && text[2] == '\xbf' ? 3 : 0; /* U+017F folds to s */
}

/* \s+(?!\S)|\s+ on a run of white space [0, end): all of it at the end of the text, otherwise all but its last
 * character, which goes with the word that follows; a single one stands alone. */
static size_t white_space(const char *text, size_t n, size_t end)
{
    if (end == n)
        return end;
    size_t last = 0;
    for (size_t i = 0; i < end;) {
        uint32_t c;
        last = i;
        i += data_utf8_read(text + i, end - i, &c);
    }
    return last > 0 ? last : end;
}

static bool is_symbol_no_digit(uint32_t c)
{
    return is_symbol(c) && !data_is_digit(c);
}

/* Where single digits are cut out first, a piece ends before each: a digit stands alone, and white space before one is
 * at the end of its text. Returns 0 where GPT-2's pattern decides. */
static size_t digit_or_before(const char *text, size_t n)
{
    uint32_t c;
    const size_t first = data_utf8_read(text, n, &c);
    if (data_is_digit(c))
        return first;
    const size_t end = run(text, n, 0, data_is_space);
    if (end == 0 || end == n)
        return 0;
    data_utf8_read(text + end, n - end, &c);
    return data_is_digit(c) ? end : 0;
}

static size_t gpt2_word(const char *text, size_t n, bool digits_apart)
{
    const size_t digit = digits_apart ? digit_or_before(text, n) : 0;
    if (digit)
        return digit;
    const size_t short_form = contraction(text, n, false);
    if (short_form)
        return short_form;
    const size_t start = text[0] == ' ' ? 1 : 0;
    if (start < n) {
        bool (*const classes[])(uint32_t) = {data_is_letter, data_is_number,
                                             digits_apart ? is_symbol_no_digit : is_symbol};
        for (size_t k = 0; k < 3; k++) {
            const size_t end = run(text, n, start, classes[k]);
            if (end > start)
                return end;
        }
    }
    return white_space(text, n, run(text, n, 0, data_is_space));
}

/* [^\r\n\p{L}\p{N}]?\p{L}+ : 0 if it does not match here. */
static size_t letters_with_mark(const char *text, size_t n)
{
    uint32_t c;
    const size_t first = data_utf8_read(text, n, &c);
    size_t start = 0;
    if (!data_is_letter(c)) {
        if (is_line_end(c) || data_is_number(c))
            return 0;
        start = first;
    }
    const size_t end = run(text, n, start, data_is_letter);
    return end > start ? end : 0;
}

static size_t numbers(const char *text, size_t n, int most)
{
    size_t i = 0;
    while (i < n && most-- > 0) {
        uint32_t c;
        const size_t length = data_utf8_read(text + i, n - i, &c);
        if (!data_is_number(c))
            break;
        i += length;
    }
    return i;
}

static size_t llama3_word(const char *text, size_t n, int most_digits)
{
    size_t end = contraction(text, n, true);
    if (!end)
        end = letters_with_mark(text, n);
    if (!end)
        end = numbers(text, n, most_digits);
    if (end)
        return end;
    const size_t start = text[0] == ' ' ? 1 : 0;
    end = run(text, n, start, is_symbol);
    if (end > start)
        return run(text, n, end, is_line_end);
    end = run(text, n, 0, data_is_space);
    for (size_t i = end; i-- > 0;) /* \s*[\r\n]+ : to the last line end of the run */
        if (is_line_end((unsigned char)text[i]))
            return i + 1;
    return white_space(text, n, end);
}

size_t data_first_word(data_splitter splitter, const char *text, size_t n)
{
    switch (splitter) {
    case DATA_SPLIT_GPT2:
        return gpt2_word(text, n, false);
    case DATA_SPLIT_SMOLLM:
        return gpt2_word(text, n, true);
    case DATA_SPLIT_LLAMA3:
        return llama3_word(text, n, 3);
    case DATA_SPLIT_QWEN2:
        return llama3_word(text, n, 1);
    }
    return n;
}
