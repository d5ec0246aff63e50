/* SPDX-License-Identifier: MIT
 *
 * JSON lines: what each form means, which of its tokens count, and how broken ones are refused, by file and line.
 */
#include "data/temp_folder.h"

#include "base/alloc.h"
#include "data/dataset.h"
#include "data/example.h"

#define GOLDEN LEANSTEP_SOURCE_DIR "/tests/golden/tokens/"
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_folder_make, temp_folder_remove)

/* What counts of a line, as text; in fresh memory. */
static char *counted(data_encoder *encoder, const char *line, bool loss_all)
{
    data_record record;
    data_ids ids = {0}, mask = {0}, kept = {0};
    data_text text = {0};
    lst_error err = {0};
    if (data_record_parse(&record, "a.jsonl:1", line, strlen(line), &err) != LST_OK ||
        data_example_encode(encoder, &record, loss_all, "a.jsonl:1", &ids, &mask, &err) != LST_OK)
        fail_msg("%s", err.message);
    assert_int_equal(ids.n, mask.n);
    for (size_t i = 0; i < ids.n; i++)
        if (mask.ids[i])
            assert_int_equal(data_ids_add(&kept, ids.ids[i], NULL), LST_OK);
    assert_int_equal(data_encoder_decode(encoder, kept.ids, kept.n, &text, NULL), LST_OK);
    assert_int_equal(data_text_add(&text, "", 1, NULL), LST_OK);
    data_record_free(&record);
    lst__free(ids.ids);
    lst__free(mask.ids);
    lst__free(kept.ids);
    return text.data;
}

static void expect(data_encoder *encoder, const char *line, const char *wanted)
{
    char *found = counted(encoder, line, false);
    assert_string_equal(found, wanted);
    lst__free(found);
}

static void answers_count_and_prompts_do_not(void **state)
{
    (void)state;
    data_encoder qwen, bytes;
    assert_int_equal(data_encoder_open(&qwen, GOLDEN "qwen2", 1100, NULL, NULL), LST_OK);
    assert_int_equal(data_encoder_open(&bytes, NULL, 257, NULL, NULL), LST_OK);
    assert_true(qwen.has_chat && qwen.chat == DATA_CHAT_QWEN25);
    expect(
        &qwen,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"one\"}, {\"role\": \"assistant\", \"content\": \"two\"},"
        " {\"role\": \"user\", \"content\": \"three\"}, {\"role\": \"assistant\", \"content\": \"four\"}], \"id\": 7}",
        "two<|im_end|>four<|im_end|>");
    expect(&qwen,
           "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}",
           "b<|im_end|>");
    expect(
        &qwen,
        "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"},"
        " {\"role\": \"user\", \"content\": \"c\"}], \"completion\": [{\"role\": \"assistant\", \"content\": \"d\"}]}",
        "d<|im_end|>");
    expect(&qwen, "{\"prompt\": \"2 + 2 =\", \"completion\": \" 4\"}", " 4<|im_end|>");
    expect(&qwen, "{\"instruction\": \"add\", \"input\": \"2, 2\", \"output\": \"4\"}", "4<|im_end|>");
    expect(&bytes, "{\"instruction\": \"add\", \"output\": \"4\"}", "4<end>");
    expect(&bytes, "{\"prompt\": \"\", \"completion\": \"xy\"}", "xy<end>");
    expect(&bytes, "{\"text\": \"all\"}", "all<end>");
    char *all = counted(&bytes, "{\"prompt\": \"xy\", \"completion\": \"z\"}", true);
    assert_string_equal(all, "yz<end>"); /* nothing predicts the first */
    lst__free(all);
    data_encoder_close(&qwen);
    data_encoder_close(&bytes);
}

static void refused(const temp_folder *folder, const char *tokenizer, const char *text, const char *says)
{
    data_set set;
    data_encoder encoder;
    lst_error err = {0};
    temp_write(folder, "a.jsonl", text);
    assert_int_equal(data_encoder_open(&encoder, tokenizer, 1100, NULL, NULL), LST_OK);
    char path[500];
    strcpy(path, temp_path(folder, "a.jsonl"));
    const data_request request = {.path = path, .seq = 16, .seed = 1, .valid_fraction = 0.1, .store = folder->path};
    assert_int_not_equal(data_set_open(&set, &request, &encoder, &err), LST_OK);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    data_encoder_close(&encoder);
}

static void broken_lines_are_named(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {{"{\"text\": \"a\"", "a.jsonl:2"},
                 {"{\"text\": \"\xff\"}", "a.jsonl:2"},
                 {"[1]", "a.jsonl:2: found an array"},
                 {"{\"text\": 5}", "a.jsonl:2: key \"text\" is an integer"},
                 {"{\"text\": \"\"}", "a.jsonl:2: \"text\" is empty"},
                 {"{\"words\": \"a\"}", "a.jsonl:2: the keys make no example"},
                 {"{\"prompt\": \"a\"}", "a.jsonl:2"},
                 {"{\"prompt\": \"a\", \"completion\": \"\"}", "\"completion\" is empty"},
                 {"{\"prompt\": \"a\", \"completion\": [1]}", "two strings or two lists"},
                 {"{\"messages\": []}", "a.jsonl:2: \"messages\" has no messages"},
                 {"{\"messages\": [3]}", "a.jsonl:2, \"messages\"[0]"},
                 {"{\"messages\": [{\"role\": \"tool\", \"content\": \"x\"}]}", "\"role\" is \"tool\""},
                 {"{\"messages\": [{\"role\": \"user\", \"content\": [\"x\"]}]}", "a.jsonl:2, \"messages\"[0]"},
                 {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"\"}]}", "\"content\" is empty"},
                 {"{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}", "a.jsonl:2: nothing in this example"},
                 {"{\"conversations\": [{\"from\": \"gpt\"}]}", "a.jsonl:2, \"conversations\"[0]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        snprintf(text, sizeof text, "{\"text\": \"fine\"}\n%s\n", cases[i].line);
        refused(*state, GOLDEN "qwen2", text, cases[i].says);
    }
    refused(*state, GOLDEN "gpt2", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\"}]}", "--chat");
    refused(*state, NULL, "{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\"}]}", "this model reads bytes");
    refused(*state, NULL, "\n \n", "every line is blank");
    refused(*state, NULL, "{\"text\": \"only one\"}", "one example cannot be split");
    refused(*state, NULL, "{\"prompt\": \"longer than a row is\", \"completion\": \"x\"}\n", "Give a longer --seq");
}

static void rows_hold_every_example(void **state)
{
    data_set set;
    data_encoder encoder;
    char text[4000] = "", path[500];
    for (int i = 0; i < 20; i++)
        sprintf(text + strlen(text), "{\"prompt\": \"%.*s\", \"completion\": \"%c\"}\n", i % 7, "abcdefgh", 'A' + i);
    temp_write(*state, "a.jsonl", text);
    strcpy(path, temp_path(*state, "a.jsonl"));
    assert_int_equal(data_encoder_open(&encoder, NULL, 257, NULL, NULL), LST_OK);
    for (int pack = 0; pack < 2; pack++) {
        const data_request request = {.path = path,
                                      .seq = 12,
                                      .seed = 1,
                                      .valid_fraction = 0.1,
                                      .pack = pack == 1,
                                      .store = ((temp_folder *)*state)->path};
        lst_error err = {0};
        if (data_set_open(&set, &request, &encoder, &err) != LST_OK)
            fail_msg("%s", err.message);
        assert_int_equal(set.counts.n_lines, 20);
        assert_int_equal(set.counts.n_valid_lines, 2);
        assert_true(pack ? set.train.n_sequences < 18 : set.train.n_sequences == 18);
        int seen[26] = {0}, ends = 0, others = 0;
        for (int part = 0; part < 2; part++)
            for (uint64_t row = 0; row < (part ? set.valid : set.train).n_sequences; row++) {
                int32_t ids[12], labels[12];
                assert_int_equal(data_batches_read(part ? &set.valid : &set.train, row, 1, ids, labels, NULL), LST_OK);
                for (int t = 0; t < 12; t++) {
                    ends += labels[t] == 256;
                    others += labels[t] >= 'a' && labels[t] <= 'z';
                    if (labels[t] >= 'A' && labels[t] <= 'Z')
                        seen[labels[t] - 'A']++;
                }
            }
        assert_int_equal(ends, 20);
        assert_int_equal(others, 0);
        /* An example without a prompt begins with its letter, which nothing predicts. */
        for (int i = 0; i < 20; i++)
            assert_int_equal(seen[i], i % 7 != 0);
        data_set_close(&set);
    }
    data_encoder_close(&encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_count_and_prompts_do_not),
        TEST(broken_lines_are_named),
        TEST(rows_hold_every_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
