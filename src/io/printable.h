/* SPDX-License-Identifier: MIT */
#ifndef LST_IO_PRINTABLE_H
#define LST_IO_PRINTABLE_H

#include <stddef.h>

/* A name from a file as it may stand in a message: control characters become '?', and more than fits ends in "...".
 * Returns out. n_bytes of room, at least 8. */
const char *lst__printable(const char *name, char *out, size_t n_bytes);

#endif
