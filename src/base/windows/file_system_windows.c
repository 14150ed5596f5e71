/* file_system_windows.c - files and folders, by Windows' own calls, which take paths in UTF-16. */
#include "base/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/windows/wide_path.h"

enum { SHARED = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

/* ---- paths ---- */

bool muc_widen(const char *path, WCHAR out[MUC_MOST_PATH])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out, MUC_MOST_PATH))
        return true;
    errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
    return false;
}

char *muc_narrow(const WCHAR *text, bool is_path)
{
    int bytes = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *out = bytes > 0 ? malloc((size_t)bytes) : NULL;

    if (!out)
        return NULL;
    WideCharToMultiByte(CP_UTF8, 0, text, -1, out, bytes, NULL, NULL);
    for (char *p = out; is_path && *p; p++)
        if (*p == '\\')
            *p = '/';
    return out;
}

bool muc_fail_as_windows(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
        errno = ENOENT;
        break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_WRITE_PROTECT:
        errno = EACCES;
        break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
        errno = EEXIST;
        break;
    case ERROR_DIR_NOT_EMPTY:
        errno = ENOTEMPTY;
        break;
    case ERROR_DISK_FULL:
        errno = ENOSPC;
        break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
        errno = ENOMEM;
        break;
    default:
        errno = EIO;
    }
    return false;
}

bool muc_is_common_name(const char *path)
{
    return !strpbrk(path, "\\:"); /* another folder, a drive or a stream of a file */
}

/* ---- what is there ---- */

static HANDLE open_path(const char *path, DWORD rights, DWORD flags)
{
    WCHAR wide[MUC_MOST_PATH];
    HANDLE file;

    if (!muc_widen(path, wide))
        return INVALID_HANDLE_VALUE;
    file = CreateFileW(wide, rights, SHARED, NULL, OPEN_EXISTING,
                       FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
    if (file == INVALID_HANDLE_VALUE)
        muc_fail_as_windows();
    return file;
}

static bool read_info(HANDLE file, muc_file_info *out)
{
    BY_HANDLE_FILE_INFORMATION info;

    *out = (muc_file_info){ .kind = MUC_PATH_OTHER };
    if (GetFileType(file) != FILE_TYPE_DISK)
        return file != INVALID_HANDLE_VALUE;
    if (!GetFileInformationByHandle(file, &info))
        return muc_fail_as_windows();
    out->device = info.dwVolumeSerialNumber;
    out->inode = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
    out->bytes = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    out->modified =
        (uint64_t)info.ftLastWriteTime.dwHighDateTime << 32 | info.ftLastWriteTime.dwLowDateTime;
    if (!(info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT))
        out->kind =
            info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? MUC_PATH_FOLDER : MUC_PATH_FILE;
    return true;
}

static bool read_info_of(const char *path, DWORD flags, muc_file_info *out)
{
    HANDLE file = open_path(path, FILE_READ_ATTRIBUTES, flags);
    bool read = file != INVALID_HANDLE_VALUE && read_info(file, out);

    if (file != INVALID_HANDLE_VALUE)
        CloseHandle(file);
    return read;
}

bool muc_info_of_path(const char *path, muc_file_info *out)
{
    return read_info_of(path, 0, out);
}

bool muc_info_of_link(const char *path, muc_file_info *out)
{
    return read_info_of(path, FILE_FLAG_OPEN_REPARSE_POINT, out);
}

bool muc_info_of_open(int fd, muc_file_info *out)
{
    return read_info((HANDLE)_get_osfhandle(fd), out);
}

static int descriptor_of(HANDLE file, int flags)
{
    int fd = -1;

    if (file == INVALID_HANDLE_VALUE)
        return -1;
    fd = _open_osfhandle((intptr_t)file, flags | _O_BINARY | _O_NOINHERIT);
    if (fd < 0)
        CloseHandle(file);
    return fd;
}

int muc_open_to_read(const char *path)
{
    return descriptor_of(open_path(path, GENERIC_READ, 0), _O_RDONLY);
}

int muc_open_to_write(const char *path)
{
    return descriptor_of(open_path(path, GENERIC_WRITE, 0), _O_WRONLY);
}

void *muc_map(int fd, size_t bytes)
{
    HANDLE mapping =
        CreateFileMappingW((HANDLE)_get_osfhandle(fd), NULL, PAGE_READONLY, 0, 0, NULL);
    void *data = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes) : NULL;

    if (!data)
        muc_fail_as_windows();
    if (mapping)
        CloseHandle(mapping);
    return data;
}

void muc_unmap(void *data, size_t bytes)
{
    (void)bytes;
    UnmapViewOfFile(data);
}

bool muc_may_write_in(const char *folder)
{
    muc_file_info info;

    if (!muc_info_of_path(folder, &info))
        return false;
    errno = ENOTDIR;
    return info.kind == MUC_PATH_FOLDER;
}

bool muc_may_run(const char *path)
{
    char with_end[MUC_MOST_PATH];
    muc_file_info info;

    snprintf(with_end, sizeof(with_end), "%s.exe", path);
    return (muc_info_of_path(with_end, &info) || muc_info_of_path(path, &info)) &&
           info.kind == MUC_PATH_FILE;
}

const char muc_path_separator[] = ";";

char *muc_real_path(const char *path)
{
    static const WCHAR prefix[] = L"\\\\?\\";
    enum { PREFIX = 4 };
    HANDLE file = open_path(path, FILE_READ_ATTRIBUTES, 0);
    WCHAR real[MUC_MOST_PATH];
    DWORD length;

    if (file == INVALID_HANDLE_VALUE)
        return NULL;
    length = GetFinalPathNameByHandleW(file, real, MUC_MOST_PATH, VOLUME_NAME_DOS);
    CloseHandle(file);
    if (length == 0 || length >= MUC_MOST_PATH) {
        muc_fail_as_windows();
        return NULL;
    }
    return muc_narrow(wcsncmp(real, prefix, PREFIX) == 0 && real[PREFIX + 1] == L':' ? real + PREFIX
                                                                                     : real,
                      true);
}

bool muc_visit_names(const char *folder, muc_visit_name *visit, void *arg)
{
    WCHAR pattern[MUC_MOST_PATH];
    WIN32_FIND_DATAW entry;
    bool goes_on = true;
    HANDLE search;

    if (!muc_widen(folder, pattern))
        return false;
    if (wcslen(pattern) + 3 > MUC_MOST_PATH) {
        errno = ENAMETOOLONG;
        return false;
    }
    search = FindFirstFileW(wcscat(pattern, L"/*"), &entry);
    if (search == INVALID_HANDLE_VALUE)
        return muc_fail_as_windows();
    do {
        char *name = muc_narrow(entry.cFileName, false);

        if (!name || (strcmp(name, ".") != 0 && strcmp(name, "..") != 0))
            goes_on = name && visit(arg, name);
        free(name);
    } while (goes_on && FindNextFileW(search, &entry));
    FindClose(search);
    return goes_on;
}

/* ---- what is made ---- */

bool muc_flush_to_disk(int fd)
{
    return _commit(fd) == 0;
}

void muc_begin_flush(int fd)
{
    (void)fd;
}

/* Tries names at the end of template until make is not told that one is there. */
static bool make_new(char *template, bool make(const WCHAR *path, void *arg), void *arg)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    enum { LETTERS = 6, MOST_TRIES = 1000 };
    char *end = template + strlen(template) - LETTERS;
    WCHAR path[MUC_MOST_PATH];
    LARGE_INTEGER now;

    for (int i = 0; i < MOST_TRIES; i++) {
        QueryPerformanceCounter(&now);
        uint64_t bits = ((uint64_t)now.QuadPart ^ (uint64_t)GetCurrentProcessId() << 20) *
                        UINT64_C(6364136223846793005);

        for (int k = 0; k < LETTERS; k++)
            end[k] = letters[bits >> (32 + 5 * k) & 31];
        if (!muc_widen(template, path))
            return false;
        if (make(path, arg))
            return true;
        muc_fail_as_windows();
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool make_file(const WCHAR *path, void *file)
{
    *(HANDLE *)file = CreateFileW(path, GENERIC_READ | GENERIC_WRITE, SHARED, NULL, CREATE_NEW,
                                  FILE_ATTRIBUTE_NORMAL, NULL);
    return *(HANDLE *)file != INVALID_HANDLE_VALUE;
}

int muc_make_new_file(char *template)
{
    HANDLE file;

    return make_new(template, make_file, &file) ? descriptor_of(file, _O_RDWR) : -1;
}

static bool make_folder(const WCHAR *path, void *arg)
{
    (void)arg;
    return CreateDirectoryW(path, NULL);
}

bool muc_make_new_folder(char *template)
{
    return make_new(template, make_folder, NULL);
}

void muc_give_usual_rights(const char *path, bool is_folder)
{
    (void)path; /* they come from the folder that it is in */
    (void)is_folder;
}

bool muc_make_folder(const char *path)
{
    WCHAR wide[MUC_MOST_PATH];

    return muc_widen(path, wide) && (CreateDirectoryW(wide, NULL) || muc_fail_as_windows());
}

bool muc_rename(const char *from, const char *to)
{
    WCHAR wide_from[MUC_MOST_PATH], wide_to[MUC_MOST_PATH];

    return muc_widen(from, wide_from) && muc_widen(to, wide_to) &&
           (MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING) || muc_fail_as_windows());
}

bool muc_exchange(const char *one, const char *other)
{
    (void)one;
    (void)other;
    errno = ENOSYS;
    return false;
}

bool muc_remove(const char *path)
{
    WCHAR wide[MUC_MOST_PATH];

    return muc_widen(path, wide) &&
           (DeleteFileW(wide) || RemoveDirectoryW(wide) || muc_fail_as_windows());
}

const char *muc_folder_of_temporaries(void)
{
    const char *folder = getenv("TEMP");

    return folder && *folder ? folder : ".";
}
