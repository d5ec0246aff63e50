/* SPDX-License-Identifier: MIT
 *
 * The byte-level vocabulary: token n is byte n, and one more token ends a document. Any file is text in it, nothing
 * is unknown, and a model's output is bytes again.
 */
#ifndef LST_DATA_BYTES_H
#define LST_DATA_BYTES_H

#define DATA_BYTES_VOCAB 257
#define DATA_BYTES_END 256 /* stands after the last byte of each document */

#endif
