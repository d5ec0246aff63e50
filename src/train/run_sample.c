/* SPDX-License-Identifier: MIT */
#include "train/run_sample.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "train/sample.h"
#include "train/write.h"

bool train_run_chats(const train_run *run)
{
    const uint64_t *forms = run->data.counts.forms;
    return run->encoder.has_chat && forms[DATA_FORM_MESSAGES] + forms[DATA_FORM_SHAREGPT] + forms[DATA_FORM_ALPACA] > 0;
}

/* What has no memory left is simply not shown. */
static void add_byte(void *user, char byte)
{
    (void)!data_text_add(user, &byte, 1, NULL);
}

static void add_text(void *user, const char *text, size_t n)
{
    (void)!data_text_add(user, text, n, NULL);
}

static lst_status encode_chat(train_run *run, data_ids *ids, data_text *out, lst_error *err)
{
    const data_message message = {"user", run->settings.prompt};
    data_rendered rendered = {0};
    data_ids mask = {0};
    add_text(out, "\n", 1); /* the prompt stands on a line of its own */
    lst_status status = data_chat_render(run->encoder.chat, &message, 1, true, &rendered, err);
    if (status == LST_OK)
        status = data_chat_encode(run->encoder.tokenizer, &rendered, ids, &mask, err);
    data_rendered_free(&rendered);
    lst__free(mask.ids);
    return status;
}

/* Without a prompt the text begins after the end of another. */
static lst_status encode_prompt(train_run *run, data_ids *ids, data_text *out, lst_error *err)
{
    const char *prompt = run->settings.prompt;
    if (prompt[0] && train_run_chats(run))
        return encode_chat(run, ids, out, err);
    lst_status status = data_encoder_text(&run->encoder, prompt, strlen(prompt), DATA_FIRST, ids, err);
    if (status == LST_OK && ids->n == 0)
        status = data_ids_add(ids, run->encoder.end < 0 ? 0 : run->encoder.end, err);
    return status;
}

static lst_status write_tokens(train_run *run, const model_sampling *sampling, data_text *out, lst_error *err)
{
    static const char *const turn_ends[] = {"<|im_end|>", "<|eot_id|>"};
    train_writer writer = {.tokenizer = run->encoder.tokenizer, .on_text = add_text, .user = out};
    data_ids ids = {0};
    train_stops_add(&writer.stops, run->encoder.end);
    for (size_t i = 0; i < 2 && train_run_chats(run); i++)
        train_stops_add(&writer.stops, data_tokenizer_added(run->encoder.tokenizer, turn_ends[i]));
    lst_status status = train_stops_read(&writer.stops, run->folder, err);
    if (status == LST_OK)
        status = encode_prompt(run, &ids, out, err);
    if (status == LST_OK)
        status = train_write(run->engine->model, ids.ids, ids.n, sampling, &writer, err);
    lst__free(ids.ids);
    return status;
}

lst_status train_run_sample(train_run *run, data_text *out, lst_error *err)
{
    const train_settings *s = &run->settings;
    const model_sampling sampling = {
        .max_tokens = s->sample_tokens, .temperature = s->temperature, .top_k = s->top_k, .seed = s->seed};
    if (run->encoder.tokenizer)
        return write_tokens(run, &sampling, out, err);
    return train_sample(run->engine->model, s->prompt, &sampling, add_byte, out, err);
}
