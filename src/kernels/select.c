/* SPDX-License-Identifier: MIT
 *
 * Chooses the kernels. Every table is filled reference-first and then overwritten, up to the first feature that is
 * missing, so a table is always complete.
 *
 * LEANSTEP_DISABLE_CPU takes features away: a comma-separated list of "avx512", "avx2" (which takes avx512 with it),
 * "f16c" and "base". Unknown words are ignored, so that one setting serves several versions. Results do not change,
 * only speed.
 */
#include "kernels/kernels.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef struct features {
    bool base, avx2, f16c, avx512;
} features;

static features cpu_features(void)
{
    features f = {.base = true};
#if defined(__x86_64__)
    __builtin_cpu_init();
    f.avx2 = __builtin_cpu_supports("avx2") != 0; /* asks the operating system too (XGETBV) */
    f.avx512 = f.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    unsigned a, b, c = 0, d;
    f.f16c = f.avx2 && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C); /* clang 14 does not know "f16c" by name */
#endif
    return f;
}

static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p && *p; p += *p == ',') {
        size_t span = strcspn(p, ",");
        if (span == n && memcmp(p, word, n) == 0)
            return true;
        p += span;
    }
    return false;
}

static features take_away(features f, const char *list)
{
    f.base = f.base && !listed(list, "base");
    f.avx2 = f.avx2 && !listed(list, "avx2");
    f.f16c = f.f16c && !listed(list, "f16c");
    f.avx512 = f.avx512 && !listed(list, "avx512");
    return f;
}

static void fill(lst__kernels *k, features f)
{
    lst__kernels_fill_scalar(k);
    if (!f.base)
        return;
    lst__kernels_fill_base(k);
#if defined(__x86_64__)
    if (!f.avx2)
        return;
    lst__kernels_fill_avx2(k);
    if (f.avx512)
        lst__kernels_fill_avx512(k);
    if (f.f16c)
        lst__kernels_fill_f16c(k);
#endif
}

static lst__kernels chosen;
static lst__kernels variants[LST__N_ISAS];
static bool available[LST__N_ISAS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const features has = cpu_features();
    fill(&chosen, take_away(has, getenv("LEANSTEP_DISABLE_CPU")));

    const features only[LST__N_ISAS] = {
        [LST__ISA_SCALAR] = {0},
        [LST__ISA_BASE] = {.base = true},
        [LST__ISA_AVX2] = {.base = true, .avx2 = true, .f16c = has.f16c},
        [LST__ISA_AVX512] = {.base = true, .avx2 = true, .f16c = has.f16c, .avx512 = true},
    };
    const bool present[LST__N_ISAS] = {true, has.base, has.avx2, has.avx512};
    for (int isa = 0; isa < LST__N_ISAS; isa++) {
        available[isa] = present[isa];
        if (present[isa])
            fill(&variants[isa], only[isa]);
    }
}

const lst__kernels *lst__kernels_get(void)
{
    pthread_once(&once, choose);
    return &chosen;
}

const lst__kernels *lst__kernels_for(lst__isa isa)
{
    pthread_once(&once, choose);
    return isa >= 0 && isa < LST__N_ISAS && available[isa] ? &variants[isa] : NULL;
}
