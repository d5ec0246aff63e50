/* SPDX-License-Identifier: MIT */
#include "train/metrics.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files.h"

struct train_log {
    FILE *file;
    char *path;
};

/* A line of metrics.jsonl, or the reason it is none. */
static json_t *parse_line(const char *line, size_t n_bytes)
{
    json_t *object = json_loadb(line, n_bytes, JSON_REJECT_DUPLICATES, NULL);
    if (object && !json_is_integer(json_object_get(object, "step"))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Calls visit with each whole line of text; a last line without its line feed is one that a kill cut short. */
static lst_status each_line(const char *path, const char *text, size_t n_bytes,
                            lst_status (*visit)(void *user, json_t *object, const char *line, size_t n, lst_error *err),
                            void *user, lst_error *err)
{
    size_t number = 1;
    for (const char *line = text, *end; (end = memchr(line, '\n', n_bytes - (size_t)(line - text)));
         line = end + 1, number++) {
        json_t *object = parse_line(line, (size_t)(end - line));
        if (!object)
            return lst__fail(err, LST_ERR_FORMAT, "%s line %zu: not a JSON object with a whole \"step\"", path, number);
        lst_status status = visit(user, object, line, (size_t)(end + 1 - line), err);
        json_decref(object);
        if (status != LST_OK)
            return status;
    }
    return LST_OK;
}

typedef struct keep_lines {
    lst_writer *writer;
    int64_t last_step;
} keep_lines;

static lst_status keep_line(void *user, json_t *object, const char *line, size_t n, lst_error *err)
{
    keep_lines *keep = user;
    if (json_integer_value(json_object_get(object, "step")) > keep->last_step)
        return LST_OK;
    return lst__writer_write(keep->writer, line, n, err);
}

/* Writes the file anew with the lines up to last_step. */
static lst_status rewrite(const char *path, int64_t last_step, lst_error *err)
{
    lst_map map = {NULL, 0};
    lst_status status = LST_OK;
    if (last_step > 0 && lst__is_file(path))
        status = lst__map_open(path, &map, err);
    keep_lines keep = {NULL, last_step};
    if (status == LST_OK)
        status = lst__writer_open(&keep.writer, path, err);
    if (status == LST_OK && map.n_bytes > 0)
        status = each_line(path, (const char *)map.data, map.n_bytes, keep_line, &keep, err);
    lst__map_close(&map);
    if (status != LST_OK) {
        lst__writer_abort(keep.writer);
        return status;
    }
    return lst__writer_commit(keep.writer, err);
}

lst_status train_log_open(train_log **out, const char *path, int64_t last_step, lst_error *err)
{
    lst_status status = rewrite(path, last_step, err);
    if (status != LST_OK)
        return status;
    train_log *log = lst__alloc(1, sizeof *log);
    if (log)
        log->path = lst__strdup(path);
    if (!log || !log->path) {
        lst__free(log);
        return lst__fail_memory(err, "the metrics file's handle", sizeof *log);
    }
    log->file = fopen(path, "ae");
    if (!log->file) {
        status = lst__fail(err, LST_ERR_IO, "cannot open %s: %s", path, strerror(errno));
        train_log_close(log);
        return status;
    }
    *out = log;
    return LST_OK;
}

void train_log_close(train_log *log)
{
    if (!log)
        return;
    if (log->file)
        fclose(log->file);
    lst__free(log->path);
    lst__free(log);
}

static void put_number(FILE *file, const char *name, double value)
{
    if (isfinite(value))
        fprintf(file, ",\"%s\":%.17g", name, value);
    else
        fprintf(file, ",\"%s\":null", name);
}

static lst_status end_line(train_log *log, lst_error *err)
{
    fputs("}\n", log->file);
    if (fflush(log->file) != 0 || ferror(log->file))
        return lst__fail(
            err, LST_ERR_IO,
            "cannot write %s: %s. Free some space, then `leanstep resume` goes on from the last checkpoint.", log->path,
            strerror(errno));
    return LST_OK;
}

lst_status train_log_step(train_log *log, const train_metric *metric, lst_error *err)
{
    FILE *file = log->file;
    fprintf(file, "{\"step\":%lld", (long long)metric->step);
    put_number(file, "loss", metric->loss);
    put_number(file, "grad_norm", metric->grad_norm);
    put_number(file, "lr", metric->lr);
    fprintf(file, ",\"tokens\":%llu,\"tokens_per_s\":%.1f,\"seconds\":%.3f", (unsigned long long)metric->tokens,
            metric->tokens_per_s, metric->seconds);
    if (metric->loss_scale != 1)
        put_number(file, "loss_scale", metric->loss_scale);
    if (metric->skipped)
        fprintf(file, ",\"skipped\":\"%s\"", metric->skipped);
    return end_line(log, err);
}

lst_status train_log_valid(train_log *log, int64_t step, double valid_loss, lst_error *err)
{
    fprintf(log->file, "{\"step\":%lld", (long long)step);
    put_number(log->file, "valid_loss", valid_loss);
    put_number(log->file, "valid_perplexity", exp(valid_loss));
    return end_line(log, err);
}

/* A curve that halves its resolution each time it is full: neighbours become their mean. */
typedef struct curve {
    train_point *points;
    size_t n, stride, n_pending;
    train_point pending; /* sums */
} curve;

static void curve_add(curve *c, double step, double loss)
{
    c->pending.step += step;
    c->pending.loss += loss;
    if (++c->n_pending < c->stride)
        return;
    if (c->n == TRAIN_MAX_POINTS) {
        for (size_t i = 0; i < TRAIN_MAX_POINTS / 2; i++) {
            c->points[i].step = (c->points[2 * i].step + c->points[2 * i + 1].step) / 2;
            c->points[i].loss = (c->points[2 * i].loss + c->points[2 * i + 1].loss) / 2;
        }
        c->n = TRAIN_MAX_POINTS / 2;
        c->stride *= 2;
        return; /* the pending sum waits for its second half */
    }
    c->points[c->n++] = (train_point){c->pending.step / (double)c->n_pending, c->pending.loss / (double)c->n_pending};
    c->pending = (train_point){0, 0};
    c->n_pending = 0;
}

typedef struct reading {
    train_metrics *metrics;
    curve train, valid;
    double rate_sum;
    size_t n_rates;
} reading;

static lst_status read_line(void *user, json_t *object, const char *line, size_t n, lst_error *err)
{
    reading *r = user;
    train_metrics *m = r->metrics;
    (void)line, (void)n, (void)err;
    double step = (double)json_integer_value(json_object_get(object, "step"));
    const json_t *loss = json_object_get(object, "loss"), *valid = json_object_get(object, "valid_loss");
    const json_t *rate = json_object_get(object, "tokens_per_s");
    m->n_skipped += json_object_get(object, "skipped") != NULL;
    m->last_step = (int64_t)step;
    if (json_is_number(rate)) {
        r->rate_sum += json_number_value(rate);
        r->n_rates++;
    }
    if (json_is_number(loss)) {
        m->last_loss = json_number_value(loss);
        if (isnan(m->first_loss))
            m->first_loss = m->last_loss;
        curve_add(&r->train, step, m->last_loss);
    }
    if (json_is_number(valid)) {
        m->last_valid = json_number_value(valid);
        if (isnan(m->first_valid))
            m->first_valid = m->last_valid;
        if (!(m->best_valid <= m->last_valid))
            m->best_valid = m->last_valid;
        curve_add(&r->valid, step, m->last_valid);
    }
    return LST_OK;
}

lst_status train_metrics_read(train_metrics *out, const char *path, lst_error *err)
{
    lst_map map;
    lst_status status = lst__map_open(path, &map, err);
    if (status != LST_OK)
        return status;
    memset(out, 0, sizeof *out);
    out->first_loss = out->last_loss = out->first_valid = out->last_valid = out->best_valid = NAN;
    reading r = {out, {out->train, 0, 1, 0, {0, 0}}, {out->valid, 0, 1, 0, {0, 0}}, 0, 0};
    if (map.n_bytes > 0)
        status = each_line(path, (const char *)map.data, map.n_bytes, read_line, &r, err);
    lst__map_close(&map);
    out->n_train = r.train.n;
    out->n_valid = r.valid.n;
    out->tokens_per_s = r.n_rates ? r.rate_sum / (double)r.n_rates : 0;
    return status;
}
