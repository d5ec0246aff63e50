/* SPDX-License-Identifier: MIT
 *
 * Any bytes as JSON, and as a model's config.json. What is accepted must survive being written and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/json.h"
#include "leanstep/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(int ok)
{
    if (!ok)
        abort();
}

static void check_accepted(const json_t *value)
{
    char *text;
    json_t *again;
    require(lst__json_text(value, &text, NULL) == LST_OK);
    require(lst__json_parse(&again, "again", text, strlen(text), NULL) == LST_OK);
    require(json_equal((json_t *)(uintptr_t)value, again));
    json_decref(again);
    lst__free(text);
}

static void check_config(const char *text, size_t n_bytes)
{
    lst_arch arch, again;
    lst_error err = {0};
    if (lst_arch_from_config(text, n_bytes, "fuzzed", &arch, &err) != LST_OK) {
        require(err.message[0] != '\0');
        return;
    }
    lst_arch_tensor tensor;
    size_t n = lst_arch_tensor_count(&arch);
    require(n > 0);
    lst_arch_tensor_at(&arch, n - 1, &tensor);
    char *json;
    require(lst_arch_to_config(&arch, "float32", &json, &err) == LST_OK);
    require(lst_arch_from_config(json, strlen(json), "again", &again, &err) == LST_OK);
    require(lst_arch_params(&arch) == lst_arch_params(&again));
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    json_t *value = NULL;
    lst_error err = {0};
    if (lst__json_parse(&value, "fuzzed", (const char *)data, n_bytes, &err) == LST_OK) {
        check_accepted(value);
        json_decref(value);
    } else {
        require(value == NULL && err.message[0] != '\0');
    }
    check_config((const char *)data, n_bytes);
    return 0;
}
