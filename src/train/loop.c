/* SPDX-License-Identifier: MIT */
#include "train/loop.h"

#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

/* Rates are means over about the last this many seconds: steady to read, quick to follow. */
#define RATE_SECONDS 5.0

typedef struct pace {
    uint64_t start_ns;
    int64_t start_step;
    double rate; /* tokens per second */
} pace;

static double since(uint64_t start_ns)
{
    return (double)(lst__clock_ns() - start_ns) * 1e-9;
}

static void update_rate(pace *p, size_t tokens, double seconds)
{
    double now = (double)tokens / seconds;
    double weight = p->rate > 0 ? 1 - exp(-seconds / RATE_SECONDS) : 1;
    p->rate += weight * (now - p->rate);
}

static void tell(const train_run *run, const train_observer *observer, const pace *p, const train_step *step)
{
    lst_memory_use use = {0};
    (void)!lst__memory_use(&use, NULL);
    const int64_t total = run->settings.schedule.total_steps, done = run->step - p->start_step;
    train_progress progress = {.step = run->step,
                               .total_steps = total,
                               .loss = step->loss,
                               .valid_loss = run->last_valid,
                               .lr = lst_optim_group(run->engine->optim, 0)->lr,
                               .grad_norm = step->grad_norm,
                               .tokens_per_s = p->rate,
                               .seconds_left = since(p->start_ns) / (double)done * (double)(total - run->step),
                               .memory_bytes = use.anon_peak_bytes,
                               .skipped = step->skipped};
    observer->on_step(observer->user, &progress);
}

static lst_status validate(train_run *run, const train_observer *observer, lst_error *err)
{
    double loss;
    lst_status status = train_run_validate(run, &loss, err);
    if (status == LST_OK)
        observer->on_valid(observer->user, run->step, loss);
    return status;
}

static lst_status save(train_run *run, const train_observer *observer, lst_error *err)
{
    if (run->saved_step == run->step)
        return LST_OK;
    lst_status status = train_run_save(run, err);
    if (status == LST_OK)
        observer->on_save(observer->user, run->step);
    return status;
}

static bool due(size_t every, int64_t step)
{
    return every > 0 && step % (int64_t)every == 0;
}

/* One step and what is due after it. */
static lst_status advance(train_run *run, const train_observer *observer, pace *p, lst_error *err)
{
    const train_settings *s = &run->settings;
    train_step step;
    uint64_t start = lst__clock_ns();
    lst_status status = train_run_step(run, &step, err);
    if (status != LST_OK)
        return status;
    update_rate(p, step.counted, since(start));
    bool last = run->step == s->schedule.total_steps;
    if (last || due(s->eval_every, run->step))
        status = validate(run, observer, err);
    if (status == LST_OK && (last || due(s->save_every, run->step)))
        status = save(run, observer, err);
    if (status == LST_OK)
        tell(run, observer, p, &step);
    return status;
}

lst_status train_loop(train_run *run, const train_observer *observer, lst_error *err)
{
    const int64_t total = run->settings.schedule.total_steps;
    pace p = {lst__clock_ns(), run->step, 0};
    lst_status status = run->step == 0 ? validate(run, observer, err) : LST_OK;
    while (status == LST_OK && run->step < total) {
        status = advance(run, observer, &p, err);
        if (status == LST_OK && run->step < total && observer->stop(observer->user)) {
            status = save(run, observer, err);
            if (status == LST_OK)
                status =
                    lst__fail(err, LST_ERR_INTERRUPTED, "stopped after step %lld of %lld; `leanstep resume %s` goes on",
                              (long long)run->step, (long long)total, run->folder);
        }
    }
    return status;
}
