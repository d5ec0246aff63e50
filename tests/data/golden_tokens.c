/* SPDX-License-Identifier: MIT
 *
 * golden_tokens DIR: every folder of DIR with a tokenizer.json: ids of hard texts and text of ids must be equal to the
 * reference library's.
 */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files.h"
#include "data/chat.h"

static size_t n_passed, n_failed, n_skipped;

static void report(bool passed, const char *name, const char *what, const char *why)
{
    passed ? n_passed++ : n_failed++;
    if (!passed)
        printf("FAILED %s: %s: %s\n", name, what, why);
}

static bool same_ids(const json_t *want, const data_ids *got)
{
    if (json_array_size(want) != got->n)
        return false;
    for (size_t i = 0; i < got->n; i++)
        if (json_integer_value(json_array_get(want, i)) != got->ids[i])
            return false;
    return true;
}

static void check_ids(data_tokenizer *t, const json_t *text, const json_t *want, bool specials, const char *name,
                      const char *what)
{
    data_ids got = {0};
    lst_error err = {0};
    const lst_status status =
        data_tokenizer_encode(t, json_string_value(text), json_string_length(text), specials, &got, &err);
    if (status != LST_OK)
        report(false, name, what, err.message);
    else
        report(same_ids(want, &got), name, what, specials ? "other ids with special tokens" : "other ids");
    lst__free(got.ids);
}

static void check_text(const data_tokenizer *t, const json_t *ids, const json_t *want, bool skip, const char *name,
                       const char *what)
{
    data_ids list = {0};
    data_text bytes = {0}, text = {0};
    lst_error err = {0};
    lst_status status = LST_OK;
    size_t i;
    json_t *id;
    json_array_foreach(ids, i, id) if (status == LST_OK) status =
        data_ids_add(&list, (int32_t)json_integer_value(id), &err);
    if (status == LST_OK)
        status = data_tokenizer_decode(t, list.ids, list.n, skip, &bytes, &err);
    if (status == LST_OK)
        status = data_utf8_lossy(&text, bytes.data, bytes.n, &err);
    if (status != LST_OK)
        report(false, name, what, err.message);
    else
        report(text.n == json_string_length(want) &&
                   (text.n == 0 || memcmp(text.data, json_string_value(want), text.n) == 0),
               name, what, "other text");
    lst__free(list.ids);
    lst__free(bytes.data);
    lst__free(text.data);
}

static void check_case(data_tokenizer *t, const json_t *c, bool has_template, const char *name)
{
    const char *what = json_string_value(json_object_get(c, "what"));
    const json_t *text = json_object_get(c, "text"), *ids = json_object_get(c, "ids");
    check_ids(t, text, ids, false, name, what);
    const json_t *with = json_object_get(c, "ids_with_special");
    if (with || !has_template) /* files leave the long ones out */
        check_ids(t, text, with ? with : ids, true, name, what);
    const json_t *decoded = json_object_get(c, "decoded");
    check_text(t, ids, decoded, false, name, what);
    const json_t *without = json_object_get(c, "decoded_without_special");
    check_text(t, ids, without ? without : decoded, true, name, what);
}

static void check_cases(data_tokenizer *t, const json_t *expected, const char *name)
{
    size_t i;
    json_t *c;
    bool has_template = false;
    json_array_foreach(json_object_get(expected, "cases"), i, c) has_template |=
        json_object_get(c, "ids_with_special") != NULL;
    json_array_foreach(json_object_get(expected, "cases"), i, c) check_case(t, c, has_template, name);
    json_array_foreach(json_object_get(expected, "decode"), i, c)
        check_text(t, json_object_get(c, "ids"), json_object_get(c, "decoded"), false, name, "random ids");
    const size_t n = (size_t)json_integer_value(json_object_get(expected, "vocab_size"));
    report(data_tokenizer_count(t) == n, name, "vocab_size", "another number of tokens");
}

static void check_folder(const char *folder, const char *name)
{
    char *path = lst__path_join(folder, "tokenizer.json"), *values = lst__path_join(folder, "expected.json");
    json_t *expected = NULL;
    data_tokenizer *t = NULL;
    lst_error err = {0};
    const size_t before = n_failed, before_passed = n_passed;
    json_error_t at;
    expected = json_load_file(values, JSON_ALLOW_NUL, &at); /* one of the texts has NUL characters */
    if (!expected)
        report(false, name, values, at.text);
    else if (data_tokenizer_load(&t, path, &err) == LST_OK)
        check_cases(t, expected, name);
    else if (json_is_true(json_object_get(expected, "optional")) && err.status == LST_ERR_UNSUPPORTED) {
        printf("%-10s skipped, refused by name: %s\n", name, err.message);
        n_skipped++;
    } else
        report(false, name, "tokenizer.json", err.message);
    if (t)
        printf("%-10s %zu of %zu equal\n", name, n_passed - before_passed,
               n_passed - before_passed + n_failed - before);
    data_tokenizer_free(t);
    json_decref(expected);
    lst__free(path);
    lst__free(values);
}

/* ---- chats ---- */

static data_tokenizer *tokenizer_of(const char *dir, const char *name)
{
    char *folder = lst__path_join(dir, name), *path = lst__path_join(folder, "tokenizer.json");
    data_tokenizer *t = NULL;
    lst_error err;
    if (data_tokenizer_load(&t, path, &err) != LST_OK)
        report(false, name, path, err.message);
    lst__free(folder);
    lst__free(path);
    return t;
}

static void check_rendered(data_tokenizer *t, const json_t *c, const data_rendered *rendered, const char *name,
                           const char *what)
{
    const json_t *text = json_object_get(c, "text");
    report(rendered->text.n == json_string_length(text) &&
               memcmp(rendered->text.data, json_string_value(text), rendered->text.n) == 0,
           name, what, "other text");
    data_ids ids = {0}, mask = {0};
    lst_error err;
    if (data_chat_encode(t, rendered, &ids, &mask, &err) != LST_OK)
        report(false, name, what, err.message);
    else {
        report(same_ids(json_object_get(c, "ids"), &ids), name, what, "other ids");
        report(same_ids(json_object_get(c, "assistant_mask"), &mask), name, what, "other mask");
    }
    lst__free(ids.ids);
    lst__free(mask.ids);
}

static void check_chat(const char *dir, const json_t *c)
{
    enum { MOST = 64 };
    data_message messages[MOST];
    const char *name = json_string_value(json_object_get(c, "template"));
    const char *what = json_string_value(json_object_get(c, "what"));
    const json_t *list = json_object_get(c, "messages");
    size_t n = 0, i;
    json_t *m;
    json_array_foreach(list, i, m) if (n < MOST) messages[n++] =
        (data_message){json_string_value(json_object_get(m, "role")), json_string_value(json_object_get(m, "content"))};
    data_tokenizer *t = tokenizer_of(dir, json_string_value(json_object_get(c, "tokenizer")));
    data_rendered rendered = {0};
    data_chat chat;
    lst_error err = {0};
    lst_status status = data_chat_find(name, &chat, &err);
    if (status == LST_OK)
        status = data_chat_render(chat, messages, n, json_is_true(json_object_get(c, "add_generation_prompt")),
                                  &rendered, &err);
    if (status != LST_OK)
        report(false, name, what, err.message);
    else if (t)
        check_rendered(t, c, &rendered, name, what);
    data_rendered_free(&rendered);
    data_tokenizer_free(t);
}

static void check_chats(const char *dir)
{
    char *path = lst__path_join(dir, "chat.json");
    json_error_t at;
    json_t *chats = json_load_file(path, 0, &at), *c;
    const size_t passed = n_passed, failed = n_failed;
    size_t i;
    json_array_foreach(json_object_get(chats, "cases"), i, c) check_chat(dir, c);
    printf("chats      %zu of %zu equal\n", n_passed - passed, n_passed - passed + n_failed - failed);
    json_decref(chats);
    lst__free(path);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: golden_tokens DIR\n");
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 2;
    }
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char *folder = lst__path_join(argv[1], entry->d_name), *file = lst__path_join(folder, "tokenizer.json");
        if (entry->d_name[0] != '.' && lst__is_file(file))
            check_folder(folder, entry->d_name);
        lst__free(folder);
        lst__free(file);
    }
    closedir(dir);
    check_chats(argv[1]);
    printf("%zu passed, %zu failed, %zu skipped\n", n_passed, n_failed, n_skipped);
    return n_failed || !n_passed;
}
