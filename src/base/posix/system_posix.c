/* system_posix.c - processors, memory, libraries and streams, by POSIX and Linux. */
#include "base/system.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_system.h"

unsigned muc_processors(void)
{
    cpu_set_t set;
    int n = 0;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

int muc_own_processor(void)
{
    return sched_getcpu();
}

void *muc_aligned_alloc(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

void *muc_alloc_huge(size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *data = bytes <= SIZE_MAX - HUGE_PAGE
                     ? aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE)
                     : NULL;

#ifdef MADV_HUGEPAGE
    if (data)
        madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return data;
}

void muc_aligned_free(void *data)
{
    free(data);
}

/* ---- files of programs ---- */

/* the path of this program, also where no /proc is mounted */
static char *find_program_file(void)
{
    const char *called = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    char *path = realpath("/proc/self/exe", NULL);

    return path || !called ? path : realpath(called, NULL);
}

/* of dl_iterate_phdr: takes the path of the file that holds this function, and ends the search */
static int take_own_file(struct dl_phdr_info *file, size_t size, void *path)
{
    uintptr_t here = (uintptr_t)take_own_file;

    (void)size;
    for (size_t i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && here - (file->dlpi_addr + part->p_vaddr) < part->p_memsz) {
            *(char **)path =
                *file->dlpi_name ? realpath(file->dlpi_name, NULL) : find_program_file();
            return 1;
        }
    }
    return 0;
}

char *muc_own_file(void)
{
    char *path = NULL;

    dl_iterate_phdr(take_own_file, &path);
    return path;
}

void *muc_library_open(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void *muc_library_find(void *library, const char *name)
{
    return dlsym(library, name);
}

const char *muc_library_error(void)
{
    return dlerror();
}

void muc_library_close(void *library)
{
    dlclose(library);
}

void muc_set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* ---- the command ---- */

void muc_begin_program(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
}

void muc_take_path(char *path)
{
    (void)path;
}

bool muc_is_terminal(FILE *stream)
{
    return isatty(fileno(stream));
}

FILE *muc_open_stream(const char *path)
{
    return fopen(path, "rb");
}
