/* system_windows.c - processors, memory, libraries, streams and the end of the program, on Windows.
 */
#include "base/system.h"

#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/file_system.h"
#include "base/locale.h"
#include "base/windows/wide_path.h"
#include "muc/status.h"

#include <shellapi.h>

unsigned muc_processors(void)
{
    DWORD_PTR own, all;
    int n = 0;

    if (GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
        n = __builtin_popcountll(own);
    return n > 0 ? (unsigned)n : 1;
}

int muc_own_processor(void)
{
    return (int)GetCurrentProcessorNumber();
}

void *muc_aligned_alloc(size_t alignment, size_t bytes)
{
    return _aligned_malloc(bytes, alignment);
}

void *muc_alloc_huge(size_t bytes)
{
    return _aligned_malloc(bytes, 64);
}

void muc_aligned_free(void *data)
{
    _aligned_free(data);
}

/* Here muc is one static program, which never leaves the locale that programs begin with: C. */
muc_locale muc_locale_enter(void)
{
    return (muc_locale){ NULL, NULL };
}

void muc_locale_leave(muc_locale *locale)
{
    (void)locale;
}

/* ---- files of programs ---- */

char *muc_own_file(void)
{
    WCHAR path[MUC_MOST_PATH];
    DWORD length = GetModuleFileNameW(NULL, path, MUC_MOST_PATH);

    return length > 0 && length < MUC_MOST_PATH ? muc_narrow(path, true) : NULL;
}

void *muc_library_open(const char *path)
{
    WCHAR wide[MUC_MOST_PATH];

    return muc_widen(path, wide) ? (void *)LoadLibraryW(wide) : NULL;
}

void *muc_library_find(void *library, const char *name)
{
    return (void *)(uintptr_t)GetProcAddress(library, name);
}

const char *muc_library_error(void)
{
    return "Windows cannot load it";
}

void muc_library_close(void *library)
{
    FreeLibrary(library);
}

void muc_set_variable(const char *name, const char *value)
{
    _putenv_s(name, value ? value : "");
}

/* ---- the command ---- */

void muc_begin_program(int *argc, char ***argv)
{
    int count;
    WCHAR **words = CommandLineToArgvW(GetCommandLineW(), &count);
    char **narrow = words ? calloc((size_t)count + 1, sizeof(*narrow)) : NULL;

    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
    _setmode(_fileno(stderr), _O_BINARY);
    SetConsoleCP(CP_UTF8);
    SetConsoleOutputCP(CP_UTF8);
    if (!narrow)
        return;
    for (int i = 0; i < count; i++)
        if (!(narrow[i] = muc_narrow(words[i], false)))
            return;
    *argc = count;
    *argv = narrow;
}

void muc_take_path(char *path)
{
    for (; *path; path++)
        if (*path == '\\')
            *path = '/';
}

bool muc_is_terminal(FILE *stream)
{
    DWORD mode; /* a console has one; other devices, which _isatty takes too, have not */

    return GetConsoleMode((HANDLE)_get_osfhandle(_fileno(stream)), &mode);
}

FILE *muc_open_stream(const char *path)
{
    WCHAR wide[MUC_MOST_PATH];

    return muc_widen(path, wide) ? _wfopen(wide, L"rb") : NULL;
}

static void (*before_the_end)(void);

/* in a thread of its own */
static BOOL WINAPI clear_away(DWORD event)
{
    (void)event;
    before_the_end();
    muc_remove_temporaries();
    return FALSE; /* Windows ends the program */
}

void muc_catch_signals(void (*last)(void))
{
    before_the_end = last;
    SetConsoleCtrlHandler(clear_away, TRUE);
}

void muc_end_by_broken_pipe(void)
{
}
