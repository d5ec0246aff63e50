/* SPDX-License-Identifier: MIT
 *
 * From an architecture's tensors to the optimizer's: groups, and what rules that look at a shape must know of it.
 */
#include <string.h>

#include "leanstep/recipe.h"

static bool is_embedding(lst_role role)
{
    return role == LST_ROLE_EMBED || role == LST_ROLE_POSITIONS || role == LST_ROLE_HEAD_W;
}

size_t lst_recipe_groups(const lst_recipe *recipe, lst_hyper out[LST_RECIPE_GROUPS])
{
    for (size_t i = 0; i < LST_RECIPE_GROUPS; i++)
        out[i] = recipe->hyper;
    out[1].weight_decay = 0;
    if (recipe->rule != LST_RULE_MUON)
        return 2;
    out[2].adamw = true;
    return 3;
}

/* Adam-mini's blocks: an output of a matrix, an attention head of q and k; embeddings and head have a moment a
 * value. */
static size_t moment_block(const lst_arch *arch, const lst_arch_tensor *tensor)
{
    if (is_embedding(tensor->role))
        return 1;
    if (tensor->n_dims < 2)
        return 0;
    if (arch->conv1d)
        return LST_MOMENT_COLUMNS;
    if (tensor->role == LST_ROLE_Q_W || tensor->role == LST_ROLE_K_W)
        return arch->head_dim * tensor->dims[1];
    return 0;
}

void lst_recipe_tensor(const lst_recipe *recipe, const lst_arch *arch, const lst_arch_tensor *tensor, lst_tensor *out)
{
    *out = (lst_tensor){.name = tensor->name, .n_dims = tensor->n_dims};
    memcpy(out->dims, tensor->dims, sizeof tensor->dims);
    out->group = lst_arch_tensor_decays(tensor) ? 0 : 1;
    if (recipe->rule == LST_RULE_MUON && is_embedding(tensor->role))
        out->group = 2;
    if (recipe->rule == LST_RULE_ADAM_MINI)
        out->moment_block = moment_block(arch, tensor);
    out->f32_state = recipe->f32_embeddings && is_embedding(tensor->role);
}
