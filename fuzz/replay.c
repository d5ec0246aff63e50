/* SPDX-License-Identifier: MIT
 *
 * Runs files, and the files in folders, through a fuzz target, without a fuzzing engine: what plain CI does with a
 * corpus.
 *
 *     fuzz_json fuzz/corpus/json some_crash.bin
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static size_t n_run;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "cannot open %s\n", path);
        return 1;
    }
    uint8_t *data = NULL;
    size_t n_bytes = 0, n_read, room = 0;
    do {
        if (room < n_bytes + 65536)
            data = realloc(data, room = 2 * room + 65536);
        n_read = data == NULL ? 0 : fread(data + n_bytes, 1, room - n_bytes, file);
        n_bytes += n_read;
    } while (n_read > 0);
    fclose(file);
    /* Exactly as long as the input, so that a sanitizer sees one byte too far. */
    uint8_t *exact = malloc(n_bytes == 0 ? 1 : n_bytes);
    if (data == NULL || exact == NULL)
        abort();
    memcpy(exact, data, n_bytes);
    free(data);
    LLVMFuzzerTestOneInput(exact, n_bytes);
    free(exact);
    n_run++;
    return 0;
}

static int replay(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return replay_file(path);
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    int failed = n < 0;
    for (int i = 0; i < n; i++) {
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= replay_file(below);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    printf("%zu inputs\n", n_run);
    return failed || n_run == 0;
}
