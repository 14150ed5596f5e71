/* progress_bar.c - shows on a terminal or in a log how far a long step is and how long it will
 * take. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/system.h"

enum { FIRST_MS = 1000, AGAIN_MS = 100, LINE_MS = 10000, BAR = 30 };

/* Steps may report from several threads. */
static struct {
    muc_lock lock;
    char step[96];
    uint64_t started_ms, drawn_ms, first; /* units that were done when it started */
    bool drawn;
} bar = { .lock = MUC_LOCK_OPEN };

static uint64_t now_ms(void)
{
    return muc_nanoseconds() / 1000000;
}

static void wipe(void)
{
    if (bar.drawn)
        fprintf(stderr, "\r\033[K");
    bar.drawn = false;
}

/* a step of the same name may follow */
static void end_step(void)
{
    wipe();
    bar.step[0] = '\0';
}

/* "45 s", "3 min 5 s" or "2 h 10 min" */
static void print_seconds(uint64_t seconds)
{
    static const struct {
        uint64_t seconds;
        const char *unit;
    } units[] = { { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    unsigned u = seconds >= 3600 ? 0 : seconds >= 60 ? 1 : 2;

    fprintf(stderr, "%llu %s", (unsigned long long)(seconds / units[u].seconds), units[u].unit);
    if (u < 2)
        fprintf(stderr, " %llu %s",
                (unsigned long long)(seconds % units[u].seconds / units[u + 1].seconds),
                units[u + 1].unit);
}

/* what is left, if it goes on as it went */
static void print_rest(uint64_t done, uint64_t total, uint64_t milliseconds)
{
    double rest;

    if (done <= bar.first || done == total)
        return;
    rest = (double)milliseconds / (double)(done - bar.first) * (double)(total - done);
    if (rest > 1e12)
        return;
    fputs(", ", stderr);
    print_seconds((uint64_t)(rest / 1000 + 1));
    fputs(" left", stderr);
}

/* the share that is done, the time it took, and what is left; total 0: the time alone */
static void print_times(uint64_t done, uint64_t total)
{
    uint64_t milliseconds = now_ms() - bar.started_ms;

    if (total)
        fprintf(stderr, "%3u %%, ", (unsigned)(100.0 * (double)done / (double)total));
    print_seconds(milliseconds / 1000);
    if (total)
        print_rest(done, total, milliseconds);
}

static void draw(uint64_t done, uint64_t total)
{
    unsigned filled;

    done = done < total ? done : total;
    fprintf(stderr, "\r\033[K%s ", bar.step);
    if (total) {
        filled = (unsigned)((double)done / (double)total * BAR);
        fprintf(stderr, "[%s", cli_style(stderr, CLI_GREEN));
        for (unsigned i = 0; i < BAR; i++)
            fputc(i < filled ? '#' : ' ', stderr);
        fprintf(stderr, "%s] ", cli_style(stderr, CLI_PLAIN));
    }
    print_times(done, total);
    if (!total) /* what a child that is waited for writes goes over it */
        fputc('\r', stderr);
    fflush(stderr);
    bar.drawn = true;
}

/* what follows a colon are figures that change as the step goes on */
static bool is_same_step(const char *step)
{
    size_t name = strcspn(step, ":");

    return name == strcspn(bar.step, ":") && strncmp(step, bar.step, name) == 0;
}

/* bar.lock is held; whether the step is another than before */
static bool take_step(const char *name, uint64_t now, uint64_t done)
{
    char step[sizeof(bar.step)];
    bool is_new;

    muc_visible(name, step, sizeof(step));
    is_new = !is_same_step(step);
    if (is_new) {
        wipe();
        bar.started_ms = now;
        bar.first = done;
    }
    memcpy(bar.step, step, sizeof(step));
    return is_new;
}

static void progress(void *arg, const char *name, uint64_t done, uint64_t total)
{
    uint64_t now = now_ms();

    (void)arg;
    muc_lock_take(&bar.lock);
    take_step(name, now, done);
    if (now - bar.started_ms >= FIRST_MS && now - bar.drawn_ms >= AGAIN_MS) {
        draw(done, total);
        bar.drawn_ms = now;
    }
    if (total && done >= total)
        end_step();
    muc_lock_give(&bar.lock);
}

/* in a log: a line at a step's begin and end, and now and then */
static void progress_lines(void *arg, const char *name, uint64_t done, uint64_t total)
{
    uint64_t now = now_ms();

    (void)arg;
    muc_lock_take(&bar.lock);
    if (take_step(name, now, done) || (total && done >= total) || now - bar.drawn_ms >= LINE_MS) {
        fprintf(stderr, "%s ", bar.step);
        print_times(done, total);
        fputc('\n', stderr);
        bar.drawn_ms = now;
    }
    if (total && done >= total)
        end_step();
    muc_lock_give(&bar.lock);
}

void cli_show_progress(muc_context *ctx, bool asked)
{
    if (cli_is_terminal(stderr))
        muc_context_set_progress(ctx, progress, NULL);
    else if (asked)
        muc_context_set_progress(ctx, progress_lines, NULL);
}

void cli_end_progress(void)
{
    muc_lock_take(&bar.lock);
    wipe();
    muc_lock_give(&bar.lock);
}
