/* SPDX-License-Identifier: MIT
 *
 * GGUF files that are whole as files and wrong as models: each is refused by name.
 */
#include "data/temp_folder.h"

#include "base/alloc.h"
#include "base/files.h"
#include "ckpt/gguf_weights.h"
#include "plan/gguf_arch.h"
#include "train/gguf_file.h"

#define MODEL LEANSTEP_SOURCE_DIR "/tests/golden/gguf/llama.f32.gguf"

/* The golden file with one text replaced by another of the same length, at its `nth` place (from 0). */
static void write_changed(const char *path, const char *old, const char *new, int nth)
{
    lst_error err;
    char *bytes;
    size_t n;
    assert_int_equal(lst__file_read(MODEL, (size_t)1 << 24, &bytes, &n, &err), LST_OK);
    char *at = bytes - 1;
    do {
        at = memmem(at + 1, n - (size_t)(at + 1 - bytes), old, strlen(old));
        assert_non_null(at);
    } while (nth-- > 0);
    memcpy(at, new, strlen(new));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
    lst__free(bytes);
}

typedef struct change {
    const char *old, *new;
    int nth;
    lst_status status;
    const char *said;
} change;

static lst_status check_model(const char *path, lst_error *err)
{
    lst_gguf g;
    lst_arch arch;
    lst_status status = lst__gguf_open(path, &g, err);
    if (status != LST_OK)
        return status;
    status = lst__arch_from_gguf(&g, &arch, err);
    if (status == LST_OK)
        status = lst__gguf_check_weights(&g, &arch, err);
    lst__gguf_close(&g);
    return status;
}

static void refuses_models_by_name(void **state)
{
    static const change changes[] = {
        {"ffn_up", "ffn_uq", 0, LST_ERR_STATE, "blk.0.ffn_up.weight"},
        {"blk.1.ffn_norm", "blk.9.ffn_norm", 0, LST_ERR_STATE, "blk.1.ffn_norm.weight"},
        {"output.weight", "outpux.weight", 2, LST_ERR_STATE, "outpux.weight"},
        {"llama", "mamba", 0, LST_ERR_UNSUPPORTED, "mamba"},
        {"llama.rope.freq_base", "llama.rope.freq_bass", 0, LST_OK, ""}, /* 10000 is what the family assumes */
        {"llama.block_count", "llama.block_bount", 0, LST_ERR_FORMAT, "llama.block_count"},
    };
    const char *path = temp_path(*state, "model.gguf");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        lst_error err = {0};
        write_changed(path, changes[i].old, changes[i].new, changes[i].nth);
        assert_int_equal(check_model(path, &err), changes[i].status);
        assert_non_null(strstr(err.message, changes[i].said));
    }
}

static void refuses_tokenizers_by_name(void **state)
{
    static const change changes[] = {
        {"llama-bpe", "deepseek!", 0, LST_ERR_UNSUPPORTED, "deepseek!"},
        {"tokenizer.ggml.merges", "tokenizer.ggml.nerges", 0, LST_ERR_FORMAT, "tokenizer.ggml.merges"},
    };
    const char *path = temp_path(*state, "model.gguf");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        lst_error err = {0};
        data_tokenizer *t = NULL;
        write_changed(path, changes[i].old, changes[i].new, changes[i].nth);
        assert_int_equal(train_gguf_tokenizer(&t, path, &err), changes[i].status);
        assert_non_null(strstr(err.message, changes[i].said));
        assert_null(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refuses_models_by_name, temp_folder_make, temp_folder_remove),
        cmocka_unit_test_setup_teardown(refuses_tokenizers_by_name, temp_folder_make, temp_folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
