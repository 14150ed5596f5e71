/* temporary.h - files and folders that go away with the program, should a signal end it. */
#ifndef MUC_TEMPORARY_H
#define MUC_TEMPORARY_H

#include "base/base.h"

/* A file or folder, there from now on. Where memory is out it is not noted. Thread-safe. */
void muc_temporary_note(const char *path);
/* It has its place, or was removed. */
void muc_temporary_forget(const char *path);
/* Removes a folder with all that is in it, and forgets it. */
void muc_temporary_remove(const char *path);

#endif
