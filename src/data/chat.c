/* SPDX-License-Identifier: MIT */
#include "data/chat.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

/* What differs between templates. */
typedef struct style {
    const char *name;
    const char *start;       /* before everything */
    const char *before_role; /* a turn is before_role, role, after_role, content, end, after_turn */
    const char *after_role;
    const char *end;
    const char *after_turn;
    const char *default_system; /* said if the first message is no system message; NULL: nothing */
    const char *system_preface; /* a system turn always comes first and begins with this; NULL: no such turn */
    bool trims;                 /* contents lose the white space around them */
} style;

#define CHATML .start = "", .before_role = "<|im_start|>", .after_role = "\n", .end = "<|im_end|>", .after_turn = "\n"
#define LLAMA3                                                                                                         \
    .start = "<|begin_of_text|>", .before_role = "<|start_header_id|>", .after_role = "<|end_header_id|>\n\n",         \
    .end = "<|eot_id|>", .after_turn = "", .trims = true

static const style styles[DATA_N_CHATS] = {
    [DATA_CHAT_CHATML] = {"chatml", CHATML},
    [DATA_CHAT_QWEN2] = {"qwen2", CHATML, .default_system = "You are a helpful assistant."},
    [DATA_CHAT_QWEN25] = {"qwen2.5", CHATML,
                          .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
    [DATA_CHAT_SMOLLM2] = {"smollm2", CHATML,
                           .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    [DATA_CHAT_LLAMA3] = {"llama3", LLAMA3},
    /* the published template's date where none is given */
    [DATA_CHAT_LLAMA31] = {"llama3.1", LLAMA3,
                           .system_preface = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"},
};

lst_status data_chat_find(const char *name, data_chat *out, lst_error *err)
{
    for (size_t i = 0; i < DATA_N_CHATS; i++) {
        if (strcmp(styles[i].name, name) == 0) {
            *out = (data_chat)i;
            return LST_OK;
        }
    }
    return lst__fail(err, LST_ERR_ARGUMENT,
                     "chat template \"%s\" is not known; there are chatml, qwen2, qwen2.5, smollm2, llama3, llama3.1",
                     name);
}

const char *data_chat_name(data_chat chat)
{
    return styles[chat].name;
}

void data_rendered_free(data_rendered *rendered)
{
    lst__free(rendered->text.data);
    lst__free(rendered->spans);
    *rendered = (data_rendered){0};
}

static lst_status add(data_rendered *out, const char *text, lst_error *err)
{
    return data_text_add(&out->text, text, strlen(text), err);
}

/* The template language's trim is Python's str.strip: Unicode white space and U+001C to U+001F. */
static bool is_trimmed(uint32_t code)
{
    return data_is_space(code) || (code >= 0x1c && code <= 0x1f);
}

static lst_status add_content(data_rendered *out, const style *s, const char *content, lst_error *err)
{
    const size_t n = strlen(content);
    if (!s->trims)
        return data_text_add(&out->text, content, n, err);
    size_t start = SIZE_MAX, end = 0;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        const size_t length = data_utf8_read(content + i, n - i, &code);
        if (!is_trimmed(code)) {
            start = start == SIZE_MAX ? i : start;
            end = i + length;
        }
        i += length;
    }
    return start == SIZE_MAX ? LST_OK : data_text_add(&out->text, content + start, end - start, err);
}

static lst_status add_span(data_rendered *out, size_t start, lst_error *err)
{
    if (out->n_spans == out->span_room) {
        const size_t room = out->span_room * 2 + 8;
        data_span *grown = lst__realloc(out->spans, room, sizeof *grown);
        if (!grown)
            return lst__fail_memory(err, "a chat's turns", room * sizeof *grown);
        out->spans = grown;
        out->span_room = room;
    }
    out->spans[out->n_spans++] = (data_span){start, out->text.n};
    return LST_OK;
}

static lst_status add_turn(data_rendered *out, const style *s, const char *role, const char *preface,
                           const char *content, lst_error *err)
{
    lst_status status;
    if ((status = add(out, s->before_role, err)) != LST_OK || (status = add(out, role, err)) != LST_OK ||
        (status = add(out, s->after_role, err)) != LST_OK || (status = add(out, preface, err)) != LST_OK)
        return status;
    const size_t start = out->text.n;
    if ((status = add_content(out, s, content, err)) != LST_OK || (status = add(out, s->end, err)) != LST_OK)
        return status;
    if (strcmp(role, "assistant") == 0 && (status = add_span(out, start, err)) != LST_OK)
        return status;
    return add(out, s->after_turn, err);
}

lst_status data_chat_render(data_chat chat, const data_message *messages, size_t n, bool add_generation,
                            data_rendered *out, lst_error *err)
{
    const style *s = &styles[chat];
    if (n == 0)
        return lst__fail(err, LST_ERR_ARGUMENT, "a chat without messages");
    const bool has_system = strcmp(messages[0].role, "system") == 0;
    size_t first = 0;
    lst_status status = add(out, s->start, err);
    if (status == LST_OK && s->system_preface) {
        first = has_system;
        status = add_turn(out, s, "system", s->system_preface, has_system ? messages[0].content : "", err);
    } else if (status == LST_OK && s->default_system && !has_system)
        status = add_turn(out, s, "system", "", s->default_system, err);
    for (size_t i = first; i < n && status == LST_OK; i++)
        status = add_turn(out, s, messages[i].role, "", messages[i].content, err);
    if (status == LST_OK && add_generation) {
        if ((status = add(out, s->before_role, err)) == LST_OK && (status = add(out, "assistant", err)) == LST_OK)
            status = add(out, s->after_role, err);
    }
    return status;
}

/* Marks the tokens that hold bytes [start, end) of the text the tokens spell. */
static void mark(const data_tokenizer *t, const data_ids *ids, size_t first, data_span span, int32_t *mask)
{
    size_t at = 0;
    for (size_t i = first; i < ids->n; i++) {
        const size_t next = at + data_tokenizer_token_bytes(t, ids->ids[i]);
        if (at < span.end && next > span.start)
            mask[i] = 1;
        at = next;
    }
}

/* Where each span lies in the text as the tokenizer normalizes it. A span begins after a line feed and ends with a
 * token in ASCII, neither of which composes with anything, so the pieces can be normalized apart. */
static lst_status normalized_length(const data_tokenizer *t, const char *text, size_t n, size_t *length, lst_error *err)
{
    data_text composed = {0};
    lst_status status = data_tokenizer_normalize(t, &composed, text, n, err);
    *length = composed.n;
    lst__free(composed.data);
    return status;
}

lst_status data_chat_encode(data_tokenizer *t, const data_rendered *rendered, data_ids *ids, data_ids *mask,
                            lst_error *err)
{
    const size_t first = ids->n;
    lst_status status = data_tokenizer_encode(t, rendered->text.data, rendered->text.n, false, ids, err);
    for (size_t i = first; i < ids->n && status == LST_OK; i++)
        status = data_ids_add(mask, 0, err);
    size_t raw = 0, at = 0; /* the end of the span before, in the text and in the normalized text */
    for (size_t k = 0; k < rendered->n_spans && status == LST_OK; k++) {
        const data_span span = rendered->spans[k];
        size_t before, inside = 0;
        status = normalized_length(t, rendered->text.data + raw, span.start - raw, &before, err);
        if (status == LST_OK)
            status = normalized_length(t, rendered->text.data + span.start, span.end - span.start, &inside, err);
        if (status != LST_OK)
            break;
        mark(t, ids, first, (data_span){at + before, at + before + inside}, mask->ids);
        at += before + inside;
        raw = span.end;
    }
    return status;
}
