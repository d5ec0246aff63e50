/* SPDX-License-Identifier: MIT */
#include "data/tokenize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "data/scan.h"

#define PIECE ((size_t)1 << 20)

static lst_status open_tokens(FILE **out, lst_error *err)
{
    const char *dir = getenv("TMPDIR");
    char *path = lst__path_join(dir && dir[0] ? dir : "/var/tmp", "leanstep-tokens-XXXXXX");
    if (!path)
        return lst__fail_memory(err, "the name of the file of tokens", 64);
    lst_status status = LST_OK;
    int fd = mkstemp(path);
    if (fd >= 0)
        (void)unlink(path);
    *out = fd >= 0 ? fdopen(fd, "w+b") : NULL;
    if (!*out) {
        status = lst__fail(err, LST_ERR_IO,
                           "%s: cannot make a temporary file for the tokens: %s. TMPDIR names another folder for it.",
                           path, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    lst__free(path);
    return status;
}

static bool solid(char c)
{
    return c > ' ' && c < 127;
}

/* How many of n bytes to encode now, where more of the document follow. */
static size_t cut(const char *text, size_t n)
{
    for (size_t at = n - 1; at >= 2; at--)
        if (solid(text[at]) && text[at - 1] == '\n' && solid(text[at - 2]))
            return at;
    size_t at = n - 1;
    while (at > n - 4 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static lst_status put_ids(data_corpus *corpus, data_file *file, const data_ids *ids, uint64_t *hash, lst_error *err)
{
    if (fwrite(ids->ids, sizeof *ids->ids, ids->n, corpus->tokens) != ids->n)
        return lst__fail(err, LST_ERR_IO,
                         "cannot write the tokens of %s to a temporary file: %s. TMPDIR names another folder for it.",
                         file->key, strerror(errno));
    *hash = data__hash(*hash, ids->ids, ids->n * sizeof *ids->ids);
    file->n_tokens += ids->n;
    return LST_OK;
}

static lst_status tokenize_file(data_corpus *corpus, size_t which, data_tokenizer *tokenizer, char *text,
                                uint64_t *hash, lst_error *err)
{
    data_file *file = &corpus->files[which];
    data_ids ids = {0};
    lst_status status = LST_OK;
    file->first_token = corpus->n_tokens;
    file->n_tokens = 0;
    for (uint64_t at = 0; status == LST_OK && at < file->n_bytes;) {
        uint64_t left = file->n_bytes - at;
        size_t n = left < PIECE ? (size_t)left : PIECE;
        status = data_corpus_read(corpus, which, at, text, n, err);
        if (status != LST_OK)
            break;
        n = n < left ? cut(text, n) : n;
        ids.n = 0;
        status = data_tokenizer_encode(tokenizer, text, n, at == 0, &ids, err);
        if (status == LST_OK)
            status = put_ids(corpus, file, &ids, hash, err);
        at += n;
    }
    lst__free(ids.ids);
    corpus->n_tokens += file->n_tokens;
    return status;
}

lst_status data_corpus_tokenize(data_corpus *corpus, data_tokenizer *tokenizer, int32_t end_token, lst_error *err)
{
    char *text = lst__alloc(PIECE, 1);
    if (!text)
        return lst__fail_memory(err, "a piece of text", PIECE);
    uint64_t hash = data__hash(corpus->hash, &end_token, sizeof end_token);
    lst_status status = open_tokens(&corpus->tokens, err);
    corpus->n_tokens = 0;
    corpus->end_token = end_token;
    for (size_t i = 0; status == LST_OK && i < corpus->n_files; i++)
        status = tokenize_file(corpus, i, tokenizer, text, &hash, err);
    if (status == LST_OK && fflush(corpus->tokens) != 0)
        status = lst__fail(err, LST_ERR_IO, "cannot write the tokens to a temporary file: %s", strerror(errno));
    corpus->hash = hash;
    lst__free(text);
    return status;
}
