/* SPDX-License-Identifier: MIT
 *
 * Inside a model: the plan's buffers by name, and what the files of this room share.
 */
#ifndef MODEL_PARTS_H
#define MODEL_PARTS_H

#include "model/block.h"
#include "model/embed.h"
#include "model/loss.h"
#include "model/model.h"

struct model {
    const lst_plan *plan;
    const lst_arch *arch;
    const lst_recipe *recipe;
    unsigned char *arena;
    lst_ledger *ledger;
    model_work work;
    lst_codec codec;      /* of the weights */
    lst__purpose purpose; /* of the plan */
    bool poison;
    size_t rows;      /* of a micro-batch: batch * seq */
    size_t positions; /* of the generation cache */

    size_t n_tensors;
    lst_arch_tensor *tensor;
    size_t *index; /* [(layers + 2) * LST_N_ROLES]: tensor of (layer + 1, role), or SIZE_MAX */
    void **weight; /* [n_tensors] */
    float **sum;   /* [n_tensors]: float32 sums of a step's gradients; NULL without training */
    void **kept;   /* [n_tensors]: kept gradients (the sums themselves if float32); NULL under LST_GRAD_RELEASE */
    float **act;   /* [(layers + 1) * LST__N_ACTS], each all micro-batches; NULL where not kept */
    float *scratch[LST__N_SCRATCH];
    int32_t *ids, *targets; /* [accumulation, rows] */

    bool *claimed, *held; /* by buffer of the plan */
};

/* Tensor of (role, layer), SIZE_MAX if there is none. Layers: -1 embeddings, layers(): final norm and head. */
size_t model_tensor_of(const model *m, lst_role role, int layer);
/* Its weights, or NULL. */
const void *model_weight_of(const model *m, lst_role role, int layer);

model_block model_block_of(const model *m, size_t layer);
model_embedding model_embedding_of(const model *m);
/* The head's own tensor, or the embedding if tied. */
size_t model_head_tensor(const model *m);
model_norm model_final_norm(const model *m);
model_linear model_head(const model *m);

/* Pointers of one layer and micro-batch; what is not kept points to the shared buffer of that direction. */
void model_acts(const model *m, size_t layer, size_t micro, bool backward, float *act[LST__N_ACTS]);
float *model_input(const model *m, size_t layer, size_t micro);

/* Forward of micro-batches [0, n_micro), up to the input of the final norm, entering the phases as it goes. */
void model_forward(model *m, size_t n_micro);
model_loss model_loss_of(model *m);
/* LST_ERR_ARGUMENT if an id or target of the first n_micro micro-batches is out of range; *counted = counted
 * targets. */
LST_MUST_USE lst_status model_check_tokens(const model *m, size_t n_micro, size_t *counted, lst_error *err);

/* n float32 values into stored elements first.. */
void model_store(void *stored, lst_codec codec, size_t first, const float *values, size_t n);

#endif
