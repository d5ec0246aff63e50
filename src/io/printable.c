/* SPDX-License-Identifier: MIT */
#include "io/printable.h"

#include <stdbool.h>
#include <string.h>

const char *lst__printable(const char *name, char *out, size_t n_bytes)
{
    size_t n = strlen(name);
    bool cut = n > n_bytes - 1;
    if (cut) {
        n = n_bytes - 4;
        /* Not in the middle of a character: bytes 10xxxxxx continue one. */
        while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
            n--;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
    memcpy(out + n, cut ? "..." : "", cut ? 4 : 1);
    return out;
}
