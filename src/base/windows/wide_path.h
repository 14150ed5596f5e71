/* wide_path.h - paths as Windows has them, in UTF-16. */
#ifndef MUC_WIDE_PATH_H
#define MUC_WIDE_PATH_H

#define WIN32_LEAN_AND_MEAN
#include <stdbool.h>
#include <windows.h>

enum { MUC_MOST_PATH = 4096 };

/* False, with errno: no UTF-8, or longer than MUC_MOST_PATH. */
bool muc_widen(const char *path, WCHAR out[MUC_MOST_PATH]);
/* UTF-8, malloc'ed, with '/' between folders if it is a path; NULL: no memory. */
char *muc_narrow(const WCHAR *text, bool is_path);
/* errno of what the last call of Windows failed with; false. */
bool muc_fail_as_windows(void);

#endif
