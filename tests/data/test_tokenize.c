/* SPDX-License-Identifier: MIT
 *
 * A tokenised corpus: the ids that the tokenizer gives for each document as a whole, an end behind each, however a
 * document is cut to be read.
 */
#include "data/temp_folder.h"

#include "base/alloc.h"
#include "data/batches.h"
#include "data/tokenized.h"

#define GOLDEN LEANSTEP_SOURCE_DIR "/tests/golden/tokens/"
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_folder_make, temp_folder_remove)

typedef struct bench {
    data_corpus corpus;
    data_encoder encoder;
    data_store store;
    data_tokenized tokenized;
    data_documents documents;
    char folder[500];
} bench;

static void open_bench(bench *b, const temp_folder *folder, const char *name, size_t piece)
{
    lst_error err = {0};
    snprintf(b->folder, sizeof b->folder, "%s", temp_path(folder, "text"));
    bool ok = data_corpus_open(&b->corpus, b->folder, &err) == LST_OK &&
              data_encoder_open(&b->encoder, name, 4096, NULL, &err) == LST_OK &&
              data_store_open(&b->store, b->folder, &err) == LST_OK &&
              data_tokenize(&b->tokenized, &b->corpus, &b->encoder, &b->store, piece, &err) == LST_OK;
    if (!ok)
        fail_msg("%s", err.message);
    b->documents = data_tokenized_documents(&b->tokenized, &b->encoder);
}

static void close_bench(bench *b)
{
    data_tokenized_free(&b->tokenized);
    data_store_close(&b->store);
    data_encoder_close(&b->encoder);
    data_corpus_close(&b->corpus);
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
    static const char *const names[] = {GOLDEN "gpt2", GOLDEN "llama3", GOLDEN "qwen2", GOLDEN "smollm"};
    static const size_t pieces[] = {5000, (size_t)1 << 20};
    for (size_t i = 0; i < 8; i++) {
        bench b;
        open_bench(&b, *state, names[i / 2], pieces[i % 2]);
        data_ids whole = {0};
        assert_int_equal(data_tokenizer_encode(b.encoder.tokenizer, text, strlen(text), true, &whole, NULL), LST_OK);
        assert_int_equal(b.store.n, whole.n);
        int32_t *ids = malloc(whole.n * sizeof *ids);
        assert_int_equal(b.documents.read(b.documents.context, 0, 0, whole.n, ids, NULL), LST_OK);
        assert_memory_equal(ids, whole.ids, whole.n * sizeof *ids);
        free(ids);
        lst__free(whole.ids);
        close_bench(&b);
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
    bench b;
    open_bench(&b, *state, GOLDEN "gpt2", 1000);
    data_split split;
    assert_int_equal(data_split_make(&split, &b.documents, 1, 0.3, 2, NULL), LST_OK);
    assert_int_equal(split.train.n_tokens + split.valid.n_tokens, b.store.n + 3);
    const data_stream *streams[] = {&split.train, &split.valid};
    for (size_t s = 0; s < 2; s++) {
        data_ids want = {0};
        for (size_t i = 0; i < streams[s]->n_segments; i++) {
            const char *text = texts[streams[s]->segments[i].document];
            assert_int_equal(data_encoder_text(&b.encoder, text, strlen(text), DATA_WHOLE, &want, NULL), LST_OK);
            assert_int_equal(data_ids_add(&want, b.encoder.end, NULL), LST_OK);
        }
        int32_t ids[200];
        assert_int_equal(want.n, streams[s]->n_tokens);
        assert_int_equal(data_stream_read(streams[s], 0, want.n, ids, NULL), LST_OK);
        assert_memory_equal(ids, want.ids, want.n * sizeof *ids);
        lst__free(want.ids);
    }
    data_split_free(&split);
    close_bench(&b);
}

static void test_no_place_for_the_tokens_is_said(void **state)
{
    data_store store;
    lst_error err = {0};
    assert_int_equal(data_store_open(&store, temp_path(*state, "missing"), &err), LST_ERR_IO);
    assert_non_null(strstr(err.message, "missing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pieces_give_the_ids_of_the_whole),
        TEST(test_streams_hold_each_document_and_its_end),
        TEST(test_no_place_for_the_tokens_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
