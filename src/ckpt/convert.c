/* SPDX-License-Identifier: MIT
 *
 * Writing optimizer state in another layout. Bytes that stay as they are go from the map to the file; a moment that
 * changes its codec is coded anew in memory, one at a time.
 */
#include "ckpt/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "ckpt/dtypes.h"
#include "ckpt/state.h"
#include "io/json.h"
#include "numeric/dynamic_map.h"
#include "store/codec.h"

const char *lst_ckpt_layout_name(lst_ckpt_layout layout)
{
    static const char *const names[] = {
#define LST_X(id, name, text) name,
        LST_CKPT_LAYOUT_LIST(LST_X)
#undef LST_X
    };
    return (unsigned)layout < LST_N_CKPT_LAYOUTS ? names[layout] : "unknown";
}

/* What an entry of the new file is. */
typedef enum part {
    PART_BYTES,  /* of the old file, as they are */
    PART_WHOLE,  /* a moment: codes and scales in one */
    PART_CODES,  /* of a moment */
    PART_SCALES, /* of a moment */
    PART_MAP,    /* bitsandbytes' levels */
    PART_STEP
} part;

typedef struct piece {
    part part;
    const lst__held *held;
    lst_codec codec; /* in the new file */
    size_t n_dims, dims[LST_MAX_DIMS];
    union {
        float single;
        int64_t whole;
    } step;
} piece;

typedef struct converting {
    lst__held_state from;
    const char *path;
    lst_ckpt_layout layout;
    lst_codec state;
    size_t n_pieces;
    piece *pieces;
    lst_st_entry *entries;
    char **names;
    /* The moment that was coded last, as memory would hold it. */
    const lst__held *coded;
    unsigned char *memory;
    size_t n_memory;
} converting;

/* ---- a moment in its new codec ---- */

static size_t scales_offset(lst_codec codec, size_t n_elems)
{
    const size_t block = lst_codec_block(codec);
    return lst_codec_bytes(codec, n_elems) - (n_elems + block - 1) / block * sizeof(float);
}

static void gather(const lst__held *s, unsigned char *memory)
{
    memcpy(memory, s->codes->data, s->codes->n_bytes);
    if (s->scales) {
        const size_t at = scales_offset(s->codec, s->n_elems);
        memset(memory + s->codes->n_bytes, 0, at - s->codes->n_bytes);
        memcpy(memory + at, s->scales->data, s->scales->n_bytes);
    }
}

static void recode(const converting *c, const lst__held *s, lst_codec codec, const unsigned char *old,
                   unsigned char *memory)
{
    const lst__rounding rounding = {
        .seed = strtoull(c->from.seed, NULL, 10), .step = (uint64_t)c->from.begun, .tensor = s->param_index, .slot = 1};
    float tile[LST__MAX_BLOCK];
    for (size_t first = 0; first < s->n_elems; first += LST__MAX_BLOCK) {
        const size_t n = s->n_elems - first < LST__MAX_BLOCK ? s->n_elems - first : LST__MAX_BLOCK;
        lst__codec(s->codec)->decode(old, s->n_elems, first, n, tile);
        lst__codec(codec)->encode(memory, s->n_elems, first, n, tile, &rounding);
    }
}

static lst_status code_moment(converting *c, const piece *p, lst_error *err)
{
    const lst__held *s = p->held;
    const size_t old_bytes = lst_codec_bytes(s->codec, s->n_elems), bytes = lst_codec_bytes(p->codec, s->n_elems);
    if (c->coded == s)
        return LST_OK;
    lst__free(c->memory);
    c->coded = NULL;
    c->n_memory = bytes;
    c->memory = lst__alloc((bytes + 63) / 64 * 64, 1);
    unsigned char *old = p->codec == s->codec ? NULL : lst__alloc((old_bytes + 63) / 64 * 64, 1);
    if (!c->memory || (p->codec != s->codec && !old)) {
        lst__free(old);
        return lst__fail_memory(err, s->codes->name, bytes + old_bytes);
    }
    gather(s, old ? old : c->memory);
    if (old)
        recode(c, s, p->codec, old, c->memory);
    lst__free(old);
    c->coded = s;
    return LST_OK;
}

static lst_status source(void *context, size_t entry, size_t offset, const void **data, size_t *n_bytes, lst_error *err)
{
    converting *c = context;
    const piece *p = &c->pieces[entry];
    const size_t split =
        p->part == PART_CODES || p->part == PART_SCALES ? scales_offset(p->codec, p->held->n_elems) : 0;
    const unsigned char *from = NULL;
    size_t n = 0;
    lst_status status = LST_OK;
    if (p->part == PART_WHOLE || p->part == PART_CODES || p->part == PART_SCALES)
        status = code_moment(c, p, err);
    if (status != LST_OK)
        return status;
    switch (p->part) {
    case PART_BYTES:
        from = p->held->codes->data;
        n = p->held->codes->n_bytes;
        break;
    case PART_WHOLE:
        from = c->memory;
        n = c->n_memory;
        break;
    case PART_CODES:
        from = c->memory;
        n = p->held->n_elems;
        break;
    case PART_SCALES:
        from = c->memory + split;
        n = c->n_memory - split;
        break;
    case PART_MAP: {
        const lst__dynamic_map *map = lst__dynamic_map_get(lst_codec_unsigned(p->codec) != p->codec);
        from = (const unsigned char *)map->level;
        n = sizeof map->level;
        break;
    }
    case PART_STEP:
        from = (const unsigned char *)&p->step;
        n = c->layout == LST_CKPT_TORCH ? sizeof p->step.single : sizeof p->step.whole;
        break;
    }
    *data = from + offset;
    *n_bytes = n - offset;
    return LST_OK;
}

/* ---- the new file's entries ---- */

static lst_status add(converting *c, const char *param, const char *slot, int number, piece p, lst_st_dtype dtype,
                      lst_error *err)
{
    const size_t room = strlen(param) + strlen(slot) + 24;
    char *name = lst__alloc(room, 1);
    if (!name)
        return lst__fail_memory(err, c->path, room);
    if (number)
        snprintf(name, room, "state.%s.%s%d", param, slot, number);
    else
        snprintf(name, room, "state.%s.%s", param, slot);
    const size_t at = c->n_pieces++;
    c->names[at] = name;
    c->pieces[at] = p;
    c->entries[at] = (lst_st_entry){.name = name, .dtype = dtype, .n_dims = p.n_dims, .dims = c->pieces[at].dims};
    return LST_OK;
}

static lst_status add_moment(converting *c, const lst__held *s, lst_error *err)
{
    piece p = {.part = PART_WHOLE, .held = s, .codec = s->codec, .n_dims = s->n_dims};
    memcpy(p.dims, s->dims, sizeof p.dims);
    /* float32 state of a tensor that is large enough, or of one with another length than its parameter's, stays. */
    if (s->codec != LST_CODEC_F32)
        p.codec = lst__held_codec(s->slot, c->state);
    else if (c->state != LST_CODEC_F32 && !s->own_length && s->n_elems >= LST_SMALL_TENSOR &&
             c->from.state == LST_CODEC_F32)
        p.codec = lst__held_codec(s->slot, c->state);
    const bool blocks = lst_codec_block(p.codec) > 1;
    if (c->layout != LST_CKPT_BITSANDBYTES) {
        if (blocks) {
            p.n_dims = 1;
            p.dims[0] = lst_codec_bytes(p.codec, s->n_elems);
        }
        return add(c, s->param, s->slot, 0, p, blocks ? LST_ST_U8 : LST_ST_F32, err);
    }
    const int number = lst__held_number(c->from.rule, s->slot);
    if (!number || s->own_length)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: bitsandbytes has no place for %s's slot %s", c->from.path,
                         lst_rule_name(c->from.rule), s->slot);
    if (!blocks)
        return add(c, s->param, "state", number, p, LST_ST_F32, err);
    p.part = PART_CODES;
    lst_status status = add(c, s->param, "state", number, p, LST_ST_U8, err);
    p.part = PART_SCALES;
    p.n_dims = 1;
    p.dims[0] = (s->n_elems + lst_codec_block(p.codec) - 1) / lst_codec_block(p.codec);
    if (status == LST_OK)
        status = add(c, s->param, "absmax", number, p, LST_ST_F32, err);
    p.part = PART_MAP;
    p.dims[0] = 256;
    return status == LST_OK ? add(c, s->param, "qmap", number, p, LST_ST_F32, err) : status;
}

static lst_status add_held(converting *c, const lst__held *s, lst_error *err)
{
    if (s->is_moment)
        return add_moment(c, s, err);
    piece p = {.part = PART_BYTES, .held = s, .n_dims = s->codes->n_dims};
    if (p.n_dims > LST_MAX_DIMS)
        return lst__fail(err, LST_ERR_FORMAT, "%s: tensor \"%s\" has too many dimensions", c->from.path,
                         s->codes->name);
    if (p.n_dims > 0)
        memcpy(p.dims, s->codes->dims, p.n_dims * sizeof *p.dims);
    return add(c, s->param, s->slot, 0, p, s->codes->dtype, err);
}

static lst_status add_steps(converting *c, lst_error *err)
{
    const char *name;
    json_t *entry;
    lst_status status = LST_OK;
    json_object_foreach(c->from.tensors, name, entry)
    {
        const char *text;
        if (status == LST_OK)
            status = lst__json_get_string(entry, c->from.path, "steps", &text, err);
        if (status != LST_OK)
            return status;
        piece p = {.part = PART_STEP};
        const int64_t steps = strtoll(text, NULL, 10);
        if (c->layout == LST_CKPT_TORCH && steps > 1 << 24)
            return lst__fail(err, LST_ERR_UNSUPPORTED,
                             "%s: %" PRId64 " steps; PyTorch counts in float32, which is exact to 16,777,216", c->path,
                             steps);
        if (c->layout == LST_CKPT_TORCH)
            p.step.single = (float)steps;
        else
            p.step.whole = steps;
        status = add(c, name, "step", 0, p, c->layout == LST_CKPT_TORCH ? LST_ST_F32 : LST_ST_I64, err);
    }
    return status;
}

static lst_status make_entries(converting *c, lst_error *err)
{
    const size_t room = c->from.n_held * 3 + json_object_size(c->from.tensors) + 1;
    c->pieces = lst__alloc(room, sizeof *c->pieces);
    c->entries = lst__alloc(room, sizeof *c->entries);
    c->names = lst__alloc(room, sizeof *c->names);
    if (!c->pieces || !c->entries || !c->names)
        return lst__fail_memory(err, c->path, room * (sizeof *c->pieces + sizeof *c->entries));
    lst_status status = LST_OK;
    for (size_t i = 0; status == LST_OK && i < c->from.n_held; i++)
        status = add_held(c, &c->from.held[i], err);
    if (status == LST_OK && c->layout != LST_CKPT_LEANSTEP)
        status = add_steps(c, err);
    return status;
}

/* ---- the description ---- */

static double number_of(const json_t *group, const char *field, double otherwise)
{
    const json_t *value = json_object_get(group, field);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

/* One group as PyTorch's state_dict()["param_groups"] has it, with names in place of numbers. */
static json_t *param_group(const converting *c, size_t at)
{
    const json_t *ours = json_array_get(c->from.groups, at);
    lst_hyper d;
    lst_hyper_default(c->from.rule, &d);
    json_t *params = json_array(), *entry;
    const char *name;
    json_object_foreach(c->from.tensors, name, entry)
    {
        if (json_integer_value(json_object_get(entry, "group")) == (json_int_t)at)
            json_array_append_new(params, json_string(name));
    }
    json_t *theirs = json_pack("{s:o, s:f, s:f}", "params", params, "lr", number_of(ours, "lr", d.lr), "weight_decay",
                               number_of(ours, "weight_decay", d.weight_decay));
    if (theirs && lst_rule_uses(c->from.rule, "beta2"))
        json_object_set_new(theirs, "betas",
                            json_pack("[f, f]", number_of(ours, "beta1", d.beta1), number_of(ours, "beta2", d.beta2)));
    static const char *const numbers[] = {"eps", "momentum", "dampening", "alpha"};
    const double defaults[] = {d.eps, d.momentum, d.dampening, d.alpha};
    for (size_t i = 0; theirs && i < 4; i++)
        if (lst_rule_uses(c->from.rule, numbers[i]))
            json_object_set_new(theirs, numbers[i], json_real(number_of(ours, numbers[i], defaults[i])));
    return theirs;
}

static lst_status groups_text(const converting *c, char **out, lst_error *err)
{
    json_t *groups = json_array();
    bool whole = groups != NULL;
    for (size_t i = 0; whole && i < json_array_size(c->from.groups); i++)
        whole = json_array_append_new(groups, param_group(c, i)) == 0;
    lst_status status = whole ? lst__json_text(groups, out, err) : lst__fail_memory(err, c->path, 1);
    json_decref(groups);
    return status;
}

static lst_status write_out(converting *c, lst_error *err)
{
    char *groups = NULL, *tensors = NULL, *params = NULL, begun[32];
    const bool own = c->layout == LST_CKPT_LEANSTEP;
    snprintf(begun, sizeof begun, "%" PRId64, c->from.begun);
    lst_status status = lst__json_text(c->from.groups, &groups, err);
    if (status == LST_OK)
        status = lst__json_text(c->from.tensors, &tensors, err);
    if (status == LST_OK)
        status = groups_text(c, &params, err);
    const lst_st_pair metadata[] = {
        {own ? LST__KEY_FORMAT : LST__KEY_LAYOUT, own ? LST__CKPT_FORMAT : lst_ckpt_layout_name(c->layout)},
        {LST__KEY_RULE, lst_rule_name(c->from.rule)},
        {LST__KEY_WEIGHTS, c->from.weights},
        {LST__KEY_STATE, lst_codec_name(c->state)},
        {LST__KEY_SEED, c->from.seed},
        {LST__KEY_BEGUN, begun},
        {LST__KEY_GROUPS, groups},
        {LST__KEY_TENSORS, tensors},
        {LST__KEY_TRAINER, c->from.trainer},
        {"param_groups", params},
    };
    const lst_st_content content = {.entries = c->entries,
                                    .n_entries = c->n_pieces,
                                    .metadata = metadata,
                                    .n_metadata = sizeof metadata / sizeof *metadata - own,
                                    .source = source,
                                    .context = c};
    if (status == LST_OK)
        status = lst__st_write(c->path, &content, err);
    lst__free(groups);
    lst__free(tensors);
    lst__free(params);
    return status;
}

/* What the moments will be coded as, if they can be. */
static lst_status choose_state(converting *c, lst_codec asked, lst_error *err)
{
    const bool dynamic = asked == LST_CODEC_Q8_DYNAMIC || asked == LST_CODEC_Q8_DYNAMIC_2048;
    c->state = asked != LST_N_CODECS ? asked : c->layout == LST_CKPT_TORCH ? LST_CODEC_F32 : c->from.state;
    if (c->layout == LST_CKPT_TORCH && c->state != LST_CODEC_F32)
        return lst__fail(err, LST_ERR_ARGUMENT, "PyTorch's optimizers keep state in float32, not in %s",
                         lst_codec_name(asked));
    if (c->layout == LST_CKPT_BITSANDBYTES && !dynamic && c->state != LST_CODEC_F32 &&
        c->state != LST_CODEC_Q8_DYNAMIC && c->state != LST_CODEC_Q8_DYNAMIC_2048)
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s: its state is %s; bitsandbytes reads f32, q8-dynamic and q8-dynamic-2048: say which to "
                         "code it as",
                         c->from.path, lst_codec_name(c->state));
    return LST_OK;
}

lst_status lst_ckpt_convert_optim(const char *from, const char *to, lst_ckpt_layout layout, lst_codec state,
                                  lst_error *err)
{
    converting c = {.path = to, .layout = layout};
    lst_status status = lst__held_open(&c.from, from, err);
    if (status == LST_OK)
        status = choose_state(&c, state, err);
    if (status == LST_OK)
        status = make_entries(&c, err);
    if (status == LST_OK)
        status = write_out(&c, err);
    for (size_t i = 0; i < c.n_pieces; i++)
        lst__free(c.names[i]);
    lst__free(c.names);
    lst__free(c.pieces);
    lst__free(c.entries);
    lst__free(c.memory);
    lst__held_close(&c.from);
    return status;
}
