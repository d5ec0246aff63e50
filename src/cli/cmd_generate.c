/* SPDX-License-Identifier: MIT
 *
 * leanstep generate: text from a run or a folder with a model.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/model_source.h"
#include "data/encoder.h"
#include "leanstep/ledger.h"
#include "leanstep/pool.h"
#include "plan/activations.h"
#include "plan/gguf_arch.h"
#include "train/checkpoint.h"
#include "train/gguf_file.h"
#include "train/sample.h"
#include "train/write.h"

#define LST_X(id, name, text) "|" name
static const char chat_names[] = DATA_CHAT_LIST(LST_X);
#undef LST_X

static const cli_option options[] = {
    {"prompt", CLI_STRING, "TEXT", NULL, "what the text begins with [the start of a document]"},
    {"chat", CLI_CHOICE, chat_names, NULL, "the prompt is what a user says, and the model answers"},
    {"system", CLI_STRING, "TEXT", NULL, "with --chat: the system's message [as the template has it]"},
    {"tokens", CLI_COUNT, "N", "400", "how many tokens to write at most (bytes, of a byte-level model)"},
    {"temperature", CLI_DOUBLE, "X", "0.8", "0: always the likeliest; 1: as the model's probabilities are"},
    {"top-k", CLI_COUNT, "N", "40", "choose among so many; 0: all"},
    {"seed", CLI_COUNT, "N", "1", "another number, another text"},
    {"threads", CLI_COUNT, "N", NULL, "speed, never the text [all there are]"},
    {NULL, CLI_FLAG, NULL, NULL, NULL}};

static void put_byte(void *user, char byte)
{
    (void)user;
    putchar(byte);
    fflush(stdout);
}

/* ---- with a tokenizer ---- */

/* Control characters would upset a terminal. */
static void put_text(void *user, const char *text, size_t n)
{
    (void)user;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool control = (byte < 32 && byte != '\n' && byte != '\t') || byte == 127;
        putchar(control ? '?' : byte);
    }
    fflush(stdout);
}

static lst_status encode_chat(const cli_args *args, data_tokenizer *t, data_ids *ids, lst_error *err)
{
    const data_message system = {"system", cli_given(args, "system") ? cli_text(args, "system") : ""};
    const data_message user = {"user", cli_given(args, "prompt") ? cli_text(args, "prompt") : ""};
    const data_message messages[] = {system, user};
    const size_t skip = cli_given(args, "system") ? 0 : 1;
    data_rendered rendered = {0};
    data_ids mask = {0};
    lst_status status =
        data_chat_render((data_chat)cli_choice(args, "chat"), messages + skip, 2 - skip, true, &rendered, err);
    if (status == LST_OK)
        status = data_chat_encode(t, &rendered, ids, &mask, err);
    data_rendered_free(&rendered);
    lst__free(mask.ids);
    return status;
}

/* What ends an assistant's turn, in whichever template. */
static void add_turn_ends(const data_tokenizer *t, train_stops *stops)
{
    static const char *const ends[] = {"<|im_end|>", "<|eot_id|>", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        train_stops_add(stops, data_tokenizer_added(t, ends[i]));
}

static lst_status write_tokens(const cli_args *args, const cli_model_source *from, model *m,
                               const model_sampling *sampling, lst_error *err)
{
    data_tokenizer *t;
    data_ids ids = {0};
    train_writer writer = {.on_text = put_text};
    const char *prompt = cli_given(args, "prompt") ? cli_text(args, "prompt") : "";
    char *path = lst__is_gguf(from->tokenizer) ? lst__strdup(from->tokenizer)
                                               : lst__path_join(from->tokenizer, data_tokenizer_files[0]);
    lst_status status = LST_OK;
    if (!path)
        status = lst__fail_memory(err, "a path", strlen(from->tokenizer) + 32);
    else
        status = lst__is_gguf(path) ? train_gguf_tokenizer(&t, path, err) : data_tokenizer_load(&t, path, err);
    lst__free(path);
    if (status != LST_OK)
        return status;
    writer.tokenizer = t;
    status = lst__is_gguf(from->weights) ? train_gguf_stops(&writer.stops, from->weights, err)
                                         : train_stops_read(&writer.stops, from->weights, err);
    if (status == LST_OK && cli_given(args, "chat")) {
        add_turn_ends(t, &writer.stops);
        status = encode_chat(args, t, &ids, err);
    } else if (status == LST_OK) {
        status = data_tokenizer_encode(t, prompt, strlen(prompt), true, &ids, err);
        fputs(prompt, stdout);
    }
    /* Nothing to begin with: the end of one document is what stands before the next. */
    const int32_t *begin = ids.n ? ids.ids : writer.stops.ids;
    if (status == LST_OK && ids.n + writer.stops.n == 0)
        status =
            lst__fail(err, LST_ERR_ARGUMENT, "the model names no token that a text begins or ends with: give --prompt");
    if (status == LST_OK)
        status = train_write(m, begin, ids.n ? ids.n : 1, sampling, &writer, err);
    putchar('\n');
    lst__free(ids.ids);
    data_tokenizer_free(t);
    return status;
}

/* ---- */

static lst_status write_text(const cli_args *args, const cli_model_source *from, model *m, lst_error *err)
{
    model_sampling sampling = {.max_tokens = (size_t)cli_count(args, "tokens"),
                               .temperature = cli_real(args, "temperature"),
                               .top_k = (size_t)cli_count(args, "top-k"),
                               .seed = cli_count(args, "seed")};
    if (sampling.temperature == 0 && !cli_given(args, "top-k"))
        sampling.top_k = 0; /* the likeliest needs no choice: a default must not contradict an option that was given */
    if (from->tokenizer)
        return write_tokens(args, from, m, &sampling, err);
    const char *prompt = cli_given(args, "prompt") ? cli_text(args, "prompt") : "";
    fputs(prompt, stdout);
    lst_status status = train_sample(m, prompt, &sampling, put_byte, NULL, err);
    putchar('\n');
    return status;
}

static lst_status generate(const cli_args *args, const cli_model_source *from, lst_pool *pool, lst_error *err)
{
    lst_plan *plan = NULL;
    lst_arena arena = {0};
    static lst_ledger ledger;
    model *m = NULL;
    lst_ledger_init(&ledger);
    lst_status status =
        lst__plan_generation(&plan, &from->arch, from->form, from->positions, lst_pool_threads(pool), err);
    if (status == LST_OK)
        status = lst__arena_reserve(&arena, plan->arena_bytes, pool, err);
    if (status == LST_OK)
        status = model_create(&m, plan, arena.base, &ledger, pool, err);
    if (status == LST_OK)
        status = train_load_model(from->weights, plan, m, err);
    if (status == LST_OK)
        status = write_text(args, from, m, err);
    model_destroy(m);
    if (arena.base)
        lst__arena_release(&arena);
    lst_plan_destroy(plan);
    return status;
}

static int run(const cli_args *args)
{
    lst_error err;
    lst_pool *pool = NULL;
    cli_model_source from;
    lst_status status = cli_model_source_find(args->positionals[0], &from, &err);
    if (status == LST_OK && cli_given(args, "chat") && !from.tokenizer)
        status = lst__fail(&err, LST_ERR_ARGUMENT, "--chat has no effect on a byte-level model: its text has no turns");
    if (status == LST_OK && cli_given(args, "system") && !cli_given(args, "chat"))
        status = lst__fail(&err, LST_ERR_ARGUMENT, "--system has no effect without --chat NAME");
    if (status == LST_OK && !(cli_real(args, "temperature") >= 0))
        status =
            lst__fail(&err, LST_ERR_ARGUMENT, "--temperature %g: expected 0 or more", cli_real(args, "temperature"));
    if (status == LST_OK)
        status = lst_pool_create(&pool, cli_given(args, "threads") ? (size_t)cli_count(args, "threads") : 0, &err);
    if (status == LST_OK)
        status = generate(args, &from, pool, &err);
    lst_pool_destroy(pool);
    cli_model_source_free(&from);
    return status == LST_OK ? CLI_OK : cli_fail(args, &err);
}

const cli_command cli_command_generate = {
    .name = "generate",
    .summary = "let a trained model write",
    .positionals = "RUN|CHECKPOINT|DIR|FILE.gguf [options]",
    .min_positionals = 1,
    .max_positionals = 1,
    .examples = "  leanstep generate runs/demo-1 --prompt 'static int '\n"
                "  leanstep generate runs/demo-1/checkpoint-00000500 --temperature 0\n"
                "  leanstep generate my-qwen --chat qwen2.5 --system 'Be brief.' --prompt 'Why is the sky blue?'\n",
    .text =
        "RUN is a folder that `leanstep train` has made: its newest checkpoint is used. DIR is a folder with "
        "config.json and\n"
        "model.safetensors; its tokenizer.json, if there is one, makes the tokens, and eos_token_id of "
        "generation_config.json and\n"
        "config.json ends the text. FILE.gguf has all of that in itself (gpt2, llama, qwen2 or qwen3; F32 to Q2_K). "
        "What is\n"
        "written is valid UTF-8. The same seed gives the same text, for any number of threads.\n",
    .tables = {{"Options", options}},
    .run = run,
};
