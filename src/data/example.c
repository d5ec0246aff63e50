/* SPDX-License-Identifier: MIT */
#include "data/example.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

typedef struct encoding {
    data_encoder *encoder;
    const char *where;
    data_ids *ids, *mask;
} encoding;

/* The mask of what was added to ids since the last call. */
static lst_status mark(const encoding *e, int32_t counts, lst_error *err)
{
    lst_status status = LST_OK;
    while (status == LST_OK && e->mask->n < e->ids->n)
        status = data_ids_add(e->mask, counts, err);
    return status;
}

static lst_status add_text(const encoding *e, const char *text, data_place place, int32_t counts, lst_error *err)
{
    lst_status status = data_encoder_text(e->encoder, text, strlen(text), place, e->ids, err);
    return status == LST_OK ? mark(e, counts, err) : status;
}

static lst_status add_end(const encoding *e, lst_error *err)
{
    lst_status status = data_encoder_needs_end(e->encoder, err);
    if (status == LST_OK)
        status = data_ids_add(e->ids, e->encoder->end, err);
    return status == LST_OK ? mark(e, 1, err) : status;
}

static lst_status add_completion(const encoding *e, const char *prompt, const char *completion, lst_error *err)
{
    lst_status status = add_text(e, prompt, DATA_FIRST, 0, err);
    if (status == LST_OK)
        status = add_text(e, completion, DATA_LAST, 1, err);
    return status == LST_OK ? add_end(e, err) : status;
}

/* ---- chats ---- */

/* A template whose end of turn is plain text could not be stopped at. */
static lst_status check_template(const encoding *e, lst_error *err)
{
    const data_encoder *encoder = e->encoder;
    if (!encoder->tokenizer)
        return lst__fail(
            err, LST_ERR_UNSUPPORTED,
            "%s: messages need a tokenizer with the tokens of a chat template, and this model reads bytes; "
            "give \"prompt\" and \"completion\" as strings",
            e->where);
    if (!encoder->has_chat)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "%s: messages need a chat template, and none was recognised in the model's folder: name one "
                         "with --chat (chatml, qwen2, qwen2.5, smollm2, llama3, llama3.1)",
                         e->where);
    const bool llama = encoder->chat == DATA_CHAT_LLAMA3 || encoder->chat == DATA_CHAT_LLAMA31;
    const char *const needed[] = {llama ? "<|start_header_id|>" : "<|im_start|>", llama ? "<|eot_id|>" : "<|im_end|>"};
    for (size_t i = 0; i < 2; i++)
        if (data_tokenizer_added(encoder->tokenizer, needed[i]) < 0)
            return lst__fail(
                err, LST_ERR_ARGUMENT,
                "%s: the chat template %s is made of tokens such as %s, which this tokenizer does not have", e->where,
                data_chat_name(encoder->chat), needed[i]);
    return LST_OK;
}

/* The first n_prompt messages are context: what an assistant says in them does not count. */
static lst_status add_chat(const encoding *e, const data_message *messages, size_t n, size_t n_prompt, lst_error *err)
{
    data_rendered rendered = {0};
    lst_status status = check_template(e, err);
    if (status == LST_OK)
        status = data_chat_render(e->encoder->chat, messages, n, false, &rendered, err);
    size_t skip = 0;
    for (size_t i = 0; i < n_prompt; i++)
        skip += strcmp(messages[i].role, "assistant") == 0;
    if (status == LST_OK && skip > 0) {
        rendered.n_spans -= skip;
        memmove(rendered.spans, rendered.spans + skip, rendered.n_spans * sizeof *rendered.spans);
    }
    if (status == LST_OK)
        status = data_chat_encode(e->encoder->tokenizer, &rendered, e->ids, e->mask, err);
    data_rendered_free(&rendered);
    return status;
}

/* ---- alpaca ---- */

static lst_status join(data_text *out, const char *const *parts, size_t n, lst_error *err)
{
    lst_status status = LST_OK;
    for (size_t i = 0; i < n && status == LST_OK; i++)
        status = data_text_add(out, parts[i], strlen(parts[i]), err);
    return status == LST_OK ? data_text_add(out, "", 1, err) : status;
}

/* Taori et al. 2023, "Stanford Alpaca": the prompts of its train.py. */
static lst_status alpaca_prompt(const data_record *r, data_text *out, lst_error *err)
{
    const char *const with_input[] = {
        "Below is an instruction that describes a task, paired with an input that provides further context. "
        "Write a response that appropriately completes the request.\n\n### Instruction:\n",
        r->instruction, "\n\n### Input:\n", r->input, "\n\n### Response:"};
    const char *const without[] = {"Below is an instruction that describes a task. Write a response that appropriately "
                                   "completes the request.\n\n### Instruction:\n",
                                   r->instruction, "\n\n### Response:"};
    return r->input[0] ? join(out, with_input, 5, err) : join(out, without, 3, err);
}

static lst_status add_alpaca(const encoding *e, const data_record *r, lst_error *err)
{
    data_text prompt = {0};
    const char *const parts[] = {r->instruction, r->input[0] ? "\n" : "", r->input};
    const bool chat = e->encoder->has_chat;
    lst_status status = chat ? join(&prompt, parts, 3, err) : alpaca_prompt(r, &prompt, err);
    if (status == LST_OK && chat) {
        const data_message messages[] = {{"user", prompt.data}, {"assistant", r->output}};
        status = add_chat(e, messages, 2, 0, err);
    } else if (status == LST_OK) {
        status = add_completion(e, prompt.data, r->output, err);
    }
    lst__free(prompt.data);
    return status;
}

/* ---- */

static lst_status add_record(const encoding *e, const data_record *r, lst_error *err)
{
    lst_status status;
    switch (r->form) {
    case DATA_FORM_TEXT:
        status = add_text(e, r->text, DATA_WHOLE, 1, err);
        return status == LST_OK ? add_end(e, err) : status;
    case DATA_FORM_ALPACA:
        return add_alpaca(e, r, err);
    case DATA_FORM_COMPLETION:
        if (r->prompt)
            return add_completion(e, r->prompt, r->completion, err);
        break;
    default:
        break;
    }
    return add_chat(e, r->messages, r->n_messages, r->n_prompt, err);
}

lst_status data_example_encode(data_encoder *encoder, const data_record *record, bool loss_all, const char *where,
                               data_ids *ids, data_ids *mask, lst_error *err)
{
    const encoding e = {encoder, where, ids, mask};
    ids->n = mask->n = 0;
    lst_status status = add_record(&e, record, err);
    if (status != LST_OK)
        return status;
    bool counts = false;
    for (size_t i = 1; i < ids->n; i++) {
        mask->ids[i] |= loss_all;
        counts |= mask->ids[i] != 0;
    }
    if (counts)
        return LST_OK;
    return lst__fail(err, LST_ERR_FORMAT,
                     "%s: nothing in this example is to be learned: no assistant speaks in it (%s; --loss all would "
                     "count every token)",
                     where, data_form_text(record->form));
}
