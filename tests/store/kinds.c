/* SPDX-License-Identifier: MIT */
#include "store/kinds.h"

static size_t n_passed, n_failed, n_skipped;

void kind_verdict(bool passed, const char *file, const char *name, const char *text)
{
    printf("%s %s/%s: %s\n", passed ? "ok  " : "FAIL", file, name, text);
    if (passed)
        n_passed++;
    else
        n_failed++;
}

void kind_skip(const char *file, const char *name, const char *why)
{
    printf("skip %s/%s: %s\n", file, name, why);
    n_skipped++;
}

static size_t dtype_bytes(const char *dtype)
{
    const char *digits = strpbrk(dtype, "0123456789");
    return digits ? (size_t)atoi(digits) / 8 : 0;
}

void *kind_array(const golden_file *g, const char *name, const char *dtype, size_t *n_elems)
{
    golden_array a;
    if (!golden_find(g, name, &a))
        golden_die("no array", name);
    if (strcmp(a.dtype, dtype) != 0)
        golden_die("array of another type", name);
    size_t bytes = a.n_elems * dtype_bytes(dtype);
    void *copy = malloc(bytes + 1);
    if (!copy)
        golden_die("no memory for", name);
    memcpy(copy, a.data, bytes);
    *n_elems = a.n_elems;
    return copy;
}

int kind_summary(const char *folder)
{
    if (n_passed + n_failed == 0) {
        printf("no case was found in %s\n", folder);
        n_failed++;
    }
    printf("%zu passed, %zu failed", n_passed, n_failed);
    if (n_skipped > 0)
        printf(", %zu skipped", n_skipped);
    printf("\n");
    return n_failed > 0;
}
