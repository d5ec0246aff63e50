/* SPDX-License-Identifier: MIT
 *
 * llm.c's token files: read as they are written, refused where size, version or ids are not what they must be. And
 * packing.
 */
#include "data/temp_folder.h"

#include "data/dataset.h"

#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_folder_make, temp_folder_remove)

static void write_tokens(const char *path, const int32_t head[3], size_t width, size_t n, size_t extra)
{
    FILE *file = fopen(path, "wb");
    int32_t header[256] = {head[0], head[1], head[2]};
    assert_non_null(file);
    fwrite(header, 1, sizeof header, file);
    for (size_t i = 0; i < n; i++) {
        const unsigned char bytes[4] = {(unsigned char)(i % 200), (unsigned char)(i % 2), 0, 0};
        fwrite(bytes, 1, width, file);
    }
    for (size_t i = 0; i < extra; i++)
        fputc(0, file);
    assert_int_equal(fclose(file), 0);
}

static lst_status open_set(data_set *set, const char *path, size_t vocab, lst_error *err)
{
    data_encoder encoder;
    assert_int_equal(data_encoder_open(&encoder, NULL, vocab, NULL, NULL), LST_OK);
    const data_request request = {.path = path, .seq = 10, .seed = 1, .valid_fraction = 0.1, .store = "."};
    lst_status status = data_set_open(set, &request, &encoder, err);
    data_encoder_close(&encoder);
    return status;
}

static void both_widths_are_read(void **state)
{
    static const int32_t heads[2][3] = {{20240520, 1, 500}, {20240801, 7, 500}};
    char path[500];
    strcpy(path, temp_path(*state, "a.bin"));
    for (int kind = 0; kind < 2; kind++) {
        data_set set;
        lst_error err = {0};
        write_tokens(path, heads[kind], kind ? 4 : 2, 500, 0);
        if (open_set(&set, path, 600, &err) != LST_OK)
            fail_msg("%s", err.message);
        assert_int_equal(set.kind, DATA_KIND_TOKENS);
        assert_int_equal(set.split.train.n_tokens + set.split.valid.n_tokens, 500);
        int32_t ids[450];
        assert_int_equal(data_stream_read(&set.split.train, 0, 450, ids, NULL), LST_OK);
        for (int i = 0; i < 450; i++)
            assert_int_equal(ids[i], i % 200 + 256 * (i % 2));
        data_set_close(&set);
    }
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        int32_t head[3];
        size_t n, extra, vocab;
        const char *says;
    } cases[] = {{{20240520, 1, 500}, 499, 0, 600, "expected 2024 bytes"},
                 {{20240520, 1, 500}, 500, 1, 600, "expected 2024 bytes"},
                 {{20240520, 2, 500}, 500, 0, 600, "version 2"},
                 {{20240520, 1, 0}, 0, 0, 600, "no tokens"},
                 {{20240520, 1, -1}, 500, 0, 600, "4294967295 tokens"},
                 {{20240520, 1, 500}, 500, 0, 300, "token 45 has id 301"},
                 {{20240520, 1, 12}, 12, 0, 600, "too short for --seq 10"}};
    char path[500];
    strcpy(path, temp_path(*state, "a.bin"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        data_set set;
        lst_error err = {0};
        write_tokens(path, cases[i].head, 2, cases[i].n, cases[i].extra);
        assert_int_not_equal(open_set(&set, path, cases[i].vocab, &err), LST_OK);
        if (!strstr(err.message, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.message, cases[i].says);
    }
    temp_write(*state, "a.bin", "\x88\xd8\x34\x01 too short");
    data_set set;
    lst_error err = {0};
    assert_int_not_equal(open_set(&set, path, 600, &err), LST_OK);
    assert_non_null(strstr(err.message, "header alone"));
}

static void packing_fills_rows_and_cuts_nothing(void **state)
{
    (void)state;
    uint32_t lengths[1000];
    uint64_t draw = 3, total = 0;
    for (int i = 0; i < 1000; i++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        lengths[i] = 1 + (uint32_t)(draw >> 33) % 129;
        total += lengths[i];
    }
    data_packed packed;
    assert_int_equal(data_pack(&packed, lengths, 1000, 129, NULL), LST_OK);
    bool seen[1000] = {false};
    for (size_t row = 0; row < packed.n_rows; row++) {
        size_t n = 0;
        for (size_t i = packed.first[row]; i < packed.first[row + 1]; i++) {
            assert_false(seen[packed.order[i]]);
            seen[packed.order[i]] = true;
            n += lengths[packed.order[i]];
        }
        assert_true(n > 0 && n <= 129);
    }
    assert_int_equal(packed.first[0], 0);
    assert_int_equal(packed.first[packed.n_rows], 1000);
    assert_true((double)total / (double)(packed.n_rows * 129) > 0.97);
    data_packed_free(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_widths_are_read),
        TEST(what_is_wrong_is_said),
        TEST(packing_fills_rows_and_cuts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
