/* context_fixture.h - a context for the tests of a file: ctx, with CONTEXT_THREADS threads, 1
 * unless the file says otherwise. Included last, for arguments in other headers are called ctx too.
 */
#ifndef CONTEXT_FIXTURE_H
#define CONTEXT_FIXTURE_H

#include "base/base.h"
#include "check.h"

#ifndef CONTEXT_THREADS
#define CONTEXT_THREADS 1
#endif

static muc_context *ctx;

static inline int new_context(void **state)
{
    (void)state;
    ctx = muc_context_new(CONTEXT_THREADS);
    return ctx ? 0 : -1;
}

static inline int free_context(void **state)
{
    (void)state;
    muc_context_free(ctx);
    return 0;
}

#endif
