/* SPDX-License-Identifier: MIT
 *
 * Status codes and error details.
 *
 * Every function that can fail returns an lst_status and takes a last argument `lst_error *err`, which may be
 * NULL. On failure it fills *err (if given) with the same status and one English sentence or two that name the
 * file, tensor, line or option, what was found, what was expected and what to do. On success *err is untouched.
 * Results go through out-parameters, which are written only on success. The library never prints, exits or aborts.
 *
 *     lst_error err;
 *     if (lst_optim_create(&opt, &options, tensors, n, &err) != LST_OK)
 *         fprintf(stderr, "%s\n", err.message);
 */
#ifndef LEANSTEP_STATUS_H
#define LEANSTEP_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LST_MUST_USE __attribute__((warn_unused_result))
#define LST_API __attribute__((visibility("default")))
#define LST_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LST_MUST_USE
#define LST_API
#define LST_PRINTF(fmt, args)
#endif

/* X(identifier, name, what it means) — the one list that makes the enum and its names. */
#define LST_STATUS_LIST(X)                                                                                             \
    X(OK, "ok", "success")                                                                                             \
    X(ERR_ARGUMENT, "argument", "an argument or option is invalid, contradictory or has no effect")                    \
    X(ERR_MEMORY, "memory", "memory could not be had, or a limit would be exceeded")                                   \
    X(ERR_IO, "io", "the operating system refused a file operation (missing, full disk, ...)")                         \
    X(ERR_FORMAT, "format", "a file's content breaks its format")                                                      \
    X(ERR_UNSUPPORTED, "unsupported", "valid, but not implemented here; refused by name")                              \
    X(ERR_STATE, "state", "the call came in the wrong order, or files do not belong together")                         \
    X(ERR_NONFINITE, "nonfinite", "a NaN or infinity where a finite number is required")                               \
    X(ERR_INTERRUPTED, "interrupted", "a signal or a callback asked to stop")

typedef enum lst_status {
#define LST_X(id, name, text) LST_##id,
    LST_STATUS_LIST(LST_X)
#undef LST_X
} lst_status;

typedef struct lst_error {
    lst_status status;
    uint64_t position; /* byte offset in the named file where parsing failed; 0 if it has no meaning */
    char message[1000];
} lst_error;

/* The short name ("io") of a status, or "unknown". Never NULL; static storage. */
LST_API const char *lst_status_name(lst_status status);

#ifdef __cplusplus
}
#endif
#endif
