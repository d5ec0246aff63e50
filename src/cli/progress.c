/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/interrupt.h"
#include "cli/print.h"

/* A terminal's line changes ten times a second at most; a log gets a line every ten seconds, and the first and last
 * step. */
#define LINE_NS 100000000u
#define PLAIN_NS 10000000000u

void cli_progress_start(cli_progress *progress, cli_progress_mode mode)
{
    memset(progress, 0, sizeof *progress);
    progress->out = stdout;
    if (mode == CLI_PROGRESS_AUTO)
        mode = isatty(STDOUT_FILENO) ? CLI_PROGRESS_LINE : CLI_PROGRESS_PLAIN;
    progress->mode = mode;
}

static void time_text(char *out, size_t n, double seconds)
{
    if (seconds < 0 || !isfinite(seconds)) {
        snprintf(out, n, "?");
        return;
    }
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (s < 100)
        snprintf(out, n, "%lus", s);
    else if (s < 6000)
        snprintf(out, n, "%lum %02lus", s / 60, s % 60);
    else
        snprintf(out, n, "%luh %02lum", s / 3600, s / 60 % 60);
}

static void line_text(char *out, size_t n, const train_progress *p)
{
    char valid[32] = "", memory[32], left[32];
    if (isfinite(p->valid_loss))
        snprintf(valid, sizeof valid, "  valid %.4f", p->valid_loss);
    time_text(left, sizeof left, p->seconds_left);
    snprintf(out, n, "step %lld/%lld  loss %.4f%s  %.0f tokens/s  %s  %s left", (long long)p->step,
             (long long)p->total_steps, p->loss, valid, p->tokens_per_s,
             cli_print_binary(memory, sizeof memory, p->memory_bytes), left);
}

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
}

static void put_number(FILE *out, const char *name, double value)
{
    if (isfinite(value))
        fprintf(out, ",\"%s\":%.17g", name, value);
    else
        fprintf(out, ",\"%s\":null", name);
}

static void print_json(FILE *out, const train_progress *p)
{
    fprintf(out, "{\"step\":%lld,\"total_steps\":%lld", (long long)p->step, (long long)p->total_steps);
    put_number(out, "loss", p->loss);
    put_number(out, "valid_loss", p->valid_loss);
    put_number(out, "lr", p->lr);
    put_number(out, "grad_norm", p->grad_norm);
    put_number(out, "tokens_per_s", p->tokens_per_s);
    put_number(out, "seconds_left", p->seconds_left);
    fprintf(out, ",\"memory_bytes\":%llu", (unsigned long long)p->memory_bytes);
    if (p->skipped)
        fprintf(out, ",\"skipped\":\"%s\"", p->skipped);
    fputs("}\n", out);
}

static void print_line(cli_progress *progress, const train_progress *p)
{
    char text[256];
    line_text(text, sizeof text, p);
    size_t columns = terminal_columns();
    if (strlen(text) >= columns)
        text[columns - 1] = '\0';
    fprintf(progress->out, "\r\x1b[K%s", text);
    progress->line_open = true;
}

static void on_step(void *user, const train_progress *p)
{
    cli_progress *progress = user;
    uint64_t now = lst__clock_ns();
    bool last = p->step == p->total_steps, first = progress->last_ns == 0;
    uint64_t interval = progress->mode == CLI_PROGRESS_LINE ? LINE_NS : PLAIN_NS;
    if (p->skipped && progress->mode != CLI_PROGRESS_JSON && progress->mode != CLI_PROGRESS_NONE) {
        cli_progress_end(progress);
        fprintf(progress->out, "step %lld skipped: %s is not finite\n", (long long)p->step, p->skipped);
    }
    if (progress->mode == CLI_PROGRESS_JSON)
        print_json(progress->out, p);
    else if (progress->mode != CLI_PROGRESS_NONE && (first || last || now - progress->last_ns >= interval)) {
        progress->last_ns = now;
        if (progress->mode == CLI_PROGRESS_LINE) {
            print_line(progress, p);
        } else {
            char text[256];
            line_text(text, sizeof text, p);
            fprintf(progress->out, "%s\n", text);
        }
    }
    fflush(progress->out);
}

static void on_valid(void *user, int64_t step, double valid_loss)
{
    cli_progress *progress = user;
    if (progress->mode == CLI_PROGRESS_PLAIN) {
        fprintf(progress->out, "step %lld  validation loss %.4f, perplexity %.4g\n", (long long)step, valid_loss,
                exp(valid_loss));
        fflush(progress->out);
    }
}

static void on_save(void *user, int64_t step)
{
    cli_progress *progress = user;
    if (progress->mode == CLI_PROGRESS_PLAIN) {
        fprintf(progress->out, "step %lld  checkpoint saved\n", (long long)step);
        fflush(progress->out);
    }
}

static bool stop(void *user)
{
    (void)user;
    return cli_interrupt_signal() != 0;
}

train_observer cli_progress_observer(cli_progress *progress)
{
    return (train_observer){progress, on_step, on_valid, on_save, stop};
}

void cli_progress_end(cli_progress *progress)
{
    if (progress->line_open)
        fputc('\n', progress->out);
    progress->line_open = false;
    fflush(progress->out);
}
