/* mapped_files.c - keeps the files that a reader maps, and closes them together. */
#include "formats/format.h"

struct muc_mapped_file {
    muc_mapped_file *next;
    muc_file file;
};

/* The list takes the node before the file is opened, so that a failure leaks nothing. */
static muc_status new_file(muc_context *ctx, muc_arena *arena, muc_mapped_file **list,
                           muc_file **out)
{
    muc_mapped_file *node;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &node));
    node->next = *list;
    *list = node;
    *out = &node->file;
    return MUC_OK;
}

muc_status muc_mapped_open(muc_context *ctx, muc_arena *arena, muc_mapped_file **list,
                           const char *path, muc_bytes *out)
{
    muc_file *file;

    MUC_TRY(new_file(ctx, arena, list, &file));
    MUC_TRY(muc_file_open(ctx, path, file));
    *out = file->bytes;
    return MUC_OK;
}

muc_status muc_mapped_open_beneath(muc_context *ctx, muc_arena *arena, muc_mapped_file **list,
                                   const char *folder, const char *path, const char *owner,
                                   muc_bytes *out)
{
    muc_file *file;

    MUC_TRY(new_file(ctx, arena, list, &file));
    MUC_TRY(muc_file_open_beneath(ctx, folder, path, owner, file));
    *out = file->bytes;
    return MUC_OK;
}

void muc_mapped_rest(const muc_mapped_file *list, const uint8_t *data, size_t bytes)
{
    for (; list; list = list->next)
        muc_file_rest(&list->file, data, bytes);
}

void muc_mapped_close(muc_mapped_file *list)
{
    for (; list; list = list->next)
        muc_file_close(&list->file);
}
