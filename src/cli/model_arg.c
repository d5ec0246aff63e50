/* SPDX-License-Identifier: MIT */
#include "cli/model_arg.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "cli/args.h"
#include "plan/gguf_arch.h"

/* A config.json is a few KB; one of 4 MiB is something else. */
#define MAX_CONFIG_BYTES ((size_t)4 << 20)

typedef struct builtin {
    const char *name, *what, *config;
} builtin;

/* Sizes as in the models' published config.json; what the family assumes is left out. */
static const builtin builtins[] = {
    {"demo", "byte-level, Llama style, 0.8 M parameters: trains in a minute on two cores",
     "{\"model_type\": \"llama\", \"vocab_size\": 257, \"hidden_size\": 128, \"intermediate_size\": 352, "
     "\"num_hidden_layers\": 4,"
     " \"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"max_position_embeddings\": 2048, \"rms_norm_eps\": "
     "1e-5,"
     " \"tie_word_embeddings\": true}"},
    {"gpt2", "GPT-2, 124 M parameters", "{\"model_type\": \"gpt2\"}"},
    {"smollm2-135m", "SmolLM2, 135 M parameters",
     "{\"model_type\": \"llama\", \"vocab_size\": 49152, \"hidden_size\": 576, \"intermediate_size\": 1536, "
     "\"num_hidden_layers\": 30,"
     " \"num_attention_heads\": 9, \"num_key_value_heads\": 3, \"max_position_embeddings\": 8192, \"rms_norm_eps\": "
     "1e-5,"
     " \"rope_theta\": 100000, \"initializer_range\": 0.041666666666666664, \"tie_word_embeddings\": true}"},
    {"qwen2.5-0.5b", "Qwen2.5, 494 M parameters",
     "{\"model_type\": \"qwen2\", \"vocab_size\": 151936, \"hidden_size\": 896, \"intermediate_size\": 4864, "
     "\"num_hidden_layers\": 24,"
     " \"num_attention_heads\": 14, \"num_key_value_heads\": 2, \"max_position_embeddings\": 32768, \"rope_theta\": "
     "1000000,"
     " \"tie_word_embeddings\": true}"},
    {"qwen2.5-1.5b", "Qwen2.5, 1.54 B parameters",
     "{\"model_type\": \"qwen2\", \"vocab_size\": 151936, \"hidden_size\": 1536, \"intermediate_size\": 8960, "
     "\"num_hidden_layers\": 28,"
     " \"num_attention_heads\": 12, \"num_key_value_heads\": 2, \"max_position_embeddings\": 131072, \"rope_theta\": "
     "1000000,"
     " \"tie_word_embeddings\": true}"},
    {"llama-3.2-1b", "Llama 3.2, 1.24 B parameters",
     "{\"model_type\": \"llama\", \"vocab_size\": 128256, \"hidden_size\": 2048, \"intermediate_size\": 8192, "
     "\"num_hidden_layers\": 16,"
     " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 64, \"max_position_embeddings\": 131072,"
     " \"rms_norm_eps\": 1e-5, \"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 32,"
     " \"low_freq_factor\": 1, \"high_freq_factor\": 4, \"original_max_position_embeddings\": 8192}, "
     "\"tie_word_embeddings\": true}"},
};

enum { N_BUILTINS = sizeof builtins / sizeof builtins[0] };

void cli_model_list(FILE *out)
{
    for (size_t i = 0; i < N_BUILTINS; i++)
        fprintf(out, "  %-14s %s\n", builtins[i].name, builtins[i].what);
}

static lst_status read_config(const char *path, lst_arch *out, lst_error *err)
{
    char *text;
    size_t n_bytes;
    lst_status status = lst__file_read(path, MAX_CONFIG_BYTES, &text, &n_bytes, err);
    if (status != LST_OK)
        return status;
    status = lst_arch_from_config(text, n_bytes, path, out, err);
    lst__free(text);
    return status;
}

static lst_status fail_unknown(const char *model, lst_error *err)
{
    const char *names[N_BUILTINS];
    char list[200] = "";
    for (size_t i = 0; i < N_BUILTINS; i++) {
        names[i] = builtins[i].name;
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = cli_nearest(model, names, N_BUILTINS);
    if (near)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "\"%s\" is neither a file, nor a folder, nor a built-in model; did you mean %s?", model, near);
    return lst__fail(err, LST_ERR_ARGUMENT,
                     "\"%s\" is neither a file, nor a folder, nor a built-in model; these are %s", model, list);
}

lst_status cli_model_arch(const char *model, lst_arch *out, lst_error *err)
{
    if (lst__is_dir(model)) {
        char *path = lst__path_join(model, "config.json");
        if (!path)
            return lst__fail_memory(err, "a path", strlen(model) + 16);
        lst_status status = read_config(path, out, err);
        lst__free(path);
        return status;
    }
    if (lst__is_gguf(model))
        return lst__arch_open_gguf(model, out, err);
    if (lst__is_file(model))
        return read_config(model, out, err);
    for (size_t i = 0; i < N_BUILTINS; i++)
        if (!strcmp(model, builtins[i].name))
            return lst_arch_from_config(builtins[i].config, strlen(builtins[i].config), builtins[i].name, out, err);
    return fail_unknown(model, err);
}
