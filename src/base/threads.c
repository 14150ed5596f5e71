/* threads.c - runs a function for each index in several threads, which take the next index from one
 * atomic counter. */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/locale.h"

enum { MAX_WORKERS = 64 };

typedef struct work {
    muc_parallel_body *body;
    void *arg;
    size_t count;
    atomic_size_t next;
    pthread_mutex_t lock;
    size_t failed_at; /* count: none */
    muc_status status;
} work;

unsigned muc_processor_count(void)
{
    cpu_set_t set;
    int n = 0;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

static void *run(void *arg)
{
    MUC_IN_C_LOCALE;
    work *w = arg;

    for (;;) {
        size_t i = atomic_fetch_add(&w->next, 1);
        muc_status status;

        if (i >= w->count)
            return NULL;
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

muc_status muc_parallel_for(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg)
{
    work w = { .body = body, .arg = arg, .count = count, .failed_at = count, .status = MUC_OK };
    pthread_t threads[MAX_WORKERS];
    size_t workers = muc_context_threads(ctx), started = 0;

    if (workers > count)
        workers = count;
    if (workers > MAX_WORKERS)
        workers = MAX_WORKERS;
    atomic_init(&w.next, 0);
    pthread_mutex_init(&w.lock, NULL);
    while (started + 1 < workers && pthread_create(&threads[started], NULL, run, &w) == 0)
        started++;
    run(&w);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&w.lock);
    return w.status;
}
