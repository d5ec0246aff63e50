/* SPDX-License-Identifier: MIT */
#include "data/jsonl.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "io/json.h"
#include "io/printable.h"

const char *data_form_text(data_form form)
{
    static const char *const texts[] = {
#define DATA_X(id, key, text) text,
        DATA_FORM_LIST(DATA_X)
#undef DATA_X
    };
    return texts[form];
}

void data_record_free(data_record *record)
{
    lst__free(record->messages);
    json_decref(record->json);
    *record = (data_record){0};
}

/* ---- fields ---- */

static lst_status fill_string(const json_t *object, const char *where, const char *key, const char **out,
                              lst_error *err)
{
    lst_status status = lst__json_get_string(object, where, key, out, err);
    if (status == LST_OK && (*out)[0] == '\0')
        return lst__fail(err, LST_ERR_FORMAT, "%s: \"%s\" is empty: there is nothing to learn from it", where, key);
    return status;
}

/* ---- messages ---- */

/* What a list of messages calls its parts. */
typedef struct naming {
    const char *role, *content;
} naming;

static const naming usual = {"role", "content"}, sharegpt = {"from", "value"};

static const char *known_role(const char *role)
{
    static const char *const known[][2] = {
        {"system", "system"}, {"user", "user"}, {"human", "user"}, {"assistant", "assistant"}, {"gpt", "assistant"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(role, known[i][0]) == 0)
            return known[i][1];
    return NULL;
}

static lst_status read_message(const json_t *value, const naming *names, const char *where, data_message *out,
                               lst_error *err)
{
    char shown[64];
    const char *role;
    if (!json_is_object(value))
        return lst__fail(err, LST_ERR_FORMAT, "%s: found %s; expected an object with \"%s\" and \"%s\"", where,
                         lst__json_kind(value), names->role, names->content);
    lst_status status = lst__json_get_string(value, where, names->role, &role, err);
    if (status == LST_OK)
        status = lst__json_get_string(value, where, names->content, &out->content, err);
    if (status != LST_OK)
        return status;
    out->role = known_role(role);
    if (!out->role)
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s: \"%s\" is \"%s\"; the templates here know system, user (or human) and assistant (or gpt)",
                         where, names->role, lst__printable(role, shown, sizeof shown));
    if (strcmp(out->role, "assistant") == 0 && out->content[0] == '\0')
        return lst__fail(err, LST_ERR_FORMAT, "%s: the assistant's \"%s\" is empty: there is nothing to learn from it",
                         where, names->content);
    return LST_OK;
}

/* Appends the messages of a list to the record's. */
static lst_status add_messages(data_record *r, const json_t *list, const naming *names, const char *where,
                               const char *key, lst_error *err)
{
    const size_t n = json_array_size(list);
    if (n == 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s: \"%s\" has no messages", where, key);
    data_message *grown = lst__realloc(r->messages, r->n_messages + n, sizeof *grown);
    if (!grown)
        return lst__fail_memory(err, "a chat's messages", (r->n_messages + n) * sizeof *grown);
    r->messages = grown;
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK; i++) {
        char at[400];
        snprintf(at, sizeof at, "%s, \"%s\"[%zu]", where, key, i);
        status = read_message(json_array_get(list, i), names, at, &r->messages[r->n_messages + i], err);
    }
    r->n_messages += n;
    return status;
}

static lst_status read_list(data_record *r, const naming *names, const char *where, const char *key, lst_error *err)
{
    json_t *list;
    lst_status status = lst__json_get_array(r->json, where, key, &list, err);
    return status == LST_OK ? add_messages(r, list, names, where, key, err) : status;
}

/* ---- forms ---- */

static lst_status read_completion(data_record *r, const char *where, lst_error *err)
{
    const json_t *prompt = json_object_get(r->json, "prompt"), *completion = json_object_get(r->json, "completion");
    if (!json_is_array(prompt) && !json_is_array(completion)) {
        lst_status status = lst__json_get_string(r->json, where, "prompt", &r->prompt, err);
        return status == LST_OK ? fill_string(r->json, where, "completion", &r->completion, err) : status;
    }
    if (!json_is_array(prompt) || !json_is_array(completion))
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s: \"prompt\" is %s and \"completion\" is %s; expected two strings or two lists of messages",
                         where, lst__json_kind(prompt), lst__json_kind(completion));
    lst_status status = add_messages(r, prompt, &usual, where, "prompt", err);
    r->n_prompt = r->n_messages;
    return status == LST_OK ? add_messages(r, completion, &usual, where, "completion", err) : status;
}

static lst_status read_alpaca(data_record *r, const char *where, lst_error *err)
{
    lst_status status = fill_string(r->json, where, "instruction", &r->instruction, err);
    r->input = "";
    if (status == LST_OK && lst__json_has(r->json, "input"))
        status = lst__json_get_string(r->json, where, "input", &r->input, err);
    return status == LST_OK ? fill_string(r->json, where, "output", &r->output, err) : status;
}

static lst_status read_form(data_record *r, const char *where, lst_error *err)
{
    switch (r->form) {
    case DATA_FORM_MESSAGES:
        return read_list(r, &usual, where, "messages", err);
    case DATA_FORM_SHAREGPT:
        return read_list(r, &sharegpt, where, "conversations", err);
    case DATA_FORM_COMPLETION:
        return read_completion(r, where, err);
    case DATA_FORM_ALPACA:
        return read_alpaca(r, where, err);
    case DATA_FORM_TEXT:
        return fill_string(r->json, where, "text", &r->text, err);
    default:
        break;
    }
    return lst__fail(
        err, LST_ERR_FORMAT,
        "%s: the keys make no example; expected \"text\", or \"prompt\" and \"completion\", or \"messages\", "
        "or \"conversations\", or \"instruction\" and \"output\"",
        where);
}

lst_status data_record_parse(data_record *out, const char *where, const char *line, size_t n, lst_error *err)
{
    static const char *const keys[] = {
#define DATA_X(id, key, text) key,
        DATA_FORM_LIST(DATA_X)
#undef DATA_X
    };
    data_record r = {0};
    lst_status status = lst__json_parse(&r.json, where, line, n, err);
    if (status != LST_OK)
        return status;
    if (!json_is_object(r.json))
        status = lst__fail(err, LST_ERR_FORMAT, "%s: found %s; expected a JSON object a line", where,
                           lst__json_kind(r.json));
    while (r.form < DATA_N_FORMS && !json_object_get(r.json, keys[r.form]))
        r.form++;
    if (status == LST_OK)
        status = read_form(&r, where, err);
    if (status != LST_OK) {
        data_record_free(&r);
        return status;
    }
    *out = r;
    return LST_OK;
}
