/* installed.c - finds where muc was installed, or built, from where its code was loaded. */
#include "run/installed.h"

#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/file.h"

static char data_folder[PATH_MAX];

/* the path of this program, also where no /proc is mounted */
static bool take_program(char *path)
{
    const char *called = (const char *)(uintptr_t)getauxval(AT_EXECFN);

    return realpath("/proc/self/exe", path) || (called && realpath(called, path));
}

/* of dl_iterate_phdr: writes the path of the file that holds this function, and ends the search */
static int take_own_file(struct dl_phdr_info *file, size_t size, void *path)
{
    uintptr_t here = (uintptr_t)take_own_file;

    (void)size;
    for (size_t i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && here - (file->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return (*file->dlpi_name ? realpath(file->dlpi_name, path) != NULL : take_program(path))
                       ? 1
                       : -1;
    }
    return 0;
}

static void find_data_folder(void)
{
    static const char *const ups[] = { "", "/..", "/../.." };
    char own[PATH_MAX];

    if (dl_iterate_phdr(take_own_file, own) > 0) {
        *strrchr(own, '/') = '\0';
        for (size_t i = 0; i < MUC_COUNT(ups); i++) {
            int length = snprintf(data_folder, sizeof(data_folder), "%s%s/" MUC_DATA, own, ups[i]);

            if (length < (int)sizeof(data_folder) && muc_path_is_dir(data_folder))
                return;
        }
    }
    snprintf(data_folder, sizeof(data_folder), "%s", MUC_PREFIX "/" MUC_DATA);
}

const char *muc_data_folder(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_data_folder);
    return data_folder;
}

bool muc_build_number(uint64_t *out)
{
    char own[PATH_MAX];
    struct stat info;
    uint64_t facts[4];

    if (dl_iterate_phdr(take_own_file, own) <= 0 || stat(own, &info) != 0)
        return false;
    facts[0] = (uint64_t)info.st_size;
    facts[1] = (uint64_t)info.st_ino;
    facts[2] = (uint64_t)info.st_mtim.tv_sec;
    facts[3] = (uint64_t)info.st_mtim.tv_nsec;
    *out = muc_hash(MUC_HASH_BEGIN, facts, sizeof(facts));
    return true;
}
