/* SPDX-License-Identifier: MIT
 *
 * Which variant is chosen, and what LEANSTEP_DISABLE_CPU takes away. The choice is made once a process, so each setting
 * is tried in a new one: this program started again with the word "name".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/kernels.h"

static const char *program;

/* The variant's name, then the name of the slowest variant that has the same f16 conversion. */
static int print_choice(void)
{
    const lst__kernels *k = lst__kernels_get();
    const char *f16 = "f16c";
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++) {
        const lst__kernels *other = lst__kernels_for(isa);
        if (isa <= LST__ISA_BASE && other->f16_to_f32 == k->f16_to_f32)
            f16 = other->name;
    }
    printf("%s %s\n", k->name, f16);
    return 0;
}

static void choice_with(const char *disabled, char out[64])
{
    char command[512];
    snprintf(command, sizeof command, "LEANSTEP_DISABLE_CPU='%s' '%s' name", disabled, program);
    FILE *child = popen(command, "r");
    assert_non_null(child);
    assert_non_null(fgets(out, 64, child));
    assert_int_equal(pclose(child), 0);
    out[strcspn(out, "\n")] = '\0';
}

static void features_go_one_by_one(void **state)
{
    (void)state;
    char got[64];
    bool has_512 = lst__kernels_for(LST__ISA_AVX512) != NULL, has_avx2 = lst__kernels_for(LST__ISA_AVX2) != NULL;
    choice_with("", got);
    assert_int_equal(strncmp(got, "avx512", 6) == 0, has_512);
    choice_with("avx512", got);
    assert_int_equal(strncmp(got, "avx2", 4) == 0, has_avx2);
    choice_with("avx2", got);
    assert_string_equal(got, "base base");
    choice_with("f16c,something-new,avx2", got);
    assert_string_equal(got, "base base");
    choice_with("base", got);
    assert_string_equal(got, "scalar scalar");
    choice_with("avx512,avx2,base", got);
    assert_string_equal(got, "scalar scalar");
}

static void f16c_goes_alone(void **state)
{
    (void)state;
    if (lst__kernels_for(LST__ISA_AVX2) == NULL)
        skip();
    char got[64];
    choice_with("avx512", got);
    assert_string_equal(got, "avx2 f16c");
    choice_with("avx512,f16c", got);
    assert_int_equal(strncmp(got, "avx2 ", 5), 0);
    assert_string_not_equal(got, "avx2 base");
}

static void every_table_is_complete(void **state)
{
    (void)state;
    for (lst__isa isa = LST__ISA_SCALAR; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for(isa);
        if (k == NULL)
            continue;
        /* The table is a name and pointers to functions only: none may be null, but rules_q8 at its end. */
        for (size_t at = 0; at < offsetof(lst__kernels, rules_q8); at += sizeof(void *)) {
            void *entry;
            memcpy(&entry, (const unsigned char *)k + at, sizeof entry);
            assert_non_null(entry);
        }
    }
    assert_null(lst__kernels_for(LST__N_ISAS));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "name") == 0)
        return print_choice();
    program = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_go_one_by_one),
        cmocka_unit_test(f16c_goes_alone),
        cmocka_unit_test(every_table_is_complete),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
