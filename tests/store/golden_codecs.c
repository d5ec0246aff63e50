/* SPDX-License-Identifier: MIT
 *
 * Codecs against the golden values of a folder (tests/golden/codecs and others of its make):
 *
 *     golden_codecs FOLDER
 *
 * Files are discovered; their kind is told by the beginning of their name. README-optim.md, section 2, describes them.
 */
#include <dirent.h>

#include "store/kinds.h"

static const struct {
    const char *prefix;
    kind_fn *check;
} kinds[] = {
    {"bnb_adamw8bit", kind_bnb_adamw8bit}, {"dynamic_", kind_dynamic},        {"flashoptim", kind_flashoptim},
    {"float_formats", kind_float_formats}, {"gguf_blocks", kind_gguf_blocks}, {"tables", kind_tables},
    {"torchao_4bit", kind_torchao_4bit},
};

static void check_file(const char *folder, const char *file)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strncmp(file, kinds[k].prefix, strlen(kinds[k].prefix)) != 0)
            continue;
        golden_file g = golden_open(folder, file);
        if (!g.header)
            golden_die("no safetensors file for", file);
        kinds[k].check(&g, folder, file);
        golden_close(&g);
        return;
    }
    kind_skip(file, "*", "this kind of file is not implemented");
}

static int is_json(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: golden_codecs FOLDER\n");
        return 2;
    }
    struct dirent **entries;
    int n = scandir(argv[1], &entries, is_json, alphasort);
    if (n < 0)
        golden_die("cannot read the folder", argv[1]);
    for (int i = 0; i < n; i++) {
        char file[256];
        snprintf(file, sizeof file, "%.*s", (int)strlen(entries[i]->d_name) - 5, entries[i]->d_name);
        check_file(argv[1], file);
        free(entries[i]);
    }
    free(entries);
    return kind_summary(argv[1]);
}
