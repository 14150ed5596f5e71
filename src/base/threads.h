/* threads.h - one loop, several threads, the same result at any count. */
#ifndef MUC_THREADS_H
#define MUC_THREADS_H

#include "base/base.h"

/* Runs body(arg, i) for every i in 0..count-1, each exactly once, on up to the context's thread
 * count. Bodies must write to disjoint places. Returns the status of the lowest i that failed. The
 * threads wait for the next loop; a body's own loop runs in the body's thread. */
typedef muc_status muc_parallel_body(void *arg, size_t i);
muc_status muc_parallel_for(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg);

/* The same for a loop of microseconds, of which many follow each other: threads that wait for one a
 * little longer come at once, those that sleep are woken only now and then. */
muc_status muc_parallel_brief(muc_context *ctx, size_t count, muc_parallel_body *body, void *arg);

#endif
