/* SPDX-License-Identifier: MIT */
#ifndef LST_PLAN_CONFIG_H
#define LST_PLAN_CONFIG_H

#include "leanstep/arch.h"

/* The class that transformers loads a family's language model with: "LlamaForCausalLM". */
const char *lst__family_class(lst_family family);

#endif
