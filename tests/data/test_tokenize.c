/* SPDX-License-Identifier: MIT
 *
 * A tokenised corpus: the ids that the tokenizer gives for each document as a whole, an end behind each, however a
 * document is cut to be read.
 */
#include "data/temp_folder.h"

#include "base/alloc.h"
#include "data/batches.h"
#include "data/tokenize.h"

#define GOLDEN LEANSTEP_SOURCE_DIR "/tests/golden/tokens/"
#define END 3
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_folder_make, temp_folder_remove)

static data_tokenizer *load(const char *name)
{
    char path[400];
    data_tokenizer *t;
    lst_error err;
    snprintf(path, sizeof path, GOLDEN "%s/tokenizer.json", name);
    if (data_tokenizer_load(&t, path, &err) != LST_OK)
        fail_msg("%s", err.message);
    return t;
}

static data_corpus tokenized(const temp_folder *folder, data_tokenizer *t, int32_t end)
{
    data_corpus corpus;
    lst_error err;
    assert_int_equal(data_corpus_open(&corpus, temp_path(folder, "text"), &err), LST_OK);
    if (data_corpus_tokenize(&corpus, t, end, &err) != LST_OK)
        fail_msg("%s", err.message);
    return corpus;
}

/* More than two pieces of lines; runs of newlines and spaces, other alphabets, so that a careless cut shows. */
static char *long_text(void)
{
    static const char *const parts[] = {"don't ", "plan\n", "\n\n",   "   ",  "äöü",
                                        "漢字",   ".\n",    "123456", "\r\n", "end\nand "};
    const size_t n = (size_t)5 << 19;
    char *text = malloc(n + 16), *at = text;
    uint64_t state = 5;
    while (at < text + n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        at = stpcpy(at, parts[(state >> 33) % 10]);
    }
    return text;
}

static void test_pieces_give_the_ids_of_the_whole(void **state)
{
    char *text = long_text();
    temp_write(*state, "text/a.txt", text);
    static const char *const names[] = {"gpt2", "llama3", "qwen2", "smollm"};
    for (size_t i = 0; i < 4; i++) {
        data_tokenizer *t = load(names[i]);
        data_corpus corpus = tokenized(*state, t, END);
        data_ids whole = {0};
        assert_int_equal(data_tokenizer_encode(t, text, strlen(text), true, &whole, NULL), LST_OK);
        assert_int_equal(corpus.n_tokens, whole.n);
        int32_t *ids = malloc(whole.n * sizeof *ids);
        assert_int_equal(data_corpus_read_tokens(&corpus, 0, 0, ids, whole.n, NULL), LST_OK);
        assert_memory_equal(ids, whole.ids, whole.n * sizeof *ids);
        free(ids);
        lst__free(whole.ids);
        data_corpus_close(&corpus);
        data_tokenizer_free(t);
    }
    free(text);
}

static void test_streams_hold_each_document_and_its_end(void **state)
{
    static const char *const texts[] = {"the first of three", "a second one, and longer", "third"};
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "text/%d.txt", i);
        temp_write(*state, name, texts[i]);
    }
    data_tokenizer *t = load("gpt2");
    data_corpus corpus = tokenized(*state, t, END);
    data_split split;
    assert_int_equal(data_split_make(&split, &corpus, 1, 0.3, 2, NULL), LST_OK);
    assert_int_equal(split.train.n_tokens + split.valid.n_tokens, corpus.n_tokens + 3);
    const data_stream *streams[] = {&split.train, &split.valid};
    for (size_t s = 0; s < 2; s++) {
        data_ids want = {0};
        for (size_t i = 0; i < streams[s]->n_segments; i++) {
            const char *text = texts[streams[s]->segments[i].file];
            assert_int_equal(data_tokenizer_encode(t, text, strlen(text), true, &want, NULL), LST_OK);
            want.ids = realloc(want.ids, (want.n + 1) * sizeof *want.ids);
            want.ids[want.n++] = END;
            want.capacity = want.n;
        }
        int32_t ids[200];
        assert_int_equal(want.n, streams[s]->n_tokens);
        assert_int_equal(data_stream_read(streams[s], 0, want.n, ids, NULL), LST_OK);
        assert_memory_equal(ids, want.ids, want.n * sizeof *ids);
        lst__free(want.ids);
    }
    data_split_free(&split);
    data_corpus_close(&corpus);
    data_tokenizer_free(t);
}

static void test_the_hash_is_of_text_ids_and_end(void **state)
{
    temp_write(*state, "text/a.txt", "words that two tokenizers cut in two ways");
    data_tokenizer *t = load("gpt2"), *other = load("llama3");
    data_corpus a = tokenized(*state, t, END), same = tokenized(*state, t, END), end = tokenized(*state, t, END + 1),
                ids = tokenized(*state, other, END);
    assert_true(a.hash == same.hash);
    assert_true(a.hash != end.hash);
    assert_true(a.hash != ids.hash);
    data_corpus_close(&a);
    data_corpus_close(&same);
    data_corpus_close(&end);
    data_corpus_close(&ids);
    data_tokenizer_free(t);
    data_tokenizer_free(other);
}

static void test_no_place_for_the_tokens_is_said(void **state)
{
    temp_write(*state, "text/a.txt", "words");
    data_tokenizer *t = load("gpt2");
    data_corpus corpus;
    lst_error err = {0};
    char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    assert_int_equal(data_corpus_open(&corpus, temp_path(*state, "text"), &err), LST_OK);
    setenv("TMPDIR", temp_path(*state, "missing"), 1);
    assert_int_equal(data_corpus_tokenize(&corpus, t, END, &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "TMPDIR"));
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
    data_corpus_close(&corpus);
    data_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pieces_give_the_ids_of_the_whole),
        TEST(test_streams_hold_each_document_and_its_end),
        TEST(test_the_hash_is_of_text_ids_and_end),
        TEST(test_no_place_for_the_tokens_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
