/* SPDX-License-Identifier: MIT
 *
 * A corpus of text turned into the ids of a model's tokenizer.
 *
 * The ids go to a file without a name in $TMPDIR (/var/tmp where that is not set), 4 bytes each, and batches are read
 * from there as bytes are from the text: memory does not grow with the data. Documents are read a mebibyte at a time
 * and cut where no token can cross: behind a newline between two ASCII characters that are no space. A mebibyte without
 * such a place is cut between two characters.
 */
#ifndef LST_DATA_TOKENIZE_H
#define LST_DATA_TOKENIZE_H

#include "data/corpus.h"
#include "data/tokenizer.h"

/* Every document becomes what the tokenizer makes of it (the template's first token included, where it has one);
 * `end_token` stands behind each. corpus->hash becomes one of text, ids and end together. Once for a corpus. */
LST_MUST_USE lst_status data_corpus_tokenize(data_corpus *corpus, data_tokenizer *tokenizer, int32_t end_token,
                                             lst_error *err);

#endif
