/* folder.h - an output of several files that appears whole or not at all. */
#ifndef MUC_FOLDER_H
#define MUC_FOLDER_H

#include "base/arena.h"

/* Files gather in a temporary folder beside path; commit renames it. A folder that is there
 * already is replaced if all that lies in it was written by an earlier commit, which left a list
 * of its files in it, named FILES. */
typedef struct muc_folder muc_folder;

/* Fails with MUC_USAGE if path is there and may not be replaced. */
muc_status muc_folder_begin(muc_context *ctx, const char *path, muc_folder **out);
/* name is relative and may pass through folders, which are made. */
muc_status muc_folder_write(muc_folder *folder, const char *name, const void *data, size_t size);
/* Whether the files at path can be read as what they are; arg: as given to commit. */
typedef muc_status muc_folder_check(muc_context *ctx, const char *path, void *arg);

/* Both release the folder; commit removes what was written when it fails. check, unless it is NULL,
 * is asked of the temporary folder before that is renamed. */
muc_status muc_folder_commit(muc_folder *folder, muc_folder_check *check, void *arg);
void muc_folder_discard(muc_folder *folder);

#endif
