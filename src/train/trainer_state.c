/* SPDX-License-Identifier: MIT */
#include "train/trainer_state.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"
#include "io/json.h"

typedef struct history {
    json_t *log;
    double steps_per_epoch;
    int64_t last_step;
    double best;
    int64_t tokens;
} history;

static void copy_number(json_t *to, const char *name, const json_t *from, const char *key)
{
    const json_t *value = json_object_get(from, key);
    if (json_is_number(value))
        (void)json_object_set_new(to, name, json_real(json_number_value(value)));
}

static double epoch_at(const history *h, int64_t step)
{
    return h->steps_per_epoch > 0 ? (double)step / h->steps_per_epoch : 0;
}

static void add_line(history *h, const json_t *line)
{
    const json_int_t step = json_integer_value(json_object_get(line, "step"));
    const json_t *valid = json_object_get(line, "valid_loss");
    if (step > h->last_step)
        return;
    json_t *entry = json_pack("{s:f, s:I}", "epoch", epoch_at(h, step), "step", step);
    if (!entry)
        return;
    if (valid) {
        copy_number(entry, "eval_loss", line, "valid_loss");
        if (json_is_number(valid) && !(h->best <= json_number_value(valid)))
            h->best = json_number_value(valid);
    } else {
        copy_number(entry, "grad_norm", line, "grad_norm");
        copy_number(entry, "learning_rate", line, "lr");
        copy_number(entry, "loss", line, "loss");
        h->tokens = json_integer_value(json_object_get(line, "tokens"));
    }
    (void)json_array_append_new(h->log, entry);
}

static lst_status read_history(history *h, const char *path, lst_error *err)
{
    lst_map map;
    lst_status status = lst__map_open(path, &map, err);
    if (status != LST_OK)
        return status;
    const char *text = (const char *)map.data, *end;
    for (size_t left = map.n_bytes; left > 0 && (end = memchr(text, '\n', left));) {
        json_t *line;
        status = lst__json_parse(&line, path, text, (size_t)(end - text), err);
        if (status != LST_OK)
            break;
        add_line(h, line);
        json_decref(line);
        left -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    lst__map_close(&map);
    return status;
}

static json_t *state_of(const train_state_source *from, const history *h)
{
    const train_settings *s = from->settings;
    const int64_t total = s->schedule.total_steps;
    json_t *best = isfinite(h->best) ? json_real(h->best) : json_null();
    return json_pack("{s:o, s:n, s:f, s:I, s:I, s:b, s:b, s:b, s:O, s:I, s:I, s:f, s:I, s:I, s:{}, s:I, s:I, s:n, s:n}",
                     "best_metric", best, "best_model_checkpoint", "epoch", epoch_at(h, from->step), "eval_steps",
                     (json_int_t)s->eval_every, "global_step", (json_int_t)from->step, "is_hyper_param_search", 0,
                     "is_local_process_zero", 1, "is_world_process_zero", 1, "log_history", h->log, "logging_steps",
                     (json_int_t)1, "max_steps", (json_int_t)total, "num_train_epochs", ceil(epoch_at(h, total)),
                     "num_input_tokens_seen", (json_int_t)h->tokens, "save_steps", (json_int_t)s->save_every,
                     "stateful_callbacks", "total_flos", (json_int_t)0, "train_batch_size", (json_int_t)s->recipe.batch,
                     "trial_name", "trial_params");
}

lst_status train_write_trainer_state(const char *path, const train_state_source *from, lst_error *err)
{
    history h = {json_array(), from->steps_per_epoch, from->step, NAN, 0};
    lst_status status = h.log ? LST_OK : lst__fail_memory(err, path, 4096);
    if (status == LST_OK)
        status = read_history(&h, from->metrics, err);
    json_t *state = status == LST_OK ? state_of(from, &h) : NULL;
    if (status == LST_OK)
        status = state ? lst__json_save(state, path, err) : lst__fail_memory(err, path, 4096);
    json_decref(state);
    json_decref(h.log);
    return status;
}
