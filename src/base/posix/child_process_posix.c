/* child_process_posix.c - starts other programs and waits for them, by POSIX. */
#include "base/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system.h"
#include "base/temporary.h"

extern char **environ;

/* what this program waits for, or ignores, ends a child */
static void let_signals_end(posix_spawnattr_t *attributes)
{
    sigset_t none, ignored;

    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &ignored);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static bool has_ended(pid_t child, int options)
{
    siginfo_t info = { .si_pid = 0 };

    while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT | options) < 0)
        if (errno != EINTR)
            return true;
    return info.si_pid != 0;
}

/* looks again after a tenth more of the time that it took so far, and often enough for a clock */
static void tell_progress(muc_context *ctx, pid_t child, const char *step)
{
    enum { LEAST_NS = 1000000, MOST_NS = 100000000 };
    uint64_t started = muc_nanoseconds();

    while (!has_ended(child, WNOHANG)) {
        uint64_t pause = (muc_nanoseconds() - started) / 10;

        pause = pause < LEAST_NS ? LEAST_NS : pause > MOST_NS ? MOST_NS : pause;
        nanosleep(&(struct timespec){ .tv_nsec = (long)pause }, NULL);
        muc_progress(ctx, step, 0, 0);
    }
    muc_progress(ctx, step, 1, 1);
}

/* step and *code: of muc_child_await */
static void await(muc_context *ctx, pid_t child, const char *step, int *code)
{
    int state = 0;

    if (step && muc_tells_progress(ctx))
        tell_progress(ctx, child, step);
    else
        has_ended(child, 0);
    muc_child_forget(child);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

void muc_child_end(muc_child child)
{
    kill((pid_t)child, SIGTERM);
}

typedef struct starting {
    char *const *words;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
} starting;

static int start(void *arg, muc_child *child)
{
    const starting *s = arg;
    pid_t number;
    int error = posix_spawnp(&number, s->words[0], s->actions, s->attributes, s->words, environ);

    *child = error ? 0 : number;
    return error;
}

muc_status muc_child_await(muc_context *ctx, const char *const *words, const char *in,
                           const char *out, const char *err, const char *step, int *code)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    starting s = { (char *const *)(uintptr_t)words, &actions, &attributes };
    muc_child child;
    int error;

    posix_spawnattr_init(&attributes);
    let_signals_end(&attributes);
    posix_spawn_file_actions_init(&actions);
    if (in)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in, O_RDONLY, 0);
    if (out)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC,
                                         0600);
    if (err)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC,
                                         0600);
    error = muc_child_start(start, &s, &child);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error)
        return muc_fail(ctx, MUC_IO, words[0], MUC_NO_OFFSET, "cannot be started: %s",
                        strerror(error));
    await(ctx, (pid_t)child, step, code);
    return MUC_OK;
}
