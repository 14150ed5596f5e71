/* checkpoint.c - the registry of formats, and the storage that their readers fill. */
#include "formats/checkpoint.h"

#include <string.h>

#include "base/text.h"
#include "formats/network.h"

const muc_format muc_formats[] = {
#define MUC_FORMAT(name, meaning) { #name, meaning, muc_##name##_probe, muc_##name##_read },
#include "formats/registry.def"
#undef MUC_FORMAT
};
const size_t muc_format_count = MUC_COUNT(muc_formats);

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

static muc_status fail_unrecognised(muc_context *ctx, const char *path)
{
    muc_text tried = { 0 };
    muc_status status;

    for (size_t i = 0; i < muc_format_count; i++)
        muc_text_add(&tried, "%s%s (%s)", i ? ", " : "", muc_formats[i].name,
                     muc_formats[i].meaning);
    for (size_t i = 0; i < muc_network_format_count(); i++)
        muc_text_add(&tried, ", %s (%s)", muc_network_format_get(i)->name,
                     muc_network_format_get(i)->meaning);
    status = muc_text_status(ctx, &tried);
    if (status == MUC_OK)
        status = muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET,
                          "no checkpoint or network of a known format; tried %s", tried.data);
    muc_text_free(&tried);
    return status;
}

static muc_status read_source(muc_context *ctx, const muc_source *source,
                              muc_checkpoint *checkpoint)
{
    for (size_t i = 0; i < muc_format_count; i++) {
        if (!muc_formats[i].probe(source))
            continue;
        checkpoint->format = muc_formats[i].name;
        MUC_TRY(muc_formats[i].read(ctx, source, checkpoint));
        return muc_checkpoint_settle(ctx, checkpoint);
    }
    return fail_unrecognised(ctx, source->path);
}

static muc_status open_path(muc_context *ctx, const char *path, muc_checkpoint *checkpoint)
{
    muc_source source = { .is_folder = muc_path_is_dir(path) };

    MUC_TRY(muc_arena_string(ctx, &checkpoint->arena, path, strlen(path), &checkpoint->path));
    source.path = checkpoint->path;
    if (!source.is_folder)
        MUC_TRY(muc_checkpoint_map(ctx, checkpoint, path, &source.bytes));
    return read_source(ctx, &source, checkpoint);
}

static muc_status open_bytes(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint)
{
    muc_source source = { .path = bytes.name, .bytes = bytes };

    checkpoint->path = bytes.name;
    return read_source(ctx, &source, checkpoint);
}

muc_status muc_checkpoint_open(muc_context *ctx, const char *path, muc_checkpoint *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = open_path(ctx, path, out);
    if (status != MUC_OK)
        muc_checkpoint_close(out);
    return status;
}

muc_status muc_checkpoint_open_bytes(muc_context *ctx, muc_bytes bytes, muc_checkpoint *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = open_bytes(ctx, bytes, out);
    if (status != MUC_OK)
        muc_checkpoint_close(out);
    return status;
}

muc_status muc_checkpoint_open_config(muc_context *ctx, const char *path, muc_checkpoint *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = muc_arena_string(ctx, &out->arena, path, strlen(path), &out->path);
    if (status == MUC_OK)
        status = muc_hf_read_config_file(ctx, out);
    if (status == MUC_OK)
        status = muc_checkpoint_check_config(ctx, out);
    if (status != MUC_OK)
        muc_checkpoint_close(out);
    return status;
}

void muc_checkpoint_close(muc_checkpoint *checkpoint)
{
    muc_mapped_close(checkpoint->files);
    muc_arena_free(&checkpoint->arena);
    memset(checkpoint, 0, sizeof(*checkpoint));
}
