/* SPDX-License-Identifier: MIT
 *
 * Settings: everything a run was asked to do, with every default resolved. settings.json in the run's folder holds it,
 * and is enough to go on from a checkpoint.
 */
#ifndef LST_TRAIN_SETTINGS_H
#define LST_TRAIN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leanstep/arch.h"
#include "leanstep/optim.h"
#include "leanstep/recipe.h"
#include "leanstep/status.h"

#define TRAIN_MAX_PATH 4096
#define TRAIN_MAX_PROMPT 1024
#define TRAIN_MAX_CHAT 32

typedef struct train_settings {
    char model[TRAIN_MAX_PATH]; /* as given: a built-in name, a config.json, a folder */
    bool from_weights;          /* the folder's weights are the start; otherwise random ones */
    lst_arch arch;
    lst_recipe recipe;
    lst_schedule schedule; /* total_steps is the length of the run; 0: as `epochs` says, once the data are known.
                            * warmup_steps -1: a tenth of the run, at most 100 */
    double epochs;         /* passes over the training text, where that decides the length */
    uint64_t seed;         /* of initial weights, split, order and rounding */

    char data[TRAIN_MAX_PATH]; /* absolute */
    double valid_fraction;     /* of the tokens, by document; of examples, by line */
    uint64_t data_hash;        /* set when the data have been read */

    char tokenizer[TRAIN_MAX_PATH]; /* the folder it came from, absolute; "": text is bytes */
    char chat[TRAIN_MAX_CHAT];      /* the template's name; "": none, or until the run starts what is recognised */
    bool pack;                      /* several examples a row */
    bool loss_all;                  /* prompts count as well as completions */

    size_t eval_every;     /* steps between validations; 0: only at the start and the end */
    size_t eval_sequences; /* at most so many, the same every time */
    size_t save_every;     /* steps between checkpoints; 0: only at the end */
    size_t keep;           /* how many checkpoints stay */
    uint64_t memory_limit; /* bytes; 0: what the machine has available */

    char prompt[TRAIN_MAX_PROMPT]; /* of the sample at the end */
    size_t sample_tokens;          /* 0: no sample */
    double temperature;
    size_t top_k;
} train_settings;

void train_settings_default(train_settings *out);
/* Whether the recipe's rule decides the rate of each step itself, so that no schedule may. */
bool train_keeps_own_rate(const lst_recipe *recipe);
/* Refuses what cannot be trained as asked, option by option. */
LST_MUST_USE lst_status train_settings_check(const train_settings *settings, lst_error *err);

/* settings.json's text (caller frees with free()), and back. `source` names the file in messages. */
LST_MUST_USE lst_status train_settings_write(const train_settings *settings, char **json, lst_error *err);
LST_MUST_USE lst_status train_settings_read(train_settings *out, const char *json, size_t n_bytes, const char *source,
                                            lst_error *err);

#endif
