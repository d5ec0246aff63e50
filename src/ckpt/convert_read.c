/* SPDX-License-Identifier: MIT
 *
 * Reading optimizer state of any layout. docs/formats.md describes them.
 */
#include "ckpt/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "ckpt/state.h"
#include "io/json.h"
#include "io/printable.h"
#include "numeric/dynamic_map.h"

#define PREFIX "state."

/* ---- names ---- */

bool lst__held_is_moment(const char *slot)
{
    static const char *const names[] = {"exp_avg",         "exp_avg_sq", "max_exp_avg_sq",
                                        "momentum_buffer", "square_avg", "grad_avg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(slot, names[i]) == 0)
            return true;
    return false;
}

lst_codec lst__held_codec(const char *slot, lst_codec state)
{
    const bool squares = strcmp(slot, "exp_avg_sq") == 0 || strcmp(slot, "square_avg") == 0;
    return squares ? lst_codec_unsigned(state) : state;
}

/* What bitsandbytes keeps as state1 and state2, by rule; NULL where it has no such rule. */
static const char *numbered_slot(lst_rule rule, int number)
{
    switch (rule) {
    case LST_RULE_ADAM:
    case LST_RULE_ADAMW:
        return number == 1 ? "exp_avg" : "exp_avg_sq";
    case LST_RULE_LION:
        return number == 1 ? "exp_avg" : NULL;
    case LST_RULE_MOMENTUM:
        return number == 1 ? "momentum_buffer" : NULL;
    case LST_RULE_RMSPROP:
        return number == 1 ? "square_avg" : NULL;
    default:
        return NULL;
    }
}

int lst__held_number(lst_rule rule, const char *slot)
{
    for (int number = 1; number <= 2; number++) {
        const char *name = numbered_slot(rule, number);
        if (name && strcmp(name, slot) == 0)
            return number;
    }
    return 0;
}

static lst_status bad_tensor(const lst__held_state *h, const char *name, const char *what, lst_error *err)
{
    char shown[160];
    return lst__fail(err, LST_ERR_FORMAT, "%s: tensor \"%s\" %s", h->path, lst__printable(name, shown, sizeof shown),
                     what);
}

/* ---- the description: from Leanstep's metadata, or made up from what the file holds ---- */

static lst_codec codec_named(const char *name)
{
    for (unsigned i = 0; i < LST_N_CODECS; i++)
        if (strcmp(lst_codec_name((lst_codec)i), name) == 0)
            return (lst_codec)i;
    return LST_N_CODECS;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static lst_status find_layout(lst__held_state *h, lst_error *err)
{
    const char *layout = lst__st_metadata(h->st, LST__KEY_LAYOUT), *format = lst__st_metadata(h->st, LST__KEY_FORMAT);
    char shown[80];
    if (format && strcmp(format, LST__CKPT_FORMAT) != 0)
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: format version \"%s\"; this program reads " LST__CKPT_FORMAT,
                         h->path, lst__printable(format, shown, sizeof shown));
    if (format || layout) {
        for (unsigned i = 0; i < LST_N_CKPT_LAYOUTS; i++)
            if (strcmp(layout ? layout : "leanstep", lst_ckpt_layout_name((lst_ckpt_layout)i)) == 0) {
                h->layout = (lst_ckpt_layout)i;
                return LST_OK;
            }
        return lst__fail(err, LST_ERR_UNSUPPORTED, "%s: layout \"%s\"; leanstep, bitsandbytes and torch are known",
                         h->path, lst__printable(layout, shown, sizeof shown));
    }
    bool any = false;
    h->layout = LST_CKPT_TORCH;
    for (size_t i = 0; i < h->st->n_tensors; i++) {
        any = any || strncmp(h->st->tensors[i].name, PREFIX, strlen(PREFIX)) == 0;
        if (ends_with(h->st->tensors[i].name, ".state1"))
            h->layout = LST_CKPT_BITSANDBYTES;
    }
    return any ? LST_OK
               : lst__fail(err, LST_ERR_FORMAT,
                           "%s holds no optimizer state: no tensor is called \"state.PARAMETER.exp_avg\" or "
                           "\"state.PARAMETER.state1\"",
                           h->path);
}

static lst_status parse_key(const lst__held_state *h, const char *key, json_t **out, lst_error *err)
{
    const char *text = lst__st_metadata(h->st, key);
    if (!text)
        return LST_OK;
    return lst__json_parse(out, h->path, text, strlen(text), err);
}

/* "state.PARAM.exp_avg" -> a tensor of that shape in the list, group 0, 0 steps. */
static lst_status guess_tensors(lst__held_state *h, lst_error *err)
{
    h->tensors = json_object();
    for (size_t i = 0; h->tensors && i < h->st->n_tensors; i++) {
        const lst_st_tensor *t = &h->st->tensors[i];
        const char *dot = strrchr(t->name, '.'), *first = t->name + strlen(PREFIX);
        if (strncmp(t->name, PREFIX, strlen(PREFIX)) != 0 || dot <= first)
            return bad_tensor(h, t->name, "is not called \"state.PARAMETER.SLOT\"", err);
        if (strcmp(dot, ".state1") != 0 && !lst__held_is_moment(dot + 1))
            continue;
        json_t *shape = json_array();
        for (size_t k = 0; shape && k < t->n_dims; k++)
            json_array_append_new(shape, json_integer((json_int_t)t->dims[k]));
        json_t *entry = json_pack("{s:s, s:i, s:o}", "steps", "0", "group", 0, "shape", shape);
        char *name = lst__strdup(first);
        if (!entry || !name) {
            json_decref(entry);
            lst__free(name);
            return lst__fail_memory(err, h->path, strlen(first));
        }
        name[dot - first] = '\0';
        const int failed = json_object_set_new(h->tensors, name, entry);
        lst__free(name);
        if (failed)
            return bad_tensor(h, t->name, "has a name that is not UTF-8", err);
    }
    return h->tensors ? LST_OK : lst__fail_memory(err, h->path, 1);
}

/* One of PyTorch's param_groups as a group of ours; its "params" get its number. */
static lst_status guess_group(lst__held_state *h, size_t at, const json_t *theirs, lst_error *err)
{
    static const char *const numbers[] = {"lr", "eps", "weight_decay", "momentum", "dampening", "alpha"};
    json_t *ours = json_object();
    if (!ours || json_array_append_new(h->groups, ours) != 0)
        return lst__fail_memory(err, h->path, 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const json_t *value = json_object_get(theirs, numbers[i]);
        if (json_is_number(value) && json_object_set_new(ours, numbers[i], json_real(json_number_value(value))) != 0)
            return lst__fail_memory(err, h->path, 1);
    }
    if (!json_object_get(ours, "lr"))
        return lst__fail(err, LST_ERR_FORMAT, "%s: param_groups[%zu] has no lr", h->path, at);
    const json_t *betas = json_object_get(theirs, "betas"), *params = json_object_get(theirs, "params");
    for (size_t i = 0; i < 2 && i < json_array_size(betas); i++)
        if (json_object_set_new(ours, i ? "beta2" : "beta1", json_real(json_number_value(json_array_get(betas, i)))))
            return lst__fail_memory(err, h->path, 1);
    for (size_t i = 0; i < json_array_size(params); i++) {
        const char *name = json_string_value(json_array_get(params, i));
        json_t *entry = name ? json_object_get(h->tensors, name) : NULL;
        if (entry && json_object_set_new(entry, "group", json_integer((json_int_t)at)) != 0)
            return lst__fail_memory(err, h->path, 1);
    }
    return LST_OK;
}

static lst_status guess_groups(lst__held_state *h, lst_error *err)
{
    json_t *theirs = NULL;
    lst_hyper otherwise;
    lst_hyper_default(h->rule, &otherwise);
    lst_status status = parse_key(h, "param_groups", &theirs, err);
    if (status != LST_OK)
        return status;
    h->groups = json_array();
    if (!json_is_array(theirs) || json_array_size(theirs) == 0) {
        json_decref(theirs);
        json_t *only = json_pack("{s:f}", "lr", otherwise.lr);
        return h->groups && only && json_array_append_new(h->groups, only) == 0 ? LST_OK
                                                                                : lst__fail_memory(err, h->path, 1);
    }
    for (size_t i = 0; status == LST_OK && i < json_array_size(theirs); i++)
        status = guess_group(h, i, json_array_get(theirs, i), err);
    json_decref(theirs);
    return status;
}

static lst_status copy_key(const lst__held_state *h, const char *key, const char *otherwise, char **out, lst_error *err)
{
    const char *text = lst__st_metadata(h->st, key);
    *out = lst__strdup(text ? text : otherwise);
    return *out ? LST_OK : lst__fail_memory(err, h->path, 64);
}

static lst_status describe(lst__held_state *h, lst_error *err)
{
    const char *rule = lst__st_metadata(h->st, LST__KEY_RULE), *begun = lst__st_metadata(h->st, LST__KEY_BEGUN);
    const char *state = lst__st_metadata(h->st, LST__KEY_STATE);
    lst_status status = lst_rule_find(rule ? rule : "adamw", &h->rule, err);
    h->begun = begun ? strtoll(begun, NULL, 10) : 0;
    h->state = state ? codec_named(state) : LST_CODEC_F32;
    if (status == LST_OK && h->state == LST_N_CODECS)
        status = lst__fail(err, LST_ERR_FORMAT, "%s: its \"" LST__KEY_STATE "\" is no codec", h->path);
    if (status == LST_OK)
        status = copy_key(h, LST__KEY_WEIGHTS, "f32", &h->weights, err);
    if (status == LST_OK)
        status = copy_key(h, LST__KEY_SEED, "0", &h->seed, err);
    if (status == LST_OK)
        status = copy_key(h, LST__KEY_TRAINER, "", &h->trainer, err);
    if (status == LST_OK)
        status = parse_key(h, LST__KEY_TENSORS, &h->tensors, err);
    if (status == LST_OK && !h->tensors)
        status = guess_tensors(h, err);
    if (status == LST_OK)
        status = parse_key(h, LST__KEY_GROUPS, &h->groups, err);
    if (status == LST_OK && !h->groups)
        status = guess_groups(h, err);
    if (status == LST_OK && (!json_is_object(h->tensors) || !json_is_array(h->groups)))
        status = lst__fail(err, LST_ERR_FORMAT, "%s: its metadata do not describe tensors and groups", h->path);
    return status;
}

/* ---- slots ---- */

static lst_status read_shape(const lst__held_state *h, const char *param, const json_t *entry, lst__held *s,
                             lst_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    s->n_dims = json_array_size(shape);
    s->n_elems = 1;
    if (!json_is_array(shape) || s->n_dims > LST_MAX_DIMS)
        return lst__fail(err, LST_ERR_FORMAT, "%s: a tensor's shape is missing, or has too many dimensions", h->path);
    for (size_t i = 0; i < s->n_dims; i++) {
        const json_int_t dim = json_integer_value(json_array_get(shape, i));
        if (dim < 1 || (size_t)dim > SIZE_MAX / 8 / s->n_elems)
            return bad_tensor(h, param, "has a dimension that is no size", err);
        s->dims[i] = (size_t)dim;
        s->n_elems *= (size_t)dim;
    }
    return LST_OK;
}

/* A moment whose bytes are those of memory, in Leanstep's layout and in PyTorch's. */
static lst_status settle_plain(const lst__held_state *h, lst__held *s, lst_error *err)
{
    const lst_st_tensor *t = s->codes;
    s->is_moment = lst__held_is_moment(s->slot);
    if (!s->is_moment)
        return LST_OK;
    if (t->dtype == LST_ST_F32) { /* a statistic of rows has a length of its own */
        s->codec = LST_CODEC_F32;
        s->own_length = t->n_elems != s->n_elems;
        s->n_elems = t->n_elems;
        s->n_dims = t->n_dims;
        if (t->n_dims > LST_MAX_DIMS || t->n_elems == 0)
            return bad_tensor(h, t->name, "has too many dimensions, or no elements", err);
        if (t->n_dims > 0)
            memcpy(s->dims, t->dims, t->n_dims * sizeof *t->dims);
        return LST_OK;
    }
    s->codec = lst__held_codec(s->slot, h->state);
    if (t->dtype != LST_ST_U8 || lst_codec_block(s->codec) == 1 || t->n_bytes != lst_codec_bytes(s->codec, s->n_elems))
        return bad_tensor(h, t->name, "is neither F32 nor the bytes of its codec", err);
    return LST_OK;
}

/* bitsandbytes' map must be the one that our codes mean: within 2 units in the last place. */
static lst_status check_map(const lst__held_state *h, const char *param, int number, bool is_signed, lst_error *err)
{
    char name[512];
    snprintf(name, sizeof name, PREFIX "%s.qmap%d", param, number);
    const lst_st_tensor *t = lst__st_find(h->st, name);
    if (!t)
        return LST_OK;
    if (t->dtype != LST_ST_F32 || t->n_elems != 256)
        return bad_tensor(h, name, "is no map of 256 float32 values", err);
    const lst__dynamic_map *map = lst__dynamic_map_get(is_signed);
    for (size_t i = 0; i < 256; i++) {
        float level;
        memcpy(&level, t->data + 4 * i, sizeof level);
        if (!(fabs((double)level - (double)map->level[i]) <= 3e-7 * fabs((double)map->level[i])))
            return bad_tensor(h, name, "is not bitsandbytes' dynamic map; other maps are not supported", err);
    }
    return LST_OK;
}

static lst_status settle_numbered(lst__held_state *h, const char *param, int number, lst__held *s, lst_error *err)
{
    char name[512];
    const lst_st_tensor *t = s->codes;
    snprintf(name, sizeof name, PREFIX "%s.absmax%d", param, number);
    s->scales = lst__st_find(h->st, name);
    s->is_moment = true;
    s->codec = LST_CODEC_F32;
    if (t->n_elems != s->n_elems)
        return bad_tensor(h, t->name, "has another number of elements than its parameter", err);
    if (t->dtype == LST_ST_F32 && !s->scales)
        return LST_OK;
    if (t->dtype != LST_ST_U8 || !s->scales || s->scales->dtype != LST_ST_F32)
        return bad_tensor(h, t->name, "is neither F32, nor U8 codes with F32 scales in absmax", err);
    for (int wide = 0; wide < 2; wide++) {
        const lst_codec state = wide ? LST_CODEC_Q8_DYNAMIC_2048 : LST_CODEC_Q8_DYNAMIC;
        const size_t block = lst_codec_block(state);
        if (s->scales->n_elems != (s->n_elems + block - 1) / block || (h->state != LST_CODEC_F32 && h->state != state))
            continue;
        h->state = state;
        s->codec = lst__held_codec(s->slot, state);
        return check_map(h, param, number, s->codec == state, err);
    }
    return bad_tensor(h, name, "does not hold a scale for each 256 or 2,048 values, the same in all tensors", err);
}

static lst_status read_count(lst__held_state *h, const lst_st_tensor *t, json_t *entry, lst_error *err)
{
    double steps = -1;
    int64_t whole;
    float single;
    char text[32];
    if (t->n_elems == 1 && t->dtype == LST_ST_F32) {
        memcpy(&single, t->data, sizeof single);
        steps = (double)single;
    } else if (t->n_elems == 1 && t->dtype == LST_ST_I64) {
        memcpy(&whole, t->data, sizeof whole);
        steps = whole >= 0 && whole < (int64_t)1 << 52 ? (double)whole : -1;
    }
    if (!(steps >= 0 && steps < 0x1p52 && steps == floor(steps)))
        return bad_tensor(h, t->name, "is no count of steps (one F32 or I64)", err);
    snprintf(text, sizeof text, "%.0f", steps);
    if (!lst__st_metadata(h->st, LST__KEY_BEGUN) && (int64_t)steps > h->begun)
        h->begun = (int64_t)steps;
    return json_object_set_new(entry, "steps", json_string(text)) ? lst__fail_memory(err, h->path, 32) : LST_OK;
}

/* What follows "state." in a tensor's name is a parameter's name, a dot, and a slot: the parameter's longest match. */
static json_t *split_name(const lst__held_state *h, const char *name, char *param, size_t room, const char **slot)
{
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    const char *first = name + strlen(PREFIX), *dot = strrchr(first, '.');
    if (!dot || (size_t)(dot - first) >= room)
        return NULL;
    snprintf(param, room, "%.*s", (int)(dot - first), first);
    *slot = dot + 1;
    return json_object_get(h->tensors, param);
}

static lst_status read_tensor(lst__held_state *h, const lst_st_tensor *t, lst_error *err)
{
    char param[400];
    const char *slot;
    json_t *entry = split_name(h, t->name, param, sizeof param, &slot);
    const bool numbered = h->layout == LST_CKPT_BITSANDBYTES;
    if (!json_is_object(entry))
        return bad_tensor(h, t->name, "belongs to no tensor that the file describes", err);
    if (h->layout != LST_CKPT_LEANSTEP && strcmp(slot, "step") == 0)
        return read_count(h, t, entry, err);
    if (numbered && (strncmp(slot, "absmax", 6) == 0 || strncmp(slot, "qmap", 4) == 0))
        return LST_OK; /* read with its codes */
    const int number = !numbered ? 0 : strcmp(slot, "state1") == 0 ? 1 : strcmp(slot, "state2") == 0 ? 2 : 0;
    const char *ours = number ? numbered_slot(h->rule, number) : slot;
    if (!ours)
        return bad_tensor(h, t->name, "is a moment that the rule does not have", err);
    lst__held *s = &h->held[h->n_held];
    *s = (lst__held){.codes = t, .slot = lst__strdup(ours)};
    if (!s->slot)
        return lst__fail_memory(err, h->path, strlen(ours));
    h->n_held++;
    const char *name;
    json_t *other;
    json_object_foreach(h->tensors, name, other)
    {
        if (other == entry)
            break;
        s->param_index++;
    }
    s->param = name;
    lst_status status = read_shape(h, param, entry, s, err);
    if (status != LST_OK)
        return status;
    return number ? settle_numbered(h, param, number, s, err) : settle_plain(h, s, err);
}

lst_status lst__held_open(lst__held_state *h, const char *path, lst_error *err)
{
    *h = (lst__held_state){.path = path};
    lst_status status = lst__st_open(&h->st, path, err);
    if (status == LST_OK)
        status = find_layout(h, err);
    if (status == LST_OK)
        status = describe(h, err);
    if (status == LST_OK) {
        h->held = lst__alloc(h->st->n_tensors, sizeof *h->held);
        status = h->held ? LST_OK : lst__fail_memory(err, path, h->st->n_tensors * sizeof *h->held);
    }
    if (status == LST_OK && h->layout == LST_CKPT_BITSANDBYTES)
        h->state = LST_CODEC_F32; /* what its moments say */
    for (size_t i = 0; status == LST_OK && i < h->st->n_tensors; i++)
        status = read_tensor(h, &h->st->tensors[i], err);
    return status;
}

void lst__held_close(lst__held_state *h)
{
    for (size_t i = 0; i < h->n_held; i++)
        lst__free(h->held[i].slot);
    lst__free(h->held);
    lst__free(h->weights);
    lst__free(h->seed);
    lst__free(h->trainer);
    json_decref(h->groups);
    json_decref(h->tensors);
    lst__st_close(h->st);
}
