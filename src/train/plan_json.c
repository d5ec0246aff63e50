/* SPDX-License-Identifier: MIT */
#include "train/plan_json.h"

#include <jansson.h>

#include "base/alloc.h"

static json_t *buckets(const uint64_t bytes[LST_N_BUCKETS])
{
    json_t *object = json_object();
    for (int b = 0; b < LST_N_BUCKETS; b++)
        if (bytes[b])
            json_object_set_new(object, lst_bucket_name((lst_bucket)b), json_integer((json_int_t)bytes[b]));
    return object;
}

static json_t *phases(const lst_plan *plan)
{
    json_t *list = json_array();
    for (int phase = 0; phase < plan->n_phases; phase++) {
        uint64_t live[LST_N_BUCKETS];
        char name[64];
        lst_phase_name(plan->n_layers, phase, name, sizeof name);
        uint64_t sum = lst_plan_live(plan, phase, live);
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:o}", "phase", name, "bytes", (json_int_t)sum, "buckets", buckets(live)));
    }
    return list;
}

lst_status train__plan_json(const lst_plan *plan, char **text, lst_error *err)
{
    char peak[64];
    lst_phase_name(plan->n_layers, plan->peak_phase, peak, sizeof peak);
    json_t *root =
        json_pack("{s:I, s:o, s:I, s:I, s:I, s:s, s:I, s:o}", "params", (json_int_t)plan->n_params, "buckets",
                  buckets(plan->bucket_bytes), "optimizer_state_bytes", (json_int_t)plan->optimizer_state_bytes,
                  "fixed_bytes", (json_int_t)plan->fixed_bytes, "peak_bytes", (json_int_t)plan->peak_bytes,
                  "peak_phase", peak, "arena_bytes", (json_int_t)plan->arena_bytes, "phases", phases(plan));
    *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return *text ? LST_OK : lst__fail_memory(err, "plan.json", 0);
}
