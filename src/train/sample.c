/* SPDX-License-Identifier: MIT */
#include "train/sample.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/bytes.h"

typedef struct writing {
    void (*on_byte)(void *user, char byte);
    void *user;
} writing;

/* Tokens that are no byte (of a larger vocabulary), and control characters that would upset a terminal, become '?'. */
static char shown(int32_t id)
{
    bool control = (id < 32 && id != '\n' && id != '\t') || id == 127;
    return id >= DATA_BYTES_END || control ? '?' : (char)(unsigned char)id;
}

static lst_status on_token(void *user, int32_t id, lst_error *err)
{
    const writing *w = user;
    (void)err;
    w->on_byte(w->user, shown(id));
    return LST_OK;
}

lst_status train_sample(model *m, const char *prompt, const model_sampling *sampling,
                        void (*on_byte)(void *user, char byte), void *user, lst_error *err)
{
    size_t n = strlen(prompt);
    int32_t *ids = lst__alloc(n + 1, sizeof *ids);
    if (!ids)
        return lst__fail_memory(err, "the prompt", (n + 1) * sizeof *ids);
    /* The end of one document is what stands before the next: the prompt begins a document. */
    ids[0] = DATA_BYTES_END;
    for (size_t i = 0; i < n; i++)
        ids[i + 1] = (unsigned char)prompt[i];
    model_sampling ending = *sampling;
    ending.stop = DATA_BYTES_END;
    writing w = {on_byte, user};
    lst_status status = model_generate(m, ids, n + 1, &ending, on_token, &w, err);
    lst__free(ids);
    return status;
}
