/* SPDX-License-Identifier: MIT
 *
 * Bytes as people read them: the exact integer, GiB and GB side by side, since the two differ by 7.4 %.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <stddef.h>
#include <stdint.h>

/* "14,000,000,000" into out (n >= 27 holds any number); returns out. */
char *cli_print_integer(char *out, size_t n, uint64_t value);
/* "14,000,000,000 bytes (13.04 GiB, 14.00 GB)" into out (n >= 80); MiB and MB below 1 GiB. Returns out. */
char *cli_print_bytes(char *out, size_t n, uint64_t bytes);
/* "13.04 GiB", with the unit that suits: B, KiB, MiB, GiB, TiB; n >= 24. Returns out. */
char *cli_print_binary(char *out, size_t n, uint64_t bytes);
/* "14.00 GB": the same in powers of 1,000. */
char *cli_print_decimal(char *out, size_t n, uint64_t bytes);

#endif
