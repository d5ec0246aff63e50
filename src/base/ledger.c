/* SPDX-License-Identifier: MIT */
#include "leanstep/ledger.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    bool is_state;
} buckets[] = {
#define LST_X(id, name, is_state) {name, is_state},
    LST_BUCKET_LIST(LST_X)
#undef LST_X
};

const char *lst_bucket_name(lst_bucket bucket)
{
    return (size_t)bucket < LST_N_BUCKETS ? buckets[bucket].name : "unknown";
}

bool lst_bucket_is_state(lst_bucket bucket)
{
    return (size_t)bucket < LST_N_BUCKETS && buckets[bucket].is_state;
}

void lst_ledger_init(lst_ledger *ledger)
{
    memset(ledger, 0, sizeof *ledger);
}

static void note_phase(lst_ledger *ledger)
{
    uint64_t *peak = &ledger->phase_peak[ledger->phase];
    if (ledger->now_total > *peak)
        *peak = ledger->now_total;
}

void lst_ledger_enter(lst_ledger *ledger, int phase)
{
    assert(phase >= 0 && phase < LST_MAX_PHASES);
    ledger->phase = phase;
    note_phase(ledger);
}

void lst_ledger_take(lst_ledger *ledger, lst_bucket bucket, size_t bytes)
{
    assert((size_t)bucket < LST_N_BUCKETS);
    ledger->n_takes++;
    ledger->now[bucket] += bytes;
    ledger->now_total += bytes;
    if (ledger->now[bucket] > ledger->peak[bucket])
        ledger->peak[bucket] = ledger->now[bucket];
    if (ledger->now_total > ledger->peak_total) {
        ledger->peak_total = ledger->now_total;
        ledger->peak_phase = ledger->phase;
        memcpy(ledger->at_peak, ledger->now, sizeof ledger->at_peak);
    }
    note_phase(ledger);
}

void lst_ledger_give(lst_ledger *ledger, lst_bucket bucket, size_t bytes)
{
    assert((size_t)bucket < LST_N_BUCKETS && ledger->now[bucket] >= bytes);
    ledger->now[bucket] -= bytes;
    ledger->now_total -= bytes;
}
