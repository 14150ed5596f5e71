/* file_system_posix.c - asks POSIX for files and folders. */
#include "base/file_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool take(bool read, const struct stat *info, muc_file_info *out)
{
    if (!read)
        return false;
    *out = (muc_file_info){
        .device = info->st_dev,
        .inode = info->st_ino,
        .bytes = (uint64_t)info->st_size,
        .modified = (uint64_t)info->st_mtim.tv_sec * 1000000000u + (uint64_t)info->st_mtim.tv_nsec,
        .kind = S_ISREG(info->st_mode)   ? MUC_PATH_FILE
                : S_ISDIR(info->st_mode) ? MUC_PATH_FOLDER
                                         : MUC_PATH_OTHER,
    };
    return true;
}

bool muc_info_of_path(const char *path, muc_file_info *out)
{
    struct stat info;

    return take(stat(path, &info) == 0, &info, out);
}

bool muc_info_of_link(const char *path, muc_file_info *out)
{
    struct stat info;

    return take(lstat(path, &info) == 0, &info, out);
}

bool muc_info_of_open(int fd, muc_file_info *out)
{
    struct stat info;

    return take(fstat(fd, &info) == 0, &info, out);
}

int muc_open_to_read(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

int muc_open_to_write(const char *path)
{
    return open(path, O_WRONLY | O_CLOEXEC);
}

void *muc_map(int fd, size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);

    return data == MAP_FAILED ? NULL : data;
}

void muc_unmap(void *data, size_t bytes)
{
    munmap(data, bytes);
}

bool muc_flush_to_disk(int fd)
{
    return fsync(fd) == 0;
}

void muc_begin_flush(int fd)
{
#ifdef __linux__
    (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd;
#endif
}

int muc_make_new_file(char *template)
{
    return mkostemp(template, O_CLOEXEC);
}

bool muc_make_new_folder(char *template)
{
    return mkdtemp(template) != NULL;
}

void muc_give_usual_rights(const char *path, bool is_folder)
{
    mode_t mask = umask(0);

    umask(mask);
    chmod(path, (is_folder ? 0777 : 0666) & ~mask);
}

bool muc_may_write_in(const char *folder)
{
    return access(folder, W_OK | X_OK) == 0;
}

bool muc_may_run(const char *path)
{
    return access(path, X_OK) == 0;
}

const char muc_path_separator[] = ":";

bool muc_make_folder(const char *path)
{
    return mkdir(path, 0777) == 0;
}

bool muc_rename(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

bool muc_exchange(const char *one, const char *other)
{
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0)
        return true;
    if (errno == EINVAL)
        errno = ENOSYS;
#else
    (void)one;
    (void)other;
    errno = ENOSYS;
#endif
    return false;
}

bool muc_remove(const char *path)
{
    return remove(path) == 0;
}

char *muc_real_path(const char *path)
{
    return realpath(path, NULL);
}

const char *muc_folder_of_temporaries(void)
{
    return "/tmp";
}

bool muc_is_common_name(const char *path)
{
    (void)path;
    return true;
}

bool muc_visit_names(const char *folder, muc_visit_name *visit, void *arg)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool goes_on = true;

    if (!dir)
        return false;
    while (goes_on && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            goes_on = visit(arg, entry->d_name);
    closedir(dir);
    return goes_on;
}
