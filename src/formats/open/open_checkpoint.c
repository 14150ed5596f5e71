/* open_checkpoint.c - opens a trained language model by the first format that recognises it. */
#include <string.h>

#include "base/text.h"
#include "formats/format.h"
#include "formats/network.h"

const muc_format muc_formats[] = {
#define MUC_FORMAT(name, meaning) { #name, meaning, muc_##name##_probe, muc_##name##_read },
#include "formats/registry.def"
#undef MUC_FORMAT
};
const size_t muc_format_count = MUC_COUNT(muc_formats);

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
        return muc_checkpoint_finish(ctx, checkpoint);
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
