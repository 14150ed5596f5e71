/* checkpoint.c - the tensors and files of a checkpoint, which readers of formats fill in. */
#include "formats/checkpoint.h"

#include <string.h>

#include "formats/format.h"

muc_status muc_checkpoint_map(muc_context *ctx, muc_checkpoint *checkpoint, const char *path,
                              muc_bytes *out)
{
    return muc_mapped_open(ctx, &checkpoint->arena, &checkpoint->files, path, out);
}

muc_status muc_checkpoint_map_beneath(muc_context *ctx, muc_checkpoint *checkpoint,
                                      const char *folder, const char *path, muc_bytes *out)
{
    return muc_mapped_open_beneath(ctx, &checkpoint->arena, &checkpoint->files, folder, path, NULL,
                                   out);
}

muc_status muc_checkpoint_add(muc_context *ctx, muc_checkpoint *checkpoint,
                              const muc_tensor_view *view)
{
    void *items = checkpoint->tensors;

    if (checkpoint->tensor_count >= MUC_MAX_TENSORS)
        return muc_fail(ctx, MUC_UNSUPPORTED, view->file, MUC_NO_OFFSET, "more than %d tensors",
                        MUC_MAX_TENSORS);
    MUC_TRY(muc_arena_grow(ctx, &checkpoint->arena, checkpoint->tensor_count + 1, sizeof(*view),
                           &checkpoint->tensor_capacity, &items));
    checkpoint->tensors = items;
    checkpoint->tensors[checkpoint->tensor_count++] = *view;
    return MUC_OK;
}

uint64_t muc_checkpoint_stored(const muc_tensor_view *tensor)
{
    return tensor->stored_bytes ? tensor->stored_bytes : tensor->bytes;
}

void muc_checkpoint_weights(const muc_checkpoint *checkpoint, uint64_t *weights, uint64_t *bytes)
{
    *weights = *bytes = 0;
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        if (checkpoint->tensors[i].rank != 2)
            continue;
        *weights += checkpoint->tensors[i].elements;
        *bytes += muc_checkpoint_stored(&checkpoint->tensors[i]);
    }
}

const muc_tensor_view *muc_checkpoint_find(const muc_checkpoint *checkpoint, const char *name)
{
    size_t low = 0, high = checkpoint->tensor_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(checkpoint->tensors[middle].name, name);

        if (order == 0)
            return &checkpoint->tensors[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void muc_checkpoint_close(muc_checkpoint *checkpoint)
{
    muc_mapped_close(checkpoint->files);
    muc_arena_free(&checkpoint->arena);
    memset(checkpoint, 0, sizeof(*checkpoint));
}
