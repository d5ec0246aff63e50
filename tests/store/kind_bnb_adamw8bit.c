/* SPDX-License-Identifier: MIT
 *
 * bnb_adamw8bit: ten steps of AdamW on 8-bit state, the rule in float32 as the JSON says it, the state in q8-dynamic.
 * Tolerances of README-optim.md: scales 1e-6 relative; 0.2 % of the codes off by one; weights 2e-6, but 2e-4 where a
 * code once fell on the other side of a midpoint. Our levels are the closed form's, up to 2 units in the last place
 * from the table that made the file, and the gradients repeat every 257 elements, so one value that meets a midpoint
 * counts many times: elements that once came within 2^-20 of one are allowed those differences and not counted in the
 * 0.2 %.
 */
#include "store/kinds.h"

#include "numeric/dynamic_map.h"
#include "store/codec.h"

typedef struct run {
    size_t n;
    float *p, *m, *v, *g;
    uint8_t *state1, *state2; /* NULL for float32 state */
    double lr, beta1, beta2, eps, weight_decay;
    bool *unsure; /* came close to a midpoint */
    bool sparse;
    int64_t offset;
} run;

/* Marks elements whose normalised value is within 2^-20 of the middle between two levels. */
static void mark_unsure(run *r, const float *x, const uint8_t *codes, int is_signed)
{
    const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
    for (size_t first = 0; first < r->n; first += 256) {
        const size_t end = r->n - first < 256 ? r->n : first + 256;
        double most = 0.0;
        for (size_t i = first; i < end; i++)
            most = fmax(most, fabs((double)x[i]));
        for (size_t i = first; i < end; i++)
            for (int side = -1; side <= 1; side += 2) {
                const int other = (int)codes[i] + side;
                if (other < 0 || other > 255 || most == 0.0)
                    continue;
                const double middle = 0.5 * ((double)map->level[codes[i]] + (double)map->level[other]);
                r->unsure[i] = r->unsure[i] || fabs((double)x[i] / most - middle) <= fabs(middle) * 0x1p-20;
            }
    }
}

static void step(run *r, int64_t t)
{
    const lst__codec_traits *first = lst__codec(LST_CODEC_Q8_DYNAMIC), *second = lst__codec(LST_CODEC_Q8_DYNAMIC_U);
    const float rate = (float)(r->lr / (1.0 - pow(r->beta1, (double)t)));
    const float root = (float)sqrt(1.0 - pow(r->beta2, (double)t)), decay = (float)(1.0 - r->lr * r->weight_decay);
    if (r->state1 && t > 1) {
        first->decode(r->state1, r->n, 0, r->n, r->m);
        second->decode(r->state2, r->n, 0, r->n, r->v);
    }
    for (size_t i = 0; i < r->n; i++) {
        const int64_t k = (int64_t)i;
        const float g =
            r->sparse ? (float)(k % 256 == 0) : (float)((t * 131 + k * 17 + r->offset) % 257 - 128) / 1024.0f;
        r->m[i] = (float)r->beta1 * r->m[i] + (float)(1.0 - r->beta1) * g;
        r->v[i] = (float)r->beta2 * r->v[i] + (float)(1.0 - r->beta2) * g * g;
        r->p[i] = r->p[i] * decay - rate * r->m[i] / (sqrtf(r->v[i]) / root + (float)r->eps);
    }
    if (r->state1) {
        first->encode(r->state1, r->n, 0, r->n, r->m, NULL);
        second->encode(r->state2, r->n, 0, r->n, r->v, NULL);
        mark_unsure(r, r->m, r->state1, 1);
        mark_unsure(r, r->v, r->state2, 0);
    }
}

static run run_of(const golden_file *g, const json_t *about, bool quantised)
{
    const json_t *shape = json_object_get(about, "shape"), *betas = json_object_get(about, "betas");
    run r = {.n = 1};
    for (size_t i = 0; i < json_array_size(shape); i++)
        r.n *= (size_t)json_integer_value(json_array_get(shape, i));
    r.lr = golden_member(about, "lr", 0);
    r.beta1 = golden_number(json_array_get(betas, 0), 0);
    r.beta2 = golden_number(json_array_get(betas, 1), 0);
    r.eps = golden_member(about, "eps", 0);
    r.weight_decay = golden_member(about, "weight_decay", 0);
    r.sparse = json_integer_value(json_object_get(about, "always_zero_gradients")) > 0;
    r.offset = json_integer_value(json_object_get(g->about, "formula_offset"));
    r.p = calloc(r.n, sizeof *r.p);
    r.m = calloc(r.n, sizeof *r.m);
    r.v = calloc(r.n, sizeof *r.v);
    r.unsure = calloc(r.n, sizeof *r.unsure);
    if (quantised) {
        r.state1 = calloc(lst_codec_bytes(LST_CODEC_Q8_DYNAMIC, r.n), 1);
        r.state2 = calloc(lst_codec_bytes(LST_CODEC_Q8_DYNAMIC, r.n), 1);
    }
    if (!r.p || !r.m || !r.v || !r.unsure || (quantised && (!r.state1 || !r.state2)))
        golden_die("no memory for", "a run");
    for (size_t i = 0; i < r.n; i++)
        r.p[i] = ((float)(i * 29 % 97) - 48.0f) / 64.0f;
    return r;
}

/* Codes off by one count, others are wrong at once; scales relative. */
static bool state_agrees(const golden_file *g, const char *name, int which, const run *r, const uint8_t *state,
                         size_t *off)
{
    char full[160];
    size_t n, n_scales;
    snprintf(full, sizeof full, "%s/exact/state%d", name, which);
    uint8_t *codes = kind_array(g, full, "U8", &n);
    snprintf(full, sizeof full, "%s/exact/absmax%d", name, which);
    float *absmax = kind_array(g, full, "F32", &n_scales);
    const float *scales =
        (const float *)(const void *)(state + lst_codec_bytes(LST_CODEC_Q8_DYNAMIC, r->n) - n_scales * sizeof *scales);
    bool good = n == r->n;
    *off = 0;
    for (size_t i = 0; i < n && good; i++) {
        good = abs((int)state[i] - (int)codes[i]) <= 1;
        *off += state[i] != codes[i] && !r->unsure[i];
    }
    for (size_t b = 0; b < n_scales; b++)
        good = good && fabs((double)scales[b] - (double)absmax[b]) <= 1e-6 * (double)absmax[b];
    free(codes);
    free(absmax);
    return good && (double)*off <= 0.002 * (double)n;
}

static void check_tensor(const golden_file *g, const char *file, const char *name, const json_t *about)
{
    const char *dtype = json_string_value(json_object_get(about, "bnb_state_dtype"));
    const bool quantised = dtype && strstr(dtype, "uint8");
    char full[160], text[240];
    size_t n, off1 = 0, off2 = 0, far = 0, unsure = 0;
    snprintf(full, sizeof full, quantised ? "%s/exact/p" : "%s/bnb/p", name);
    float *want = kind_array(g, full, "F32", &n);
    run r = run_of(g, about, quantised);
    const int64_t steps = json_integer_value(json_object_get(g->about, "steps"));
    for (int64_t t = 1; t <= steps; t++)
        step(&r, t);
    double worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double apart = fabs((double)r.p[i] - (double)want[i]);
        worst = apart > worst ? apart : worst;
        far += apart > 2e-6 && !r.unsure[i];
        unsure += r.unsure[i];
    }
    bool good = n == r.n && worst <= 2e-4 && (double)far <= 0.002 * (double)n;
    if (quantised)
        good = state_agrees(g, name, 1, &r, r.state1, &off1) & state_agrees(g, name, 2, &r, r.state2, &off2) & good;
    snprintf(
        text, sizeof text,
        "weights %.2g apart at most (%zu of %zu beyond 2e-6), %zu + %zu codes off by one; 0.2 %% allowed, beside the "
        "%zu that came near a midpoint",
        worst, far, n, off1, off2, unsure);
    kind_verdict(good, file, name, text);
    free(want);
    free(r.p);
    free(r.m);
    free(r.v);
    free(r.unsure);
    free(r.state1);
    free(r.state2);
}

void kind_bnb_adamw8bit(const golden_file *g, const char *folder, const char *file)
{
    (void)folder;
    const char *name;
    json_t *about;
    json_object_foreach(json_object_get(g->about, "tensors"), name, about) check_tensor(g, file, name, about);
}
