/* terminal.c - the progress bar, the message for a file that shrinks under our feet, and what is
 * cleared away when a signal ends the program. */
#include "cli/cli.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 1000, AGAIN_MS = 100, BAR = 30 };

/* Steps may report from several threads. */
static struct {
    pthread_mutex_t lock;
    char step[96];
    uint64_t started_ms, drawn_ms;
    bool drawn;
} bar = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void wipe(void)
{
    if (bar.drawn)
        fprintf(stderr, "\r\033[K");
    bar.drawn = false;
}

static void draw(uint64_t done, uint64_t total)
{
    unsigned filled;

    done = done < total ? done : total;
    filled = total ? (unsigned)((double)done / (double)total * BAR) : 0;
    fprintf(stderr, "\r\033[K%s ", bar.step);
    if (total) {
        fputc('[', stderr);
        for (unsigned i = 0; i < BAR; i++)
            fputc(i < filled ? '#' : ' ', stderr);
        fprintf(stderr, "] %3u %%, %llu s", (unsigned)(100.0 * (double)done / (double)total),
                (unsigned long long)((now_ms() - bar.started_ms) / 1000));
    } else {
        fprintf(stderr, "%llu", (unsigned long long)done);
    }
    fflush(stderr);
    bar.drawn = true;
}

/* what follows a colon are figures that change as the step goes on */
static bool is_same_step(const char *step)
{
    size_t name = strcspn(step, ":");

    return name == strcspn(bar.step, ":") && strncmp(step, bar.step, name) == 0;
}

static void progress(void *arg, const char *step, uint64_t done, uint64_t total)
{
    uint64_t now = now_ms();

    (void)arg;
    pthread_mutex_lock(&bar.lock);
    if (!is_same_step(step)) {
        wipe();
        bar.started_ms = now;
    }
    snprintf(bar.step, sizeof(bar.step), "%s", step);
    if (now - bar.started_ms >= FIRST_MS && now - bar.drawn_ms >= AGAIN_MS) {
        draw(done, total);
        bar.drawn_ms = now;
    }
    if (total && done >= total)
        wipe();
    pthread_mutex_unlock(&bar.lock);
}

void cli_show_progress(muc_context *ctx)
{
    if (isatty(STDERR_FILENO))
        muc_context_set_progress(ctx, progress, NULL);
}

void cli_end_progress(void)
{
    pthread_mutex_lock(&bar.lock);
    wipe();
    pthread_mutex_unlock(&bar.lock);
}

static void on_bus_error(int signal)
{
    static const char sentence[] = "muc: a file shrank, or its disk failed, while it was read\n";

    (void)signal;
    if (write(STDERR_FILENO, sentence, sizeof(sentence) - 1) < 0)
        _exit(MUC_BUG);
    _exit(MUC_IO);
}

void cli_catch_shrinking_files(void)
{
    struct sigaction action = { .sa_handler = on_bus_error };

    sigaction(SIGBUS, &action, NULL);
}

/* waits for one of these, in a thread of its own: a handler could remove nothing */
static void *clear_away(void *arg)
{
    const sigset_t *ending = arg;
    sigset_t mine;
    int number;

    if (sigwait(ending, &number) != 0)
        return NULL;
    cli_end_progress();
    muc_remove_temporaries();
    signal(number, SIG_DFL);
    sigemptyset(&mine);
    sigaddset(&mine, number);
    pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
    kill(getpid(), number);
    return NULL;
}

void cli_clear_away_on_signals(void)
{
    static sigset_t ending;
    pthread_t thread;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    if (pthread_create(&thread, NULL, clear_away, &ending) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
}
