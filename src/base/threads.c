/* threads.c - threads that wait for loops, and take the next index from one atomic counter. */
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/locale.h"
#include "base/system.h"

enum {
    MAX_WORKERS = 64,
    LINE = 64,                 /* bytes */
    SPINS = 10000,             /* looks before a thread sleeps, some two hundred microseconds */
    WAKE_NANOSECONDS = 500000, /* a brief loop wakes sleepers at most so often */
    SOON = 4,
    MOST_ALONE = 256 /* times a wait; see stay_alone */
};

/* The threads stay until the program ends. One loop at a time has them; a loop within it, or beside
 * it in another thread, is run by its caller alone.
 *
 * `open` says which loop it is in its upper half, and how many of its indices nobody has taken in
 * its lower half: whoever takes one lowers it by one. What describes a loop changes while none is
 * left, so that it is of the loop whose index was taken. Those who look for work look at `open`
 * alone, which has a cache line of its own. */
static struct pool {
    _Alignas(LINE) atomic_uint_fast64_t open;
    _Alignas(LINE) atomic_size_t unfinished; /* indices */

    _Alignas(LINE) muc_parallel_body *_Atomic body;
    void *_Atomic arg;
    atomic_size_t count, workers; /* of which 0 is the caller */
    atomic_int processor;         /* the caller's */
    atomic_bool taken;
    size_t threads;                  /* this and what follows are of who has the pool, */
    uint64_t woken;                  /* when a brief loop last woke sleepers */
    uint64_t alone_for, alone_until; /* brief loops were last not shared; are not: */
    bool is_alone;

    pthread_mutex_t lock; /* but for the outcome, which is under the lock */
    pthread_cond_t begun, finished;
    atomic_size_t asleep;
    atomic_bool waits; /* the caller */
    size_t failed_at;  /* count: none */
    muc_status status;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .begun = PTHREAD_COND_INITIALIZER,
           .finished = PTHREAD_COND_INITIALIZER };

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static bool has_work(size_t worker)
{
    return (uint32_t)atomic_load(&pool.open) != 0 && worker < atomic_load(&pool.workers);
}

/* What a worker does; false: there is nothing for it. */
typedef struct item {
    muc_parallel_body *body;
    void *arg;
    size_t i;
} item;

static bool take(size_t worker, item *out)
{
    uint_fast64_t open = atomic_load(&pool.open);

    do {
        if ((uint32_t)open == 0 || worker >= atomic_load(&pool.workers))
            return false;
        *out = (item){ atomic_load(&pool.body), atomic_load(&pool.arg),
                       atomic_load(&pool.count) - (uint32_t)open };
    } while (!atomic_compare_exchange_weak(&pool.open, &open, open - 1));
    return true;
}

static void finish(size_t indices)
{
    if (atomic_fetch_sub(&pool.unfinished, indices) != indices || !atomic_load(&pool.waits))
        return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_signal(&pool.finished);
    pthread_mutex_unlock(&pool.lock);
}

/* What has started ends, nothing new begins. */
static void fail(size_t i, muc_status status)
{
    uint_fast64_t open = atomic_load(&pool.open);

    pthread_mutex_lock(&pool.lock);
    if (i < pool.failed_at) {
        pool.failed_at = i;
        pool.status = status;
    }
    pthread_mutex_unlock(&pool.lock);
    while (!atomic_compare_exchange_weak(&pool.open, &open, open - (uint32_t)open))
        ;
    if ((uint32_t)open != 0)
        finish((uint32_t)open);
}

static void work(size_t worker)
{
    item it;

    while (take(worker, &it)) {
        muc_status status = it.body(it.arg, it.i);

        if (status != MUC_OK)
            fail(it.i, status);
        finish(1);
    }
}

/* What is asked for soon comes sooner to who looks for it than to who sleeps; on the processor of
 * who is to ask, nothing comes to who looks. */
static bool look_for_work(size_t worker)
{
    for (unsigned i = 0; i < SPINS; i++) {
        if (has_work(worker))
            return true;
        if (i % 64 == 0 && muc_own_processor() == atomic_load(&pool.processor))
            return false;
        pause_briefly();
    }
    return false;
}

static void *serve(void *number)
{
    MUC_IN_C_LOCALE;
    size_t worker = (size_t)(uintptr_t)number;

    for (;;) {
        if (!look_for_work(worker)) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.asleep, 1);
            while (!has_work(worker))
                pthread_cond_wait(&pool.begun, &pool.lock);
            atomic_fetch_sub(&pool.asleep, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        work(worker);
    }
    return NULL;
}

/* To wake a thread takes as long as a brief loop, so that one mostly begins with those that look.
 */
static void wake(bool brief)
{
    uint64_t now;

    if (atomic_load(&pool.asleep) == 0)
        return;
    now = muc_nanoseconds();
    if (brief && now - pool.woken < WAKE_NANOSECONDS)
        return;
    pool.woken = now;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.begun);
    pthread_mutex_unlock(&pool.lock);
}

static bool is_to_be_alone(void)
{
    if (pool.is_alone && muc_nanoseconds() >= pool.alone_until)
        pool.is_alone = false;
    return pool.is_alone;
}

/* A thread that lets a brief loop wait has lost its processor to another program. While that goes
 * on it is of no help: the next loops are run alone for as long as this one waited, and if it comes
 * again soon for four times as long as the last time. */
static void stay_alone(uint64_t now, uint64_t waited)
{
    uint64_t soon = SOON * waited > pool.alone_for ? SOON * waited : pool.alone_for;
    uint64_t span = now - pool.alone_until < soon ? 4 * pool.alone_for : 0;

    span = span < waited ? waited : span;
    pool.alone_for = span < MOST_ALONE * waited ? span : MOST_ALONE * waited;
    pool.alone_until = now + pool.alone_for;
    pool.is_alone = true;
}

/* before `open` says that there is something to do */
#define set(member, value) atomic_store_explicit(&pool.member, value, memory_order_relaxed)

/* False: another loop has the pool. Fewer threads than asked for are not a failure. */
static bool begin(size_t count, size_t workers, muc_parallel_body *body, void *arg, bool brief)
{
    pthread_t thread;

    if (atomic_exchange(&pool.taken, true))
        return false;
    if (brief && is_to_be_alone()) {
        atomic_store(&pool.taken, false);
        return false;
    }
    while (pool.threads + 1 < workers &&
           pthread_create(&thread, NULL, serve, (void *)(uintptr_t)(pool.threads + 1)) == 0) {
        pthread_detach(thread);
        pool.threads++;
    }
    pool.failed_at = count;
    pool.status = MUC_OK;
    set(body, body);
    set(arg, arg);
    set(count, count);
    set(workers, workers);
    set(processor, muc_own_processor());
    set(unfinished, count);
    atomic_store(&pool.open, ((atomic_load(&pool.open) >> 32) + 1) << 32 | count);
    wake(brief);
    return true;
}

/* Whoever has begun ends. */
static muc_status end(bool brief)
{
    uint64_t start, now;
    muc_status status;

    for (unsigned i = 0; i < SPINS && atomic_load(&pool.unfinished) > 0; i++)
        pause_briefly();
    if (atomic_load(&pool.unfinished) > 0) {
        start = muc_nanoseconds();
        pthread_mutex_lock(&pool.lock);
        atomic_store(&pool.waits, true);
        while (atomic_load(&pool.unfinished) > 0)
            pthread_cond_wait(&pool.finished, &pool.lock);
        atomic_store(&pool.waits, false);
        pthread_mutex_unlock(&pool.lock);
        now = muc_nanoseconds();
        if (brief)
            stay_alone(now, now - start);
    }
    status = pool.status;
    atomic_store(&pool.taken, false);
    return status;
}

static muc_status run_alone(size_t count, muc_parallel_body *body, void *arg)
{
    for (size_t i = 0; i < count; i++)
        MUC_TRY(body(arg, i));
    return MUC_OK;
}

static muc_status run_loop(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg,
                           bool brief)
{
    MUC_IN_C_LOCALE;
    size_t workers = muc_context_threads(ctx);

    if (workers > count)
        workers = count;
    if (workers > MAX_WORKERS)
        workers = MAX_WORKERS;
    if (workers < 2 || count > UINT32_MAX || !begin(count, workers, body, arg, brief))
        return run_alone(count, body, arg);
    work(0);
    return end(brief);
}

muc_status muc_parallel_for(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg)
{
    return run_loop(ctx, count, body, arg, false);
}

muc_status muc_parallel_brief(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg)
{
    return run_loop(ctx, count, body, arg, true);
}
