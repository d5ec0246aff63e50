/* SPDX-License-Identifier: MIT
 *
 * Reading and writing go through one table of fields, so that neither can forget one.
 */
#include "train/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "io/json.h"

#define FORMAT 1

typedef enum field_kind {
    FIELD_SIZE,
    FIELD_U64,
    FIELD_I64,
    FIELD_REAL,
    FIELD_BOOL,
    FIELD_TEXT,
    FIELD_CHOICE,
    FIELD_HEX
} field_kind;

/* A choice is an enum kept as an int; its names come from the room that owns it. */
typedef const char *name_of(int value);

static const char *rule_name(int value)
{
    return lst_rule_name((lst_rule)value);
}

static const char *form_name(int value)
{
    return lst_weight_form_name((lst_weight_form)value);
}

static const char *codec_name(int value)
{
    return lst_codec_name((lst_codec)value);
}

static const char *activations_name(int value)
{
    static const char *const names[] = {
#define LST_X(id, name, text) name,
        LST_ACT_POLICY_LIST(LST_X)
#undef LST_X
    };
    return names[value];
}

static const char *grad_mode_name(int value)
{
    static const char *const names[] = {
#define LST_X(id, name, text) name,
        LST_GRAD_MODE_LIST(LST_X)
#undef LST_X
    };
    return names[value];
}

static const char *schedule_name(int value)
{
    static const char *const names[] = {
#define LST_X(id, name) name,
        LST_SCHEDULE_LIST(LST_X)
#undef LST_X
    };
    return names[value];
}

static const char *decay_name(int value)
{
    static const char *const names[] = {
#define LST_X(id, name) name,
        LST_DECAY_LIST(LST_X)
#undef LST_X
    };
    return names[value];
}

typedef struct field {
    const char *section, *key;
    field_kind kind;
    size_t offset, room; /* room: bytes of a text, number of choices */
    name_of *names;
} field;

#define AT(member) offsetof(train_settings, member)

static const field fields[] = {
    {"model", "source", FIELD_TEXT, AT(model), TRAIN_MAX_PATH, NULL},
    {"model", "from_weights", FIELD_BOOL, AT(from_weights), 0, NULL},
    {"data", "path", FIELD_TEXT, AT(data), TRAIN_MAX_PATH, NULL},
    {"data", "hash", FIELD_HEX, AT(data_hash), 0, NULL},
    {"data", "valid_fraction", FIELD_REAL, AT(valid_fraction), 0, NULL},
    {"recipe", "optimizer", FIELD_CHOICE, AT(recipe.rule), LST_N_RULES, rule_name},
#define LST_X(name) {"recipe", #name, FIELD_REAL, AT(recipe.hyper.name), 0, NULL},
    LST_HYPER_NUMBER_LIST(LST_X)
#undef LST_X
#define LST_X(name) {"recipe", #name, FIELD_BOOL, AT(recipe.hyper.name), 0, NULL},
        LST_HYPER_SWITCH_LIST(LST_X)
#undef LST_X
            {"recipe", "weights", FIELD_CHOICE, AT(recipe.weights), LST_N_WEIGHT_FORMS, form_name},
    {"recipe", "grads", FIELD_CHOICE, AT(recipe.grad_mode), LST_N_GRAD_MODES, grad_mode_name},
    {"recipe", "grad_dtype", FIELD_CHOICE, AT(recipe.grads), LST_N_CODECS, codec_name},
    {"recipe", "state_dtype", FIELD_CHOICE, AT(recipe.state), LST_N_CODECS, codec_name},
    {"recipe", "f32_embeddings", FIELD_BOOL, AT(recipe.f32_embeddings), 0, NULL},
    {"recipe", "activations", FIELD_CHOICE, AT(recipe.activations), LST_N_ACT_POLICIES, activations_name},
    {"recipe", "clip", FIELD_REAL, AT(recipe.clip_norm), 0, NULL},
    {"recipe", "loss_scale", FIELD_BOOL, AT(recipe.loss_scale), 0, NULL},
    {"recipe", "batch", FIELD_SIZE, AT(recipe.batch), 0, NULL},
    {"recipe", "seq", FIELD_SIZE, AT(recipe.seq), 0, NULL},
    {"recipe", "accumulation", FIELD_SIZE, AT(recipe.accumulation), 0, NULL},
    {"recipe", "loss_chunk", FIELD_SIZE, AT(recipe.loss_chunk), 0, NULL},
    {"recipe", "threads", FIELD_SIZE, AT(recipe.threads), 0, NULL},
    {"schedule", "kind", FIELD_CHOICE, AT(schedule.kind), LST_N_SCHEDULES, schedule_name},
    {"schedule", "warmup_steps", FIELD_I64, AT(schedule.warmup_steps), 0, NULL},
    {"schedule", "total_steps", FIELD_I64, AT(schedule.total_steps), 0, NULL},
    {"schedule", "cycles", FIELD_REAL, AT(schedule.cycles), 0, NULL},
    {"schedule", "min_rate", FIELD_REAL, AT(schedule.min_rate), 0, NULL},
    {"schedule", "warmup_rate", FIELD_REAL, AT(schedule.warmup_rate), 0, NULL},
    {"schedule", "power", FIELD_REAL, AT(schedule.power), 0, NULL},
    {"schedule", "decay_steps", FIELD_I64, AT(schedule.decay_steps), 0, NULL},
    {"schedule", "decay", FIELD_CHOICE, AT(schedule.decay), LST_N_DECAYS, decay_name},
    {"schedule", "epochs", FIELD_REAL, AT(epochs), 0, NULL},
    {"tokens", "tokenizer", FIELD_TEXT, AT(tokenizer), TRAIN_MAX_PATH, NULL},
    {"tokens", "chat", FIELD_TEXT, AT(chat), TRAIN_MAX_CHAT, NULL},
    {"tokens", "pack", FIELD_BOOL, AT(pack), 0, NULL},
    {"tokens", "loss_all", FIELD_BOOL, AT(loss_all), 0, NULL},
    {"run", "seed", FIELD_U64, AT(seed), 0, NULL},
    {"run", "memory_limit_bytes", FIELD_U64, AT(memory_limit), 0, NULL},
    {"run", "eval_every", FIELD_SIZE, AT(eval_every), 0, NULL},
    {"run", "eval_sequences", FIELD_SIZE, AT(eval_sequences), 0, NULL},
    {"run", "save_every", FIELD_SIZE, AT(save_every), 0, NULL},
    {"run", "keep_checkpoints", FIELD_SIZE, AT(keep), 0, NULL},
    {"sample", "prompt", FIELD_TEXT, AT(prompt), TRAIN_MAX_PROMPT, NULL},
    {"sample", "tokens", FIELD_SIZE, AT(sample_tokens), 0, NULL},
    {"sample", "temperature", FIELD_REAL, AT(temperature), 0, NULL},
    {"sample", "top_k", FIELD_SIZE, AT(top_k), 0, NULL},
};

/* Sections that runs of older versions lack: their fields then keep their defaults. */
static bool is_newer(const char *section)
{
    return strcmp(section, "tokens") == 0;
}

#define N_FIELDS (sizeof fields / sizeof fields[0])

_Static_assert(sizeof(lst_rule) == sizeof(int) && sizeof(lst_codec) == sizeof(int) &&
                   sizeof(lst_weight_form) == sizeof(int) && sizeof(lst_schedule_kind) == sizeof(int) &&
                   sizeof(lst_grad_mode) == sizeof(int),
               "choices are read and written as int");

void train_settings_default(train_settings *out)
{
    memset(out, 0, sizeof *out);
    lst_recipe_default(&out->recipe);
    out->schedule = (lst_schedule){.kind = LST_SCHEDULE_COSINE, .warmup_steps = -1, .total_steps = 1000};
    out->valid_fraction = 0.05;
    out->eval_every = 100;
    out->eval_sequences = 64;
    out->save_every = 200;
    out->keep = 2;
    out->sample_tokens = 200;
    out->temperature = 0.8;
    out->top_k = 40;
}

bool train_keeps_own_rate(const lst_recipe *recipe)
{
    return recipe->rule == LST_RULE_SCHEDULE_FREE || recipe->hyper.relative_step;
}

lst_status train_settings_check(const train_settings *s, lst_error *err)
{
    if (s->schedule.total_steps < 0 || (s->schedule.total_steps == 0 && !(s->epochs > 0 && s->epochs <= 1e6)))
        return lst__fail(err, LST_ERR_ARGUMENT, "a run needs --steps of at least 1, or --epochs above 0");
    if (s->schedule.total_steps > 0 && s->schedule.warmup_steps > s->schedule.total_steps)
        return lst__fail(err, LST_ERR_ARGUMENT, "--warmup %lld is longer than the run of %lld steps",
                         (long long)s->schedule.warmup_steps, (long long)s->schedule.total_steps);
    if (train_keeps_own_rate(&s->recipe) && (s->schedule.kind != LST_SCHEDULE_CONSTANT || s->schedule.warmup_steps > 0))
        return lst__fail(
            err, LST_ERR_ARGUMENT,
            "--optimizer %s sets its rate itself: use --schedule constant --warmup 0 (its own warm-up is a "
            "--hyper)",
            lst_rule_name(s->recipe.rule));
    if (s->schedule.total_steps > 0 && s->schedule.warmup_steps >= 0) {
        lst_status status = lst_schedule_check(&s->schedule, err);
        if (status != LST_OK)
            return status;
    }
    if (!(s->valid_fraction > 0 && s->valid_fraction <= 0.5))
        return lst__fail(err, LST_ERR_ARGUMENT, "--valid-fraction is %g; expected more than 0 and at most 0.5",
                         s->valid_fraction);
    if (s->eval_sequences < 1)
        return lst__fail(err, LST_ERR_ARGUMENT, "--eval-sequences must be at least 1");
    if (s->keep < 1)
        return lst__fail(err, LST_ERR_ARGUMENT,
                         "--keep must be at least 1: a run without a checkpoint cannot be resumed");
    if (s->seed > INT64_MAX || s->memory_limit > INT64_MAX)
        return lst__fail(err, LST_ERR_ARGUMENT, "--seed and --memory must be below 2^63");
    if (!(s->temperature >= 0))
        return lst__fail(err, LST_ERR_ARGUMENT, "the temperature is %g; expected 0 (always the likeliest) or more",
                         s->temperature);
    if (s->recipe.seq > s->arch.max_positions && s->arch.learned_positions)
        return lst__fail(err, LST_ERR_ARGUMENT, "--seq %zu is longer than the %zu positions this model has learned",
                         s->recipe.seq, s->arch.max_positions);
    return LST_OK;
}

static json_t *field_to_json(const field *f, const train_settings *s)
{
    const void *at = (const char *)s + f->offset;
    char hex[20];
    switch (f->kind) {
    case FIELD_SIZE:
        return json_integer((json_int_t) * (const size_t *)at);
    case FIELD_U64:
        return json_integer((json_int_t) * (const uint64_t *)at);
    case FIELD_I64:
        return json_integer(*(const int64_t *)at);
    case FIELD_REAL:
        return json_real(*(const double *)at);
    case FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case FIELD_TEXT:
        return json_string(at);
    case FIELD_CHOICE:
        return json_string(f->names(*(const int *)at));
    case FIELD_HEX:
        snprintf(hex, sizeof hex, "%016" PRIx64, *(const uint64_t *)at);
        return json_string(hex);
    }
    return NULL;
}

/* The section's object, made when first asked for. */
static json_t *section_of(json_t *root, const char *name)
{
    json_t *section = json_object_get(root, name);
    if (section)
        return section;
    section = json_object();
    return json_object_set_new(root, name, section) == 0 ? section : NULL;
}

static lst_status put_config(json_t *root, const train_settings *s, lst_error *err)
{
    char *config;
    lst_status status = lst_arch_to_config(&s->arch, "float32", &config, err);
    if (status != LST_OK)
        return status;
    json_t *value;
    status = lst__json_parse(&value, "the model's config", config, strlen(config), err);
    free(config);
    if (status == LST_OK && json_object_set_new(section_of(root, "model"), "config", value) != 0)
        status = lst__fail_memory(err, "settings.json", 0);
    return status;
}

lst_status train_settings_write(const train_settings *settings, char **json, lst_error *err)
{
    json_t *root = json_object();
    bool failed = !root || json_object_set_new(root, "format", json_integer(FORMAT)) != 0;
    for (size_t i = 0; i < N_FIELDS && !failed; i++) {
        json_t *value = field_to_json(&fields[i], settings);
        failed = !value && fields[i].kind == FIELD_TEXT;
        if (failed) {
            json_decref(root);
            return lst__fail(err, LST_ERR_ARGUMENT, "the %s %s is not UTF-8, and settings.json cannot hold it",
                             fields[i].section, fields[i].key);
        }
        failed = json_object_set_new(section_of(root, fields[i].section), fields[i].key, value) != 0;
    }
    lst_status status = failed ? lst__fail_memory(err, "settings.json", 0) : put_config(root, settings, err);
    if (status == LST_OK) {
        *json = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
        if (!*json)
            status = lst__fail_memory(err, "settings.json", 0);
    }
    json_decref(root);
    return status;
}

static lst_status read_choice(const field *f, const char *where, const char *name, int *out, lst_error *err)
{
    char list[400] = "";
    for (size_t i = 0; i < f->room; i++) {
        if (strcmp(f->names((int)i), name) == 0) {
            *out = (int)i;
            return LST_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", f->names((int)i));
    }
    return lst__fail(err, LST_ERR_FORMAT, "%s: \"%s\" is \"%s\"; expected one of: %s", where, f->key, name, list);
}

static lst_status read_text(const field *f, const char *where, const char *text, void *at, lst_error *err)
{
    if (f->kind == FIELD_CHOICE)
        return read_choice(f, where, text, at, err);
    if (f->kind == FIELD_HEX) {
        if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
            return lst__fail(err, LST_ERR_FORMAT, "%s: \"%s\" is \"%s\"; expected 16 hexadecimal digits", where, f->key,
                             text);
        *(uint64_t *)at = strtoull(text, NULL, 16);
        return LST_OK;
    }
    if (strlen(text) >= f->room)
        return lst__fail(err, LST_ERR_FORMAT, "%s: \"%s\" is longer than %zu bytes", where, f->key, f->room - 1);
    strcpy(at, text);
    return LST_OK;
}

static lst_status read_field(const field *f, const json_t *section, const char *where, train_settings *s,
                             lst_error *err)
{
    void *at = (char *)s + f->offset;
    const char *text;
    int64_t integer = 0;
    lst_status status;
    switch (f->kind) {
    case FIELD_SIZE:
        return lst__json_get_size(section, where, f->key, at, err);
    case FIELD_REAL:
        return lst__json_get_real(section, where, f->key, at, err);
    case FIELD_BOOL:
        return lst__json_get_bool(section, where, f->key, at, err);
    case FIELD_U64:
    case FIELD_I64:
        status = lst__json_get_int(section, where, f->key, &integer, err);
        if (status == LST_OK && integer < 0)
            return lst__fail(err, LST_ERR_FORMAT, "%s: \"%s\" is %lld; expected 0 or more", where, f->key,
                             (long long)integer);
        *(uint64_t *)at = (uint64_t)integer;
        return status;
    case FIELD_TEXT:
    case FIELD_CHOICE:
    case FIELD_HEX:
        status = lst__json_get_string(section, where, f->key, &text, err);
        return status == LST_OK ? read_text(f, where, text, at, err) : status;
    }
    return LST_OK;
}

static lst_status read_config(json_t *root, const char *source, train_settings *s, lst_error *err)
{
    json_t *model, *config;
    lst_status status = lst__json_get_object(root, source, "model", &model, err);
    if (status == LST_OK)
        status = lst__json_get_object(model, source, "config", &config, err);
    char *text = NULL;
    if (status == LST_OK)
        status = lst__json_text(config, &text, err);
    if (status == LST_OK)
        status = lst_arch_from_config(text, strlen(text), source, &s->arch, err);
    lst__free(text);
    return status;
}

static lst_status read_root(json_t *root, const char *source, train_settings *s, lst_error *err)
{
    int64_t format;
    lst_status status = lst__json_get_int(root, source, "format", &format, err);
    if (status == LST_OK && format != FORMAT)
        return lst__fail(err, LST_ERR_UNSUPPORTED,
                         "%s has format %lld, and this program reads format %d: it was written by another version",
                         source, (long long)format, FORMAT);
    for (size_t i = 0; status == LST_OK && i < N_FIELDS; i++) {
        json_t *section;
        char where[TRAIN_MAX_PATH + 32];
        if (is_newer(fields[i].section) && !lst__json_has(root, fields[i].section))
            continue;
        snprintf(where, sizeof where, "%s, %s", source, fields[i].section);
        status = lst__json_get_object(root, source, fields[i].section, &section, err);
        if (status == LST_OK)
            status = read_field(&fields[i], section, where, s, err);
    }
    return status == LST_OK ? read_config(root, source, s, err) : status;
}

lst_status train_settings_read(train_settings *out, const char *json, size_t n_bytes, const char *source,
                               lst_error *err)
{
    train_settings settings;
    memset(&settings, 0, sizeof settings);
    json_t *root;
    lst_status status = lst__json_parse(&root, source, json, n_bytes, err);
    if (status != LST_OK)
        return status;
    status = read_root(root, source, &settings, err);
    json_decref(root);
    if (status == LST_OK)
        *out = settings;
    return status;
}
