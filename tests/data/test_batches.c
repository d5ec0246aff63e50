/* SPDX-License-Identifier: MIT
 *
 * Documents to streams to sequences: nothing lost, nothing shared between training and validation, order from the
 * seed alone.
 */
#include "data/temp_folder.h"

#include "data/batches.h"
#include "data/bytes.h"

static data_corpus open_corpus(const char *path)
{
    data_corpus corpus;
    lst_error err = {0};
    if (data_corpus_open(&corpus, path, &err) != LST_OK)
        fail_msg("%s", err.message);
    return corpus;
}

static data_split make_split(const data_documents *documents, uint64_t seed, double fraction, size_t seq)
{
    data_split split;
    lst_error err = {0};
    if (data_split_make(&split, documents, seed, fraction, seq, &err) != LST_OK)
        fail_msg("%s", err.message);
    return split;
}

/* n documents "<letter>..." of 10 to 19 bytes, all bytes of one document alike. */
static void write_documents(const temp_folder *folder, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[32], text[32] = {0};
        snprintf(name, sizeof name, "d/doc%02zu", i);
        memset(text, (int)('A' + i), 10 + i % 10);
        temp_write(folder, name, text);
    }
}

static void every_token_is_in_one_stream(void **state)
{
    write_documents(*state, 40);
    data_corpus corpus = open_corpus(temp_path(*state, "d"));
    data_documents documents = data_corpus_documents(&corpus);
    for (uint64_t seed = 0; seed < 20; seed++) {
        data_split split = make_split(&documents, seed, 0.1, 16);
        assert_int_equal(split.train.n_segments + split.valid.n_segments, 40);
        assert_int_equal(split.train.n_tokens + split.valid.n_tokens, corpus.n_bytes + 40);
        assert_int_equal(split.n_shared, 0);
        assert_true(split.valid.n_tokens >= 17 && split.valid.n_tokens <= 3 * (corpus.n_bytes + 40) / 20);
        bool seen[40] = {false};
        for (int part = 0; part < 2; part++) {
            const data_stream *stream = part ? &split.valid : &split.train;
            for (size_t i = 0; i < stream->n_segments; i++) {
                assert_false(seen[stream->segments[i].document]);
                seen[stream->segments[i].document] = true;
            }
        }
        data_split_free(&split);
    }
    data_corpus_close(&corpus);
}

static void split_depends_on_the_seed(void **state)
{
    write_documents(*state, 40);
    data_corpus corpus = open_corpus(temp_path(*state, "d"));
    data_documents documents = data_corpus_documents(&corpus);
    data_split a = make_split(&documents, 1, 0.2, 16), b = make_split(&documents, 1, 0.2, 16),
               c = make_split(&documents, 2, 0.2, 16);
    assert_int_equal(a.valid.n_segments, b.valid.n_segments);
    bool differs = a.valid.n_segments != c.valid.n_segments;
    for (size_t i = 0; i < a.valid.n_segments; i++) {
        assert_int_equal(a.valid.segments[i].document, b.valid.segments[i].document);
        differs |= i < c.valid.n_segments && a.valid.segments[i].document != c.valid.segments[i].document;
    }
    assert_true(differs);
    data_split_free(&a);
    data_split_free(&b);
    data_split_free(&c);
    data_corpus_close(&corpus);
}

static void one_document_is_cut_by_position(void **state)
{
    char text[1001] = {0};
    for (size_t i = 0; i < 1000; i++)
        text[i] = (char)('a' + i % 26);
    temp_write(*state, "one", text);
    data_corpus corpus = open_corpus(temp_path(*state, "one"));
    data_documents documents = data_corpus_documents(&corpus);
    data_split split = make_split(&documents, 3, 0.05, 32);
    assert_int_equal(split.n_shared, 1);
    assert_int_equal(split.train.n_tokens, 951);
    assert_int_equal(split.valid.n_tokens, 51);
    int32_t tokens[51];
    assert_int_equal(data_stream_read(&split.valid, 0, 51, tokens, NULL), LST_OK);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(tokens[i], text[950 + i]);
    assert_int_equal(tokens[50], DATA_BYTES_END);
    data_split_free(&split);
    data_corpus_close(&corpus);
}

/* For every length around the limit: a split is made or refused, and the seq the message names works. */
static void short_text_names_a_seq_that_works(void **state)
{
    for (size_t length = 1; length < 60; length++) {
        char text[64] = {0};
        memset(text, 'x', length);
        temp_write(*state, "short", text);
        data_corpus corpus = open_corpus(temp_path(*state, "short"));
        data_documents documents = data_corpus_documents(&corpus);
        data_split split;
        lst_error err = {0};
        lst_status status = data_split_make(&split, &documents, 1, 0.05, 20, &err);
        if (status == LST_OK) {
            assert_true(split.train.n_tokens >= 21 && split.valid.n_tokens >= 21);
            data_split_free(&split);
        } else {
            assert_int_equal(status, LST_ERR_ARGUMENT);
            assert_non_null(strstr(err.message, "too short"));
            const char *use = strstr(err.message, "Use --seq ");
            assert_true(use || length < 2);
            if (use) {
                split = make_split(&documents, 1, 0.05, strtoul(use + 10, NULL, 10));
                data_split_free(&split);
            }
        }
        assert_int_equal(status == LST_OK, length >= 40);
        data_corpus_close(&corpus);
    }
}

static void short_documents_name_a_seq_that_works(void **state)
{
    write_documents(*state, 3); /* 10, 11 and 12 bytes */
    data_corpus corpus = open_corpus(temp_path(*state, "d"));
    data_documents documents = data_corpus_documents(&corpus);
    for (size_t seq = 1; seq < 40; seq++) {
        data_split split;
        lst_error err = {0};
        if (data_split_make(&split, &documents, 1, 0.05, seq, &err) != LST_OK) {
            const char *use = strstr(err.message, "Use --seq ");
            assert_non_null(use);
            assert_true(strtoul(use + 10, NULL, 10) < seq);
            split = make_split(&documents, 1, 0.05, strtoul(use + 10, NULL, 10));
        }
        data_split_free(&split);
    }
    data_corpus_close(&corpus);
}

static void tokens_are_bytes_and_ends(void **state)
{
    temp_write(*state, "d/a", "ab");
    temp_write_bytes(*state, "d/b", "\xff\xc3\xa9", 3);
    temp_write(*state, "d/c", "cdefghijklmnopqrstuvw");
    data_corpus corpus = open_corpus(temp_path(*state, "d"));
    data_documents documents = data_corpus_documents(&corpus);
    data_segment segments[] = {{0, 0, 2, 0}, {1, 0, 3, 3}, {2, 1, 4, 7}};
    data_stream stream = {&documents, 3, segments, 12};
    static const int32_t want[12] = {'a', 'b', 256, 0xff, 0xc3, 0xa9, 256, 'd', 'e', 'f', 'g', 256};
    for (size_t first = 0; first <= 12; first++)
        for (size_t n = 0; first + n <= 12; n++) {
            int32_t got[13];
            got[n] = -7;
            assert_int_equal(data_stream_read(&stream, first, n, got, NULL), LST_OK);
            assert_memory_equal(got, want + first, n * sizeof *got);
            assert_int_equal(got[n], -7);
        }
    int32_t got[13];
    lst_error err = {0};
    assert_int_equal(data_stream_read(&stream, 5, 8, got, &err), LST_ERR_ARGUMENT);
    data_corpus_close(&corpus);
}

static void permutation_is_one(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t n = sizes[s], fixed = 0;
        unsigned char seen[4097] = {0};
        for (uint64_t i = 0; i < n; i++) {
            uint64_t j = data_permute(42, 3, i, n);
            assert_true(j < n && !seen[j]);
            seen[j] = 1;
            fixed += j == i;
        }
        assert_true(n < 64 || fixed < 12); /* one fixed point is expected of a random permutation */
    }
    assert_true(data_permute(1, 0, 5, (uint64_t)1 << 40) < (uint64_t)1 << 40);
}

/* Mean distance between neighbours' places: a third of n for a random order. */
static void permutation_mixes(void **state)
{
    (void)state;
    const uint64_t n = 5000;
    double sum = 0;
    for (uint64_t i = 0; i + 1 < n; i++) {
        double d = (double)data_permute(7, 0, i, n) - (double)data_permute(7, 0, i + 1, n);
        sum += d < 0 ? -d : d;
    }
    assert_true(sum / (double)(n - 1) / (double)n > 0.31 && sum / (double)(n - 1) / (double)n < 0.36);
}

static void epoch_visits_each_sequence_once(void **state)
{
    write_documents(*state, 40);
    data_corpus corpus = open_corpus(temp_path(*state, "d"));
    data_documents documents = data_corpus_documents(&corpus);
    data_split split = make_split(&documents, 1, 0.1, 8);
    data_batches batches;
    assert_int_equal(data_batches_make(&batches, &split.train, 8, 99, true, NULL), LST_OK);
    static int32_t all[2048];
    assert_int_equal(data_stream_read(&split.train, 0, split.train.n_tokens, all, NULL), LST_OK);
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        bool seen[2048] = {false};
        for (uint64_t i = 0; i < batches.n_sequences; i++) {
            int32_t ids[8], labels[8];
            uint64_t position = epoch * batches.n_sequences + i;
            assert_int_equal(data_batches_read(&batches, position, 1, ids, labels, NULL), LST_OK);
            assert_memory_equal(ids + 1, labels, sizeof ids - sizeof *ids);
            uint64_t spare = split.train.n_tokens - 1 - 8 * batches.n_sequences, at = 0;
            while (at < split.train.n_tokens - 8 &&
                   (seen[at] || memcmp(all + at, ids, sizeof ids) != 0 || all[at + 8] != labels[7]))
                at++;
            assert_true(at <= spare + 8 * (batches.n_sequences - 1));
            seen[at] = true;
        }
    }
    data_split_free(&split);
    data_corpus_close(&corpus);
}

static void batch_is_its_sequences(void **state)
{
    write_documents(*state, 40);
    data_corpus corpus = open_corpus(temp_path(*state, "d"));
    data_documents documents = data_corpus_documents(&corpus);
    data_split split = make_split(&documents, 1, 0.1, 8);
    data_batches batches, same, other;
    assert_int_equal(data_batches_make(&batches, &split.train, 8, 5, true, NULL), LST_OK);
    assert_int_equal(data_batches_make(&same, &split.train, 8, 5, true, NULL), LST_OK);
    assert_int_equal(data_batches_make(&other, &split.train, 8, 6, true, NULL), LST_OK);
    int32_t ids[24], labels[24], one[8], one_labels[8], more[24], more_labels[24];
    assert_int_equal(data_batches_read(&batches, 60, 3, ids, labels, NULL), LST_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(data_batches_read(&same, 60 + i, 1, one, one_labels, NULL), LST_OK);
        assert_memory_equal(one, ids + 8 * i, sizeof one);
        assert_memory_equal(one_labels, labels + 8 * i, sizeof one);
    }
    assert_int_equal(data_batches_read(&other, 60, 3, more, more_labels, NULL), LST_OK);
    assert_memory_not_equal(more, ids, sizeof ids);
    data_split_free(&split);
    data_corpus_close(&corpus);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_folder_make, temp_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_token_is_in_one_stream),          TEST(split_depends_on_the_seed),
        TEST(one_document_is_cut_by_position),       TEST(short_text_names_a_seq_that_works),
        TEST(short_documents_name_a_seq_that_works), TEST(tokens_are_bytes_and_ends),
        cmocka_unit_test(permutation_is_one),        cmocka_unit_test(permutation_mixes),
        TEST(epoch_visits_each_sequence_once),       TEST(batch_is_its_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
