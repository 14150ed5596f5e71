/* temporary.h - files, folders and child processes that go away with the program, should a signal
 * end it. Thread-safe. */
#ifndef MUC_TEMPORARY_H
#define MUC_TEMPORARY_H

#include "base/base.h"

/* As mkstemp and mkdtemp, errno too; what they make is noted. */
int muc_temporary_file(char *template);
bool muc_temporary_folder(char *template);
/* It has its place, or was removed. */
void muc_temporary_forget(const char *path);
/* Removes a file, or a folder with all that is in it, and forgets it. */
void muc_temporary_remove(const char *path);
/* Puts a temporary folder where another folder is, which becomes the temporary one. Whatever ends
 * the program, one of both is at path. False: neither was moved, errno says why. */
bool muc_temporary_exchange(const char *temporary, const char *path);

/* A child process that is ended with the program; to be forgotten before it is reaped. */
typedef int64_t muc_child; /* its number, never 0 */
/* 0 and the number of the child that it started, or errno */
typedef int muc_child_starter(void *arg, muc_child *child);
/* What `start` says. The child is started and noted at once: a signal finds both or neither. */
int muc_child_start(muc_child_starter *start, void *arg, muc_child *child);
void muc_child_forget(muc_child child);
void muc_child_end(muc_child child); /* asks it to end */

#endif
