/* main.c - two networks in one firmware: they share their kernels and, since they run in turn, one
 * arena. Each tests itself. */
#include "first.h"
#include "second.h"
#include "semihosting.h"

static union {
    uint8_t first[FIRST_ARENA_BYTES], second[SECOND_ARENA_BYTES];
} arena __attribute__((aligned(16)));

static int tell(const char *name, int wrong)
{
    host_print(HOST_STDOUT, name);
    host_print(HOST_STDOUT, wrong ? ": wrong\n" : ": right\n");
    return wrong;
}

int main(void)
{
    int wrong;

    host_open();
    wrong = tell("first", first_selftest(&arena));
    return tell("second", second_selftest(&arena)) || wrong;
}
