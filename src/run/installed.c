/* installed.c - finds where muc was installed, or built, from where its code was loaded. */
#include "run/installed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/file_system.h"
#include "base/system.h"

enum { MOST_PATH = 4096 };

static char data_folder[MOST_PATH], builtin_folder[MOST_PATH];

static void find_data_folder(void)
{
    static const char *const ups[] = { "", "/..", "/../.." };
    char *own = muc_own_file(), *slash = own ? strrchr(own, '/') : NULL;

    for (size_t i = 0; slash && i < MUC_COUNT(ups); i++) {
        int length = snprintf(data_folder, sizeof(data_folder), "%.*s%s/" MUC_DATA,
                              (int)(slash - own), own, ups[i]);

        if (length < (int)sizeof(data_folder) && muc_path_is_dir(data_folder)) {
            free(own);
            return;
        }
    }
    free(own);
    snprintf(data_folder, sizeof(data_folder), "%s", MUC_PREFIX "/" MUC_DATA);
}

static void find_folders(void)
{
    static muc_lock lock = MUC_LOCK_OPEN;

    muc_lock_take(&lock);
    if (!data_folder[0]) {
        find_data_folder();
        snprintf(builtin_folder, sizeof(builtin_folder), "%.*s/models/rescue", MOST_PATH - 20,
                 data_folder);
    }
    muc_lock_give(&lock);
}

const char *muc_data_folder(void)
{
    find_folders();
    return data_folder;
}

bool muc_build_number(uint64_t *out)
{
    char *own = muc_own_file();
    muc_file_info info;
    bool found = own && muc_info_of_path(own, &info);

    free(own);
    if (found) {
        const uint64_t facts[] = { info.bytes, info.inode, info.modified };

        *out = muc_hash(MUC_HASH_BEGIN, facts, sizeof(facts));
    }
    return found;
}

const char *muc_builtin_folder(void)
{
    find_folders();
    return builtin_folder;
}
