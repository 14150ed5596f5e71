/* system.c - clocks and locks, which POSIX threads have on every system. */
#include "base/system.h"

#include <time.h>

#include "base/file_system.h"

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now = { 0 };

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t muc_nanoseconds(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double muc_seconds(void)
{
    return 1e-9 * (double)muc_nanoseconds();
}

uint64_t muc_processor_nanoseconds(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void muc_lock_take(muc_lock *lock)
{
    pthread_mutex_lock(lock);
}

void muc_lock_give(muc_lock *lock)
{
    pthread_mutex_unlock(lock);
}

bool muc_is_standard_output(const char *path)
{
    muc_file_info file, output;

    return muc_info_of_path(path, &file) && file.kind == MUC_PATH_FILE &&
           muc_info_of_open(fileno(stdout), &output) && file.inode == output.inode &&
           file.device == output.device;
}
