/* SPDX-License-Identifier: MIT */
#include "io/json.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/printable.h"

/* ---- bounds, checked before jansson allocates anything ---- */

typedef struct scan {
    size_t depth, most_depth, n_values;
    size_t at_depth; /* where the bound on depth was first exceeded */
} scan;

/* Returns the index behind the string that begins at text[i] == '"'. */
static size_t skip_string(const char *text, size_t n_bytes, size_t i)
{
    for (i++; i < n_bytes && text[i] != '"'; i++)
        i += text[i] == '\\';
    return i + 1;
}

/* Counts what bounds the parse: each value but the first follows one of [ { , : (a generous count). */
static scan scan_text(const char *text, size_t n_bytes)
{
    scan s = {.n_values = 1};
    for (size_t i = 0; i < n_bytes;) {
        char c = text[i];
        if (c == '"') {
            i = skip_string(text, n_bytes, i);
            continue;
        }
        if (c == '[' || c == '{')
            s.depth++;
        if ((c == ']' || c == '}') && s.depth > 0)
            s.depth--;
        if (s.depth > s.most_depth) {
            s.most_depth = s.depth;
            s.at_depth = s.depth == LST_JSON_MAX_DEPTH + 1 ? i : s.at_depth;
        }
        s.n_values += c == '[' || c == ',' || c == ':';
        i++;
    }
    return s;
}

/* Length of the UTF-8 character at text (1 to 4), or 0 if it is none: overlong forms, surrogates, beyond U+10FFFF. */
static size_t utf8_length(const unsigned char *text, size_t n_left)
{
    unsigned char lead = text[0];
    size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (n == 0 || n > n_left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (lead == 0xe0 && text[1] < 0xa0) || (lead == 0xed && text[1] >= 0xa0) ||
               (lead == 0xf0 && text[1] < 0x90) || (lead == 0xf4 && text[1] >= 0x90);
    return bad ? 0 : n;
}

static lst_status check_bytes(const char *where, const char *text, size_t n_bytes, lst_error *err)
{
    for (size_t i = 0; i < n_bytes;) {
        size_t n = utf8_length((const unsigned char *)text + i, n_bytes - i);
        if (n == 0)
            return lst__fail_at(err, LST_ERR_FORMAT, i, "%s: byte %zu (0x%02x) is not UTF-8 text", where, i,
                                (unsigned char)text[i]);
        if (text[i] == '\0')
            return lst__fail_at(err, LST_ERR_FORMAT, i, "%s: a NUL character at byte %zu", where, i);
        i += n;
    }
    scan s = scan_text(text, n_bytes);
    if (s.most_depth > LST_JSON_MAX_DEPTH)
        return lst__fail_at(err, LST_ERR_FORMAT, s.at_depth,
                            "%s: arrays and objects are nested %zu deep; at most %d are accepted", where, s.most_depth,
                            LST_JSON_MAX_DEPTH);
    if (s.n_values > LST_JSON_MAX_VALUES)
        return lst__fail(err, LST_ERR_FORMAT, "%s: %zu values; at most %zu are accepted", where, s.n_values,
                         LST_JSON_MAX_VALUES);
    return LST_OK;
}

/* ---- reading and writing ---- */

static lst_status parse_failed(const char *where, const json_error_t *problem, size_t n_bytes, lst_error *err)
{
    if (json_error_code(problem) == json_error_out_of_memory)
        return lst__fail_memory(err, where, n_bytes);
    char text[sizeof problem->text];
    return lst__fail_at(err, LST_ERR_FORMAT, (uint64_t)problem->position, "%s: invalid JSON at line %d, column %d: %s",
                        where, problem->line, problem->column, lst__printable(problem->text, text, sizeof text));
}

lst_status lst__json_parse(json_t **out, const char *where, const char *text, size_t n_bytes, lst_error *err)
{
    lst_status status = check_bytes(where, text, n_bytes, err);
    if (status != LST_OK)
        return status;
    if (lst__fault_now())
        return lst__fail_memory(err, where, n_bytes);
    json_error_t problem;
    json_t *value = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (value == NULL)
        return parse_failed(where, &problem, n_bytes, err);
    *out = value;
    return LST_OK;
}

lst_status lst__json_load(json_t **out, const char *path, size_t limit_bytes, lst_error *err)
{
    char *text;
    size_t n_bytes;
    lst_status status = lst__file_read(path, limit_bytes, &text, &n_bytes, err);
    if (status != LST_OK)
        return status;
    status = lst__json_parse(out, path, text, n_bytes, err);
    lst__free(text);
    return status;
}

/* Where a dump goes, piece by piece. */
typedef struct sink {
    lst_writer *writer;
    lst_status status;
    lst_error *err;
} sink;

static int write_piece(const char *piece, size_t n_bytes, void *context)
{
    sink *to = context;
    to->status = lst__writer_write(to->writer, piece, n_bytes, to->err);
    return to->status == LST_OK ? 0 : -1;
}

lst_status lst__json_save(const json_t *value, const char *path, lst_error *err)
{
    sink to = {.err = err, .status = LST_OK};
    lst_status status = lst__writer_open(&to.writer, path, err);
    if (status != LST_OK)
        return status;
    int failed = json_dump_callback(value, write_piece, &to, JSON_INDENT(2) | JSON_ENCODE_ANY);
    if (failed != 0 && to.status == LST_OK)
        to.status = lst__fail_memory(err, path, 0);
    if (to.status == LST_OK && write_piece("\n", 1, &to) == 0)
        return lst__writer_commit(to.writer, err);
    lst__writer_abort(to.writer);
    return to.status;
}

lst_status lst__json_text(const json_t *value, char **out, lst_error *err)
{
    size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
    size_t n_bytes = json_dumpb(value, NULL, 0, flags);
    char *text = n_bytes == 0 ? NULL : lst__alloc(n_bytes + 1, 1);
    if (text == NULL)
        return lst__fail_memory(err, "a JSON text", n_bytes + 1);
    size_t n_written = json_dumpb(value, text, n_bytes, flags);
    if (n_written != n_bytes) {
        lst__free(text);
        return lst__fail_memory(err, "a JSON text", n_bytes + 1);
    }
    *out = text;
    return LST_OK;
}

/* ---- getters ---- */

const char *lst__json_kind(const json_t *value)
{
    static const char *const kinds[] = {"an object",  "an array", "a string",  "an integer",
                                        "a fraction", "\"true\"", "\"false\"", "null"};
    return value == NULL ? "nothing" : kinds[json_typeof(value)];
}

bool lst__json_has(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return value != NULL && !json_is_null(value);
}

static lst_status wrong(const json_t *found, const char *where, const char *key, const char *expected, lst_error *err)
{
    if (found == NULL)
        return lst__fail(err, LST_ERR_FORMAT, "%s: key \"%s\" is missing; %s is expected", where, key, expected);
    return lst__fail(err, LST_ERR_FORMAT, "%s: key \"%s\" is %s; %s is expected", where, key, lst__json_kind(found),
                     expected);
}

lst_status lst__json_get_int(const json_t *object, const char *where, const char *key, int64_t *out, lst_error *err)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return wrong(value, where, key, "an integer", err);
    *out = (int64_t)json_integer_value(value);
    return LST_OK;
}

lst_status lst__json_get_size(const json_t *object, const char *where, const char *key, size_t *out, lst_error *err)
{
    int64_t value = 0;
    lst_status status = lst__json_get_int(object, where, key, &value, err);
    if (status != LST_OK)
        return status;
    if (value < 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s: key \"%s\" is %lld; an integer of at least 0 is expected", where,
                         key, (long long)value);
    *out = (size_t)value;
    return LST_OK;
}

lst_status lst__json_get_real(const json_t *object, const char *where, const char *key, double *out, lst_error *err)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return wrong(value, where, key, "a number", err);
    *out = json_number_value(value);
    return LST_OK;
}

lst_status lst__json_get_bool(const json_t *object, const char *where, const char *key, bool *out, lst_error *err)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value))
        return wrong(value, where, key, "true or false", err);
    *out = json_is_true(value);
    return LST_OK;
}

lst_status lst__json_get_string(const json_t *object, const char *where, const char *key, const char **out,
                                lst_error *err)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return wrong(value, where, key, "a string", err);
    *out = json_string_value(value);
    return LST_OK;
}

lst_status lst__json_get_object(const json_t *object, const char *where, const char *key, json_t **out, lst_error *err)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_object(value))
        return wrong(value, where, key, "an object", err);
    *out = value;
    return LST_OK;
}

lst_status lst__json_get_array(const json_t *object, const char *where, const char *key, json_t **out, lst_error *err)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_array(value))
        return wrong(value, where, key, "an array", err);
    *out = value;
    return LST_OK;
}

static bool is_listed(const char *key, const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; i < n_keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

lst_status lst__json_only_keys(const json_t *object, const char *where, const char *const *keys, size_t n_keys,
                               lst_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (is_listed(key, keys, n_keys))
            continue;
        char list[512] = "", name[100];
        for (size_t i = 0; i < n_keys && strlen(list) + strlen(keys[i]) + 3 < sizeof list; i++) {
            strcat(list, i == 0 ? "" : ", ");
            strcat(list, keys[i]);
        }
        return lst__fail(err, LST_ERR_FORMAT, "%s: unknown key \"%s\"; known are: %s", where,
                         lst__printable(key, name, sizeof name), list);
    }
    return LST_OK;
}
