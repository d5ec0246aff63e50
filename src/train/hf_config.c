/* SPDX-License-Identifier: MIT
 *
 * The dtype in a config.json, changed in its text: whatever else the file says stays as its author wrote it.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "io/json.h"
#include "train/hf_folder.h"

static const struct {
    lst_codec codec;
    const char *name;
} dtypes[] = {{LST_CODEC_F32, "float32"}, {LST_CODEC_BF16, "bfloat16"}, {LST_CODEC_F16, "float16"}};

enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *train_hf_dtype_name(lst_codec codec)
{
    for (size_t i = 0; i < N_DTYPES; i++)
        if (dtypes[i].codec == codec)
            return dtypes[i].name;
    return NULL;
}

lst_codec train_hf_dtype(const char *json, size_t n_bytes)
{
    json_t *config;
    lst_codec found = LST_N_CODECS;
    if (lst__json_parse(&config, "config.json", json, n_bytes, NULL) != LST_OK)
        return found;
    const char *name = json_string_value(json_object_get(config, "torch_dtype"));
    if (!name)
        name = json_string_value(json_object_get(config, "dtype"));
    for (size_t i = 0; name && i < N_DTYPES; i++)
        if (!strcmp(dtypes[i].name, name))
            found = dtypes[i].codec;
    json_decref(config);
    return found;
}

/* The end of the string that begins at `at` (its opening quote): behind the closing one. */
static const char *string_end(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static bool is_dtype_key(const char *at, size_t n)
{
    return (n == 13 && !memcmp(at, "\"torch_dtype\"", n)) || (n == 7 && !memcmp(at, "\"dtype\"", n));
}

/* The value of the key at the top level of valid JSON: a string or null; NULL if there is none. */
static const char *find_value(const char *json, size_t *n_bytes)
{
    int depth = 0;
    for (const char *at = json; *at;) {
        if (*at != '"') {
            depth += *at == '{' || *at == '[' ? 1 : *at == '}' || *at == ']' ? -1 : 0;
            at++;
            continue;
        }
        const char *end = string_end(at), *colon = skip_space(end);
        if (depth == 1 && *colon == ':' && is_dtype_key(at, (size_t)(end - at))) {
            const char *value = skip_space(colon + 1);
            *n_bytes = *value == '"' ? (size_t)(string_end(value) - value) : strspn(value, "nul");
            return value;
        }
        at = end;
    }
    return NULL;
}

lst_status train_hf_set_dtype(const char *json, lst_codec codec, char **out, lst_error *err)
{
    size_t n_old = 0, n = strlen(json) + 64;
    const char *name = train_hf_dtype_name(codec), *value = find_value(json, &n_old), *open = strchr(json, '{');
    if (!name || !open)
        return lst__fail(err, LST_ERR_ARGUMENT, "config.json: no object whose dtype could be set");
    char *text = lst__alloc(n, 1);
    if (!text)
        return lst__fail_memory(err, "the text of a config.json", n);
    if (value)
        snprintf(text, n, "%.*s\"%s\"%s", (int)(value - json), json, name, value + n_old);
    else /* a file without it means float32; the object is never empty: it names its model_type */
        snprintf(text, n, "%.*s\n  \"torch_dtype\": \"%s\",%s", (int)(open + 1 - json), json, name, open + 1);
    *out = text;
    return LST_OK;
}
