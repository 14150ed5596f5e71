/* tokenizer_cache.c - finds, checks and writes the copies of compiled tokenizers. */
#include "run/tokenizer_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "run/installed.h"

enum { LEAST_FILE = 4 << 20, LENGTH = 64, BUILD = 8, SIZE = 16, CHECKSUM = 24 };

static const char magic[8] = "MUCTOKEN"; /* of a head of LENGTH bytes, in front of the form */

/* FNV-1a over words of eight bytes, and the bytes that are left: as good a name, in an eighth of
 * the time. */
static uint64_t hash_words(const uint8_t *data, size_t size)
{
    uint64_t hash = MUC_HASH_BEGIN;
    size_t at = 0;

    for (; at + 8 <= size; at += 8) {
        hash = (hash ^ muc_load_u64(data + at)) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    return muc_hash(hash, data + at, size - at);
}

/* An absolute path, as the specification of base folders wants it, or NULL. */
static const char *cache_home(const char **below)
{
    const char *home = getenv("XDG_CACHE_HOME");

    *below = "";
    if (!home || home[0] != '/') {
        home = getenv("HOME");
        *below = "/.cache";
    }
    return home && home[0] == '/' ? home : NULL;
}

muc_status muc_kept_form_of(muc_context *ctx, muc_arena *arena, muc_bytes file,
                            const void *settings, size_t settings_bytes, muc_kept_form *out)
{
    const char *below, *home = cache_home(&below);
    uint64_t name;

    *out = (muc_kept_form){ NULL, 0 };
    if (file.size < LEAST_FILE || !home || !muc_build_number(&out->build))
        return MUC_OK;
    name = hash_words(file.data, file.size);
    name = muc_hash(name, settings, settings_bytes);
    return muc_arena_format(ctx, arena, &out->path, "%s%s/muc/tokenizer-%016llx%08x", home, below,
                            (unsigned long long)name, muc_crc32(0, file.data, file.size));
}

static bool is_whole(const muc_kept_form *kept, muc_bytes file)
{
    return file.size > LENGTH && memcmp(file.data, magic, sizeof(magic)) == 0 &&
           muc_load_u64(file.data + BUILD) == kept->build &&
           muc_load_u64(file.data + SIZE) == file.size - LENGTH &&
           muc_load_u32(file.data + CHECKSUM) ==
               muc_crc32(0, file.data + LENGTH, file.size - LENGTH);
}

muc_status muc_kept_form_read(muc_context *ctx, muc_arena *arena, const muc_kept_form *kept,
                              uint8_t **form, size_t *bytes)
{
    muc_status status = MUC_OK;
    muc_file file;

    *form = NULL;
    *bytes = 0;
    if (!kept->path || !muc_path_exists(kept->path))
        return MUC_OK;
    if (muc_file_open_own(ctx, kept->path, &file) != MUC_OK) {
        muc_error_clear(ctx);
        return MUC_OK;
    }
    if (is_whole(kept, file.bytes)) {
        status = MUC_ARENA_NEW(ctx, arena, file.bytes.size - LENGTH, form);
        if (status == MUC_OK) {
            *bytes = file.bytes.size - LENGTH;
            memcpy(*form, file.bytes.data + LENGTH, *bytes);
        }
    }
    muc_file_close(&file);
    return status;
}

/* the folders above the last name of a path, but not those above `muc` and what it lies in */
static muc_status make_folders(muc_context *ctx, const char *path)
{
    muc_text folder = { 0 };
    muc_status status;
    size_t length = (size_t)(strrchr(path, '/') - path);

    muc_text_add_bytes(&folder, path, length);
    status = muc_text_status(ctx, &folder);
    if (status == MUC_OK) {
        char *last = strrchr(folder.data, '/');

        *last = '\0';
        status = muc_make_dir(ctx, folder.data);
        *last = '/';
    }
    if (status == MUC_OK)
        status = muc_make_dir(ctx, folder.data);
    muc_text_free(&folder);
    return status;
}

void muc_kept_form_write(muc_context *ctx, const muc_kept_form *kept, const uint8_t *form,
                         size_t bytes)
{
    uint8_t head[LENGTH] = { 0 };
    muc_output *output;
    muc_status status;

    if (!kept->path)
        return;
    memcpy(head, magic, sizeof(magic));
    muc_store_u64(head + BUILD, kept->build);
    muc_store_u64(head + SIZE, bytes);
    muc_store_u32(head + CHECKSUM, muc_crc32(0, form, bytes));
    status = make_folders(ctx, kept->path);
    if (status == MUC_OK)
        status = muc_output_begin(ctx, kept->path, &output);
    if (status == MUC_OK) {
        status = muc_output_write(output, head, sizeof(head));
        if (status == MUC_OK)
            status = muc_output_write(output, form, bytes);
        if (status == MUC_OK)
            status = muc_output_commit(output);
        else
            muc_output_discard(output);
    }
    if (status != MUC_OK)
        muc_error_clear(ctx);
}
