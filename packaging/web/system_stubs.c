/* system_stubs.c - calls of the system that a page has not: each says that there is no such thing.
 */
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>

int __sched_cpucount(size_t size, const cpu_set_t *set);

int __sched_cpucount(size_t size, const cpu_set_t *set)
{
    (void)size;
    (void)set;
    return 1;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    (void)process;
    (void)size;
    (void)set;
    errno = ENOSYS;
    return -1;
}

int madvise(void *at, size_t size, int advice)
{
    (void)at;
    (void)size;
    (void)advice;
    return 0;
}

int sched_getcpu(void)
{
    errno = ENOSYS;
    return -1;
}

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
    (void)visit;
    (void)data;
    return 0;
}

int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[],
                 char *const environment[])
{
    (void)child;
    (void)file;
    (void)actions;
    (void)attributes;
    (void)words;
    (void)environment;
    return ENOSYS;
}
