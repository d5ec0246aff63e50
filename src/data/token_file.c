/* SPDX-License-Identifier: MIT */
#include "data/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/scan.h"

#define HEADER_BYTES 1024
#define PIECE 32768

static const struct kind {
    uint32_t magic, version;
    size_t width;
} kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

static uint32_t little(const unsigned char *bytes, size_t width)
{
    uint32_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

static const struct kind *kind_of(const unsigned char *header)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (little(header, 4) == kinds[i].magic)
            return &kinds[i];
    return NULL;
}

/* Reads n bytes; fewer are an error. */
static lst_status read_at(const data_token_file *file, uint64_t offset, void *out, size_t n, lst_error *err)
{
    unsigned char *bytes = out;
    while (n > 0) {
        ssize_t got = pread(file->fd, bytes, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lst__fail_errno(err, errno, "%s: cannot read %zu bytes at %llu", file->path, n,
                                   (unsigned long long)offset);
        if (got == 0)
            return lst__fail(err, LST_ERR_IO, "%s ends at byte %llu; it must not change while it is in use", file->path,
                             (unsigned long long)offset);
        bytes += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return LST_OK;
}

bool data_is_token_file(const char *path)
{
    unsigned char magic[4];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool found = pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic && kind_of(magic) != NULL;
    close(fd);
    return found;
}

static lst_status check_header(data_token_file *file, lst_error *err)
{
    unsigned char header[HEADER_BYTES];
    if (file->n_bytes < HEADER_BYTES)
        return lst__fail(err, LST_ERR_FORMAT, "%s has %llu bytes, and a token file's header alone has %d", file->path,
                         (unsigned long long)file->n_bytes, HEADER_BYTES);
    lst_status status = read_at(file, 0, header, sizeof header, err);
    if (status != LST_OK)
        return status;
    const struct kind *kind = kind_of(header);
    if (!kind)
        return lst__fail(err, LST_ERR_FORMAT, "%s begins with %u: no token file's magic number (20240520, 20240801)",
                         file->path, little(header, 4));
    if (little(header + 4, 4) != kind->version)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s is a token file of version %u; with magic %u it is read in %u",
                         file->path, little(header + 4, 4), kind->magic, kind->version);
    file->width = kind->width;
    file->n_tokens = little(header + 8, 4);
    const uint64_t expected = HEADER_BYTES + file->n_tokens * file->width;
    if (file->n_tokens == 0)
        return lst__fail(err, LST_ERR_FORMAT, "%s holds no tokens", file->path);
    if (file->n_bytes != expected)
        return lst__fail(err, LST_ERR_FORMAT,
                         "%s has %llu bytes, and its header says %llu tokens of %zu bytes: expected %llu bytes",
                         file->path, (unsigned long long)file->n_bytes, (unsigned long long)file->n_tokens, file->width,
                         (unsigned long long)expected);
    file->hash = data__hash(file->hash, header, sizeof header);
    return LST_OK;
}

static lst_status check_tokens(data_token_file *file, size_t vocab, lst_error *err)
{
    unsigned char piece[PIECE];
    for (uint64_t at = HEADER_BYTES; at < file->n_bytes; at += PIECE) {
        const size_t n = file->n_bytes - at < PIECE ? (size_t)(file->n_bytes - at) : PIECE;
        lst_status status = read_at(file, at, piece, n, err);
        if (status != LST_OK)
            return status;
        file->hash = data__hash(file->hash, piece, n);
        for (size_t i = 0; i < n; i += file->width)
            if (little(piece + i, file->width) >= vocab)
                return lst__fail_at(
                    err, LST_ERR_FORMAT, at + i,
                    "%s: token %llu has id %u, and the model's vocabulary has ids 0 to %zu: the file was "
                    "made with another tokenizer",
                    file->path, (unsigned long long)((at + i - HEADER_BYTES) / file->width),
                    little(piece + i, file->width), vocab - 1);
    }
    return LST_OK;
}

lst_status data_token_file_open(data_token_file *out, const char *path, size_t vocab, lst_error *err)
{
    data_token_file file = {.path = lst__strdup(path), .fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct stat st;
    lst_status status = LST_OK;
    if (!file.path)
        status = lst__fail_memory(err, "a path", 0);
    else if (file.fd < 0 || fstat(file.fd, &st) != 0)
        status = lst__fail_errno(err, errno, "cannot open %s", path);
    if (status == LST_OK) {
        file.n_bytes = (uint64_t)st.st_size;
        status = check_header(&file, err);
    }
    if (status == LST_OK)
        status = check_tokens(&file, vocab, err);
    if (status != LST_OK) {
        data_token_file_close(&file);
        return status;
    }
    *out = file;
    return LST_OK;
}

void data_token_file_close(data_token_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    lst__free(file->path);
    *file = (data_token_file){.fd = -1};
}

static uint64_t file_tokens(const void *context, size_t document)
{
    (void)document;
    return ((const data_token_file *)context)->n_tokens;
}

static uint64_t file_rank(const void *context, size_t document)
{
    (void)context;
    return document;
}

/* The narrow tokens are read into the end of their place and widened from the front. */
static lst_status file_read(void *context, size_t document, uint64_t first, size_t n, int32_t *out, lst_error *err)
{
    const data_token_file *file = context;
    unsigned char *bytes = (unsigned char *)out + (sizeof *out - file->width) * n;
    (void)document;
    lst_status status = read_at(file, HEADER_BYTES + first * file->width, bytes, n * file->width, err);
    for (size_t i = 0; status == LST_OK && i < n; i++)
        out[i] = (int32_t)little(bytes + i * file->width, file->width);
    return status;
}

data_documents data_token_file_documents(data_token_file *file)
{
    return (data_documents){.n = 1,
                            .end = -1,
                            .name = file->path,
                            .unit = "",
                            .context = file,
                            .tokens = file_tokens,
                            .rank = file_rank,
                            .read = file_read};
}
