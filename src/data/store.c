/* SPDX-License-Identifier: MIT */
#include "data/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"

#define PENDING ((size_t)16384)

lst_status data_store_open(data_store *out, const char *folder, lst_error *err)
{
    data_store store = {.fd = -1, .folder = folder, .pending = lst__alloc(PENDING, sizeof(uint32_t))};
    char *path = lst__path_join(folder, ".leanstep-tokens-XXXXXX");
    lst_status status =
        path && store.pending ? LST_OK : lst__fail_memory(err, "the store of tokens", PENDING * sizeof(uint32_t));
    if (status == LST_OK) {
        store.fd = mkostemp(path, O_CLOEXEC);
        if (store.fd < 0 || unlink(path) != 0)
            status = lst__fail_errno(err, errno, "a file for tokens cannot be made in %s", folder);
    }
    lst__free(path);
    if (status != LST_OK) {
        data_store_close(&store);
        return status;
    }
    *out = store;
    return LST_OK;
}

void data_store_close(data_store *store)
{
    if (store->fd >= 0)
        close(store->fd);
    lst__free(store->pending);
    *store = (data_store){.fd = -1};
}

lst_status data_store_flush(data_store *store, lst_error *err)
{
    const char *bytes = (const char *)store->pending;
    size_t left = store->n_pending * sizeof *store->pending;
    while (left > 0) {
        ssize_t done = write(store->fd, bytes, left);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return lst__fail_errno(err, errno, "tokens cannot be written (%llu of them so far, in %s)",
                                   (unsigned long long)store->n, store->folder);
        bytes += done;
        left -= (size_t)done;
    }
    store->n_pending = 0;
    return LST_OK;
}

lst_status data_store_add(data_store *store, const uint32_t *tokens, size_t n, lst_error *err)
{
    while (n > 0) {
        size_t part = PENDING - store->n_pending < n ? PENDING - store->n_pending : n;
        memcpy(store->pending + store->n_pending, tokens, part * sizeof *tokens);
        store->n_pending += part;
        store->n += part;
        tokens += part;
        n -= part;
        lst_status status = store->n_pending == PENDING ? data_store_flush(store, err) : LST_OK;
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

lst_status data_store_read(const data_store *store, uint64_t first, size_t n, uint32_t *out, lst_error *err)
{
    char *bytes = (char *)out;
    size_t left = n * sizeof *out;
    off_t at = (off_t)(first * sizeof *out);
    while (left > 0) {
        ssize_t got = pread(store->fd, bytes, left, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lst__fail_errno(err, errno, "tokens %llu to %llu cannot be read from %s", (unsigned long long)first,
                                   (unsigned long long)(first + n), store->folder);
        if (got == 0)
            return lst__fail(err, LST_ERR_IO, "the store of tokens in %s ends early: at byte %llu", store->folder,
                             (unsigned long long)at);
        bytes += got;
        at += got;
        left -= (size_t)got;
    }
    return LST_OK;
}
