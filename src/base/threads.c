/* threads.c - threads that wait for loops, and take the next index from one atomic counter. */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "base/locale.h"

/* SPINS: looks before a thread sleeps, some ten microseconds; a brief loop wakes sleepers at most
 * so often. */
enum { MAX_WORKERS = 64, SPINS = 2000, WAKE_NANOSECONDS = 500000 };

typedef struct work {
    muc_parallel_body *body;
    void *arg;
    size_t count;
    atomic_size_t next;
    pthread_mutex_t lock;
    size_t failed_at; /* count: none */
    muc_status status;
    atomic_uint inside; /* threads of the pool that are at it; changed under its lock */
} work;

/* They stay until the program ends. One loop at a time has them; a loop within it, or beside it in
 * another thread, is run by its caller alone. */
static struct pool {
    pthread_mutex_t lock;
    pthread_cond_t begun, left;
    work *loop;          /* or NULL */
    atomic_size_t seats; /* how many more threads it takes; changed under the lock */
    size_t threads, asleep;
    uint64_t woken; /* when a brief loop last woke sleepers */
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .begun = PTHREAD_COND_INITIALIZER,
           .left = PTHREAD_COND_INITIALIZER };

unsigned muc_processor_count(void)
{
    cpu_set_t set;
    int n = 0;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

static void run(work *w)
{
    for (;;) {
        size_t i = atomic_fetch_add(&w->next, 1);
        muc_status status;

        if (i >= w->count)
            return;
        status = w->body(w->arg, i);
        if (status == MUC_OK)
            continue;
        pthread_mutex_lock(&w->lock);
        if (i < w->failed_at) {
            w->failed_at = i;
            w->status = status;
        }
        pthread_mutex_unlock(&w->lock);
        atomic_store(&w->next, w->count); /* what has started ends, nothing new begins */
    }
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* What is asked for soon comes sooner to who looks for it than to who sleeps. */
static void look_for_seats(void)
{
    for (unsigned i = 0; i < SPINS && atomic_load(&pool.seats) == 0; i++)
        pause_briefly();
}

static void *serve(void *unused)
{
    MUC_IN_C_LOCALE;

    for (;;) {
        work *w;

        look_for_seats();
        pthread_mutex_lock(&pool.lock);
        while (pool.seats == 0) {
            pool.asleep++;
            pthread_cond_wait(&pool.begun, &pool.lock);
            pool.asleep--;
        }
        w = pool.loop;
        pool.seats--;
        w->inside++;
        pthread_mutex_unlock(&pool.lock);
        run(w);
        pthread_mutex_lock(&pool.lock);
        if (--w->inside == 0)
            pthread_cond_broadcast(&pool.left); /* callers of two loops may wait */
        pthread_mutex_unlock(&pool.lock);
    }
    return unused;
}

static uint64_t nanoseconds(void)
{
    struct timespec now = { 0 };

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* To wake a thread takes as long as a brief loop, so that one mostly begins with those that look.
 */
static bool is_time_to_wake(bool brief)
{
    uint64_t now = brief ? nanoseconds() : 0;

    if (pool.asleep == 0 || (brief && now - pool.woken < WAKE_NANOSECONDS))
        return false;
    pool.woken = now;
    return true;
}

/* False: another loop has the pool. Fewer threads than asked for are no failure. */
static bool share(work *w, size_t helpers, bool brief)
{
    pthread_t thread;
    bool is_free;

    pthread_mutex_lock(&pool.lock);
    is_free = !pool.loop;
    if (is_free) {
        while (pool.threads < helpers && pthread_create(&thread, NULL, serve, NULL) == 0) {
            pthread_detach(thread);
            pool.threads++;
        }
        pool.loop = w;
        pool.seats = helpers;
        if (is_time_to_wake(brief))
            pthread_cond_broadcast(&pool.begun);
    }
    pthread_mutex_unlock(&pool.lock);
    return is_free;
}

/* Nobody begins now; whoever has begun ends. */
static void leave(work *w)
{
    pthread_mutex_lock(&pool.lock);
    pool.loop = NULL;
    pool.seats = 0;
    pthread_mutex_unlock(&pool.lock);
    for (unsigned i = 0; i < SPINS && atomic_load(&w->inside) > 0; i++)
        pause_briefly();
    pthread_mutex_lock(&pool.lock);
    while (w->inside > 0)
        pthread_cond_wait(&pool.left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

static muc_status run_loop(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg,
                           bool brief)
{
    MUC_IN_C_LOCALE;
    work w = { .body = body, .arg = arg, .count = count, .failed_at = count, .status = MUC_OK };
    size_t workers = muc_context_threads(ctx);
    bool shared;

    if (workers > count)
        workers = count;
    if (workers > MAX_WORKERS)
        workers = MAX_WORKERS;
    atomic_init(&w.next, 0);
    atomic_init(&w.inside, 0);
    pthread_mutex_init(&w.lock, NULL);
    shared = workers > 1 && share(&w, workers - 1, brief);
    run(&w);
    if (shared)
        leave(&w);
    pthread_mutex_destroy(&w.lock);
    return w.status;
}

muc_status muc_parallel_for(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg)
{
    return run_loop(ctx, count, body, arg, false);
}

muc_status muc_parallel_brief(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg)
{
    return run_loop(ctx, count, body, arg, true);
}
