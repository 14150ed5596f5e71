/* signals_posix.c - the message for a file that shrinks under our feet, and what is cleared away
 * when a signal ends the program. */
#include "base/system.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "muc/status.h"

/* what ends a program, unless whoever started it lets it ignore that */
static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGXCPU };

static void (*before_the_end)(void);
static volatile sig_atomic_t clears_away, file_shrank, pipe_broke;

/* another thread does the rest: a handler could remove nothing */
static void on_bus_error(int number)
{
    static const char sentence[] = "muc: a file shrank, or its disk failed, while it was read\n";

    (void)number;
    if (write(STDERR_FILENO, sentence, sizeof(sentence) - 1) < 0)
        _exit(MUC_BUG);
    file_shrank = 1;
    if (!clears_away || kill(getpid(), SIGALRM) != 0)
        _exit(MUC_IO);
    for (;;)
        pause();
}

static void on_broken_pipe(int number)
{
    (void)number;
    pipe_broke = 1;
}

static void end_by(int number)
{
    sigset_t mine;

    signal(number, SIG_DFL);
    sigemptyset(&mine);
    sigaddset(&mine, number);
    pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
    kill(getpid(), number);
}

/* waits for one of these, in a thread of its own */
static void *clear_away(void *arg)
{
    const sigset_t *ending = arg;
    int number;

    if (sigwait(ending, &number) != 0)
        return NULL;
    before_the_end();
    muc_remove_temporaries();
    if (file_shrank)
        _exit(MUC_IO);
    end_by(number);
    return NULL;
}

static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void muc_catch_signals(void (*last)(void))
{
    const struct sigaction bus = { .sa_handler = on_bus_error };
    const struct sigaction broken = { .sa_handler = on_broken_pipe, .sa_flags = SA_RESTART };
    static sigset_t ending;
    pthread_t thread;

    before_the_end = last;
    sigemptyset(&ending);
    sigaddset(&ending, SIGALRM);
    for (size_t i = 0; i < sizeof(ending_signals) / sizeof(*ending_signals); i++)
        if (!is_ignored(ending_signals[i]))
            sigaddset(&ending, ending_signals[i]);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    clears_away = pthread_create(&thread, NULL, clear_away, &ending) == 0;
    if (clears_away)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
    sigaction(SIGBUS, &bus, NULL);
    if (!is_ignored(SIGPIPE))
        sigaction(SIGPIPE, &broken, NULL);
    signal(SIGXFSZ, SIG_IGN); /* the write fails instead */
}

void muc_end_by_broken_pipe(void)
{
    if (pipe_broke)
        end_by(SIGPIPE);
}
