/* output_folder.h - an output of several files that appears whole or not at all. */
#ifndef MUC_FOLDER_H
#define MUC_FOLDER_H

#include "base/arena.h"
#include "base/text.h"

/* Files gather in a temporary folder beside path, which commit puts in its place. The list FILES in
 * it has a line "CRC32  NAME" for each. A folder that is there already is replaced if all that lies
 * in it is what the list says; a file that was edited since is replaced if the context is forced;
 * other files and inputs of the context never are. */
typedef struct muc_folder muc_folder;

/* Whether a folder can be written to path, asked before the work. MUC_USAGE, naming the file that
 * stands in the way, if path is there and may not be replaced; MUC_IO if nothing can be made
 * there. */
muc_status muc_folder_precheck(muc_context *ctx, const char *path);
/* Checks too. */
muc_status muc_folder_begin(muc_context *ctx, const char *path, muc_folder **out);
/* name is relative and may pass through folders, which are made. */
muc_status muc_folder_write(muc_folder *folder, const char *name, const void *data, size_t size);
/* Writes a text, if the status that it was made with is MUC_OK, and frees it in any case. */
muc_status muc_folder_write_text(muc_folder *folder, const char *name, muc_status status,
                                 muc_text *text);
/* The same in pieces: source is asked for the next one until it gives none (size 0). What it gives
 * is borrowed until it is asked again. */
typedef muc_status muc_folder_source(void *arg, const void **data, size_t *size);
muc_status muc_folder_write_pieces(muc_folder *folder, const char *name, muc_folder_source *source,
                                   void *arg);
/* Whether the files at path can be read as what they are; arg: as given to commit. */
typedef muc_status muc_folder_check(muc_context *ctx, const char *path, void *arg);

/* Both release the folder; commit removes what was written when it fails. check, unless it is NULL,
 * is asked of the temporary folder before that is put in its place. */
muc_status muc_folder_commit(muc_folder *folder, muc_folder_check *check, void *arg);
void muc_folder_discard(muc_folder *folder);
/* One or the other: commits what was written with this status if it is MUC_OK, or discards it and
 * returns the status. */
muc_status muc_folder_end(muc_folder *folder, muc_status status, muc_folder_check *check,
                          void *arg);

/* For what is written file by file into a folder, new or not. The first is muc_folder_precheck of
 * these files alone; the second writes the list FILES of those of them that are there. */
muc_status muc_folder_precheck_files(muc_context *ctx, const char *path, const char *const *names,
                                     size_t count);
muc_status muc_folder_list(muc_context *ctx, const char *path, const char *const *names,
                           size_t count);
/* The path of the first file of the folder's list whose name has this end, in the arena; NULL if
 * there is none. MUC_IO if there is no list. */
muc_status muc_folder_find(muc_context *ctx, const char *path, const char *end, muc_arena *arena,
                           const char **out);
/* All files of the folder's list, if it has one, become inputs of the context. */
muc_status muc_folder_protect(muc_context *ctx, const char *path);

#endif
