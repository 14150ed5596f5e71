/* file.h - files mapped for reading, and outputs that appear whole or not at all. */
#ifndef MUC_FILE_H
#define MUC_FILE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/large.h"

typedef struct muc_file {
    muc_bytes bytes; /* alive until muc_file_close; name is owned by the file */
    void *mapping;
    char *path;
} muc_file;

/* Maps a regular file read-only. An empty file gives size 0. The file is an input of the context
 * from now on, which no output replaces. */
muc_status muc_file_open(muc_context *ctx, const char *path, muc_file *out);
/* The same for a file that muc wrote for itself: no input. */
muc_status muc_file_open_own(muc_context *ctx, const char *path, muc_file *out);
/* The same for a path found inside a model's file: it must be relative and have no "..". Symbolic
 * links in dir are the user's own arrangement (the cache of Hugging Face's hub is made of them) and
 * are followed; but where owner, the path of the file that names this one, is given, what is opened
 * must lie in dir or beside the file that owner really is, for bytes that are taken as they are. */
muc_status muc_file_open_beneath(muc_context *ctx, const char *dir, const char *path,
                                 const char *owner, muc_file *out);
void muc_file_close(muc_file *file);
/* Lets the pages between two bytes leave the process if they are of this file, which is mapped:
 * they come back where they are read again. */
void muc_file_rest(const muc_file *file, const uint8_t *data, size_t bytes);
/* Whether a name found in a file leads into no other folder. */
bool muc_is_plain_name(const char *name);
bool muc_path_is_dir(const char *path);
/* What a path's file or folder is called, in the arena: "kws.int8" of "models/kws.int8.tflite",
 * "rescue" of "models/rescue/" and, where that is the current folder, of ".". */
muc_status muc_name_of_path(muc_context *ctx, muc_arena *arena, const char *path, const char **out);
bool muc_path_exists(const char *path);

/* Whether a file can be written to path, asked before the work: MUC_USAGE if that would replace an
 * input of the context, by whatever name, or a folder; MUC_IO if nothing can be made there. */
muc_status muc_output_precheck(muc_context *ctx, const char *path);

/* An output: bytes gather in a temporary file beside path; commit renames it, so that path
 * either keeps its old content or has all of the new. A device or a pipe is written itself. */
typedef struct muc_output muc_output;

muc_status muc_output_begin(muc_context *ctx, const char *path, muc_output **out);
muc_status muc_output_write(muc_output *output, const void *data, size_t size);
/* For an output that is to be mapped memory, of so many bytes, which whoever has mapped it unmaps
 * (muc_large_free); to write what is mapped, whole, does nothing. False: it cannot be. */
bool muc_output_map(muc_output *output, size_t bytes, muc_large_file *out);
/* What it holds begins to go to the disk, which commit waits for. */
void muc_output_hasten(const muc_output *output);
/* Both release the output; commit removes the temporary file when it fails. */
muc_status muc_output_commit(muc_output *output);
void muc_output_discard(muc_output *output);

muc_status muc_file_write(muc_context *ctx, const char *path, const void *data, size_t size);
/* qsort's order of an array of strings, byte by byte. */
int muc_compare_names(const void *a, const void *b);
/* The names in a folder but "." and "..", in the order of their bytes, in the arena. */
muc_status muc_folder_names(muc_context *ctx, muc_arena *arena, const char *path,
                            const char *const **out, size_t *count);
muc_status muc_make_dir(muc_context *ctx, const char *path); /* an existing one is fine */

#endif
