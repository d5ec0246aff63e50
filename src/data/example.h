/* SPDX-License-Identifier: MIT
 *
 * An example: the ids of a record, and which of them are to be learned.
 */
#ifndef LST_DATA_EXAMPLE_H
#define LST_DATA_EXAMPLE_H

#include "data/encoder.h"
#include "data/jsonl.h"

/* Fills ids and mask (1: counts), both emptied first.
 *
 *     text         the text and the end; all of it counts
 *     completion   prompt, completion and end; completion and end count
 *     messages     the template's text; what the assistant says counts, with the end of its turn
 *     alpaca       with a template: instruction and input are the user's, output is the assistant's; without one the
 *                  prompt that Stanford's Alpaca was trained with, and the output as its completion
 *
 * With loss_all everything counts. Refused (naming `where`): messages without a template, a template whose tokens the
 * tokenizer does not have, an example of which nothing counts. */
LST_MUST_USE lst_status data_example_encode(data_encoder *encoder, const data_record *record, bool loss_all,
                                            const char *where, data_ids *ids, data_ids *mask, lst_error *err);

#endif
