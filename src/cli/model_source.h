/* SPDX-License-Identifier: MIT
 *
 * RUN, CHECKPOINT, DIR or a GGUF file: where a model's weights and its tokenizer lie.
 */
#ifndef CLI_MODEL_SOURCE_H
#define CLI_MODEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "leanstep/arch.h"
#include "leanstep/optim.h"
#include "leanstep/status.h"
#include "train/settings.h"

typedef struct cli_model_source {
    char *weights; /* lst_ckpt_free */
    lst_arch arch;
    lst_weight_form form;
    size_t positions;          /* it was trained on, or a usual number */
    char *tokenizer;           /* the folder with tokenizer.json (lst__free); NULL: byte-level */
    bool is_run, reads_bytes;  /* reads_bytes: a run that was trained so */
    char chat[TRAIN_MAX_CHAT]; /* of a run; "": none */
    bool pack, loss_all;       /* of a run */
} cli_model_source;

LST_MUST_USE lst_status cli_model_source_find(const char *folder, cli_model_source *out, lst_error *err);
void cli_model_source_free(cli_model_source *source);
/* Whether `leanstep train` has made this folder. */
bool cli_is_run(const char *folder);

#endif
