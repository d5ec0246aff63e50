/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a JSON line, and what is accepted as an example of bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int ok)
{
    if (!ok)
        abort();
}

static void encode(const data_record *record)
{
    data_encoder bytes;
    data_ids ids = {0}, mask = {0};
    lst_error err = {0};
    require(data_encoder_open(&bytes, NULL, 257, NULL, &err) == LST_OK);
    if (data_example_encode(&bytes, record, false, "fuzzed:1", &ids, &mask, &err) == LST_OK) {
        size_t counted = 0;
        require(ids.n == mask.n);
        for (size_t i = 0; i < ids.n; i++) {
            require(ids.ids[i] >= 0 && ids.ids[i] < 257);
            counted += i > 0 && mask.ids[i] != 0;
        }
        require(counted > 0);
    } else {
        require(err.message[0] != '\0');
    }
    lst__free(ids.ids);
    lst__free(mask.ids);
    data_encoder_close(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    data_record record;
    lst_error err = {0};
    if (data_record_parse(&record, "fuzzed:1", (const char *)data, n_bytes, &err) != LST_OK) {
        require(err.message[0] != '\0');
        return 0;
    }
    require(record.form < DATA_N_FORMS);
    for (size_t i = 0; i < record.n_messages; i++)
        require(record.messages[i].role && record.messages[i].content);
    encode(&record);
    data_record_free(&record);
    return 0;
}
