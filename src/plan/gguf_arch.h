/* SPDX-License-Identifier: MIT
 *
 * A GGUF file's metadata as an architecture.
 */
#ifndef LST_PLAN_GGUF_ARCH_H
#define LST_PLAN_GGUF_ARCH_H

#include "io/gguf.h"
#include "leanstep/arch.h"

/* A file whose name ends with .gguf. */
bool lst__is_gguf(const char *path);
/* Families gpt2, llama (SmolLM's too), qwen2 and qwen3. What is not implemented is refused by name. */
LST_MUST_USE lst_status lst__arch_from_gguf(const lst_gguf *gguf, lst_arch *out, lst_error *err);
/* The same for a path. */
LST_MUST_USE lst_status lst__arch_open_gguf(const char *path, lst_arch *out, lst_error *err);

#endif
