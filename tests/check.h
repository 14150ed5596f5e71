/* check.h - cmocka with values in its messages, and the data folder that may be absent. */
#ifndef CHECK_H
#define CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "muc/status.h"

/* a note among TAP lines */
#define print_message(...) (print_message)("# " __VA_ARGS__)

#define CHECK(condition) assert_true(condition)
#define CHECK_EQ(a, b) assert_int_equal((a), (b))
#define CHECK_OK(ctx, call) \
    do { \
        muc_status check_ = (call); \
        if (check_ != MUC_OK) \
            fail_msg("%s: %s", muc_status_name(check_), muc_error_message(ctx)); \
    } while (0)
/* the call must fail with status, and the message must hold the fragment */
#define CHECK_FAILS(ctx, status, fragment, call) \
    do { \
        muc_status check_ = (call); \
        CHECK_EQ(check_, (status)); \
        if (!strstr(muc_error_message(ctx), fragment)) \
            fail_msg("message '%s' lacks '%s'", muc_error_message(ctx), fragment); \
        muc_error_clear(ctx); \
    } while (0)

/* Whether to run less of what repeats itself: under sanitizers, where a run is slow and its second
 * round touches the memory of the first. */
static inline int brief(void)
{
    const char *slow = getenv("MUC_TESTS_SLOW");

    return slow && strcmp(slow, "0") == 0;
}

/* The path of a file of the shared data, or the test is skipped with a message. */
static inline const char *shared_data(const char *path)
{
    static char full[8][512];
    static unsigned next;
    char *out = full[next++ % 8];

    snprintf(out, sizeof(full[0]), "../shared/data/%s", path);
    if (access(out, R_OK) != 0) {
        print_message("skipped: %s is not at hand\n", out);
        skip();
    }
    return out;
}

#endif
