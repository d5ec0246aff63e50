/* SPDX-License-Identifier: MIT
 *
 * A rule's loop on q8 moments gives the bytes and bits that decoding, the rule and coding give one after the other in
 * the scalar reference: hostile weights, gradients and codes, all lengths from 0 to 130.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/hostile.h"
#include "kernels/kernels.h"

enum { LONGEST = 130, BASES = (LONGEST + 31) / 32 };

typedef struct arrays {
    float w[LONGEST], g[LONGEST];
    uint8_t m[LONGEST], v[LONGEST], m_bases[BASES], v_bases[BASES];
} arrays;

static const lst__rounding_key m_key = {0x9abcdef012345678u}, v_key = {0x0fedcba987654321u};

static void fill(arrays *a, uint64_t stream)
{
    for (size_t i = 0; i < LONGEST; i++) {
        /* Every third run has plain numbers only: one hostile number sends its whole group another way. */
        const uint32_t w = hostile_bits(stream, 4 * i), g = hostile_bits(stream, 4 * i + 1);
        memcpy(&a->w[i], &w, 4);
        memcpy(&a->g[i], &g, 4);
        if (stream % 3 == 0) {
            a->w[i] = 0.01f * (float)i;
            a->g[i] = 1e-3f * (float)(w % 2001u) - 1.0f;
        }
        a->m[i] = (uint8_t)hostile_bits(stream, 4 * i + 2);
        a->v[i] = (uint8_t)(hostile_bits(stream, 4 * i + 3) >> 8);
    }
    for (size_t i = 0; i < BASES; i++) { /* up to the largest that a code is made with */
        a->m_bases[i] = (uint8_t)(hostile_bits(stream, 1000 + i) % 236u);
        a->v_bases[i] = (uint8_t)(hostile_bits(stream, 2000 + i) % 216u);
    }
}

static void in_turn(const lst__kernels *k, size_t loop, const float *scalars, arrays *a, size_t n, uint32_t first)
{
    float m[LONGEST], v[LONGEST];
    const lst__rule_args args = {.n = n, .w = a->w, .g = a->g, .s = {m, v}, .k = scalars};
    k->q8_to_f32(a->m, a->m_bases, m, n);
    k->q8u_to_f32(a->v, a->v_bases, v, n);
    k->rules[loop](&args);
    k->f32_to_q8(m, a->m, a->m_bases, n, m_key, first);
    k->f32_to_q8u(v, a->v, a->v_bases, n, v_key, first);
}

static void in_one(const lst__kernels *k, size_t loop, const float *scalars, arrays *a, size_t n, uint32_t first)
{
    const lst__rule_args args = {.n = n, .w = a->w, .g = a->g, .k = scalars};
    const lst__q8_moments moments = {.m = a->m,
                                     .m_bases = a->m_bases,
                                     .v = a->v,
                                     .v_bases = a->v_bases,
                                     .m_key = m_key,
                                     .v_key = v_key,
                                     .first = first};
    k->rules_q8[loop](&args, &moments);
}

static int same(const arrays *a, const arrays *b)
{
    for (size_t i = 0; i < LONGEST; i++)
        if (memcmp(&a->w[i], &b->w[i], 4) != 0 && !(a->w[i] != a->w[i] && b->w[i] != b->w[i]))
            return 0;
    return memcmp(a->m, b->m, LONGEST) == 0 && memcmp(a->v, b->v, LONGEST) == 0 &&
           memcmp(a->m_bases, b->m_bases, BASES) == 0 && memcmp(a->v_bases, b->v_bases, BASES) == 0;
}

static void one_loop_equals_three(void **state)
{
    (void)state;
    const float scalars[LST__N_K] = {[LST__K_SIGN] = 1.0f,    [LST__K_RATE] = -0.01f,  [LST__K_DECAY] = 0.999f,
                                     [LST__K_L2] = 0.01f,     [LST__K_BETA1C] = 0.1f,  [LST__K_BETA2] = 0.99f,
                                     [LST__K_BETA2C] = 0.01f, [LST__K_UNBIAS2] = 1.5f, [LST__K_EPS] = 1e-8f};
    const lst__kernels *reference = lst__kernels_for(LST__ISA_SCALAR);
    size_t compared = 0;
    for (unsigned isa = 0; isa < LST__N_ISAS; isa++) {
        const lst__kernels *k = lst__kernels_for((lst__isa)isa);
        for (size_t loop = 0; k && loop < LST__N_RULE_LOOPS; loop++) {
            for (size_t n = 0; k->rules_q8[loop] && n <= LONGEST; n++, compared++) {
                arrays wanted, found;
                fill(&wanted, n);
                found = wanted;
                in_turn(reference, loop, scalars, &wanted, n, 32 * (uint32_t)n);
                in_one(k, loop, scalars, &found, n, 32 * (uint32_t)n);
                if (!same(&wanted, &found))
                    fail_msg("%s, loop %zu, n = %zu: not the same as decode, rule and encode", k->name, loop, n);
            }
        }
    }
    print_message("%zu runs compared\n", compared);
    if (lst__kernels_for(LST__ISA_AVX2))
        assert_true(compared >= 4 * (LONGEST + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_loop_equals_three),
    };
    return cmocka_run_group_tests_name("q8 rules", tests, NULL, NULL);
}
