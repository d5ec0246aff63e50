/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a tokenizer.json. What is accepted must encode any text to ids that it knows, and decode them; the same
 * bytes are the text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int ok)
{
    if (!ok)
        abort();
}

/* A vocabulary need not have a token for every byte: then encoding fails, and says so. */
static void check_text(data_tokenizer *t, const char *text, size_t n)
{
    data_ids ids = {0};
    data_text back = {0};
    lst_error err = {0};
    if (data_tokenizer_encode(t, text, n, true, &ids, &err) == LST_OK) {
        for (size_t i = 0; i < ids.n; i++)
            require(ids.ids[i] >= 0 && (size_t)ids.ids[i] < data_tokenizer_vocab(t));
        require(data_tokenizer_decode(t, ids.ids, ids.n, false, &back, &err) == LST_OK);
    } else {
        require(err.message[0] != '\0');
    }
    lst__free(ids.ids);
    lst__free(back.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const char text[] = "It's 12345 o'clock,\r\n  na\xc3\xafve <|endoftext|>\n\n\xff\xe6\xbc\xa2 end ";
    data_tokenizer *t = NULL;
    lst_error err = {0};
    if (data_tokenizer_parse(&t, "fuzzed", (const char *)data, n_bytes, &err) != LST_OK) {
        require(err.message[0] != '\0');
        return 0;
    }
    check_text(t, text, sizeof text - 1);
    check_text(t, (const char *)data, n_bytes < 512 ? n_bytes : 512);
    data_tokenizer_free(t);
    return 0;
}
