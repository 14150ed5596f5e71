/* calibration_pictures.c - reads pictures to calibrate a network on. */
#include "run/calibration_pictures.h"

#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "run/image_input.h"

enum { MOST_FILES = 1 << 16, MOST_FOLDERS = 16 }; /* in all; one in another */

typedef struct file_list {
    muc_context *ctx;
    muc_arena *arena;
    const char **paths;
    size_t count, capacity;
} file_list;

bool muc_is_pictures(const char *path)
{
    muc_context *quiet = muc_context_new(1);
    muc_file file = { 0 };
    bool is = muc_path_is_dir(path);

    if (!is && quiet && muc_file_open(quiet, path, &file) == MUC_OK) {
        is = muc_image_probe(file.bytes);
        muc_file_close(&file);
    }
    muc_context_free(quiet);
    return is;
}

static muc_status list_folder(file_list *list, const char *path, unsigned depth);

static muc_status list_entry(file_list *list, const char *folder, const char *name, unsigned depth)
{
    const char *path;

    MUC_TRY(muc_arena_format(list->ctx, list->arena, &path, "%s/%s", folder, name));
    if (muc_path_is_dir(path))
        return list_folder(list, path, depth + 1);
    if (list->count == MOST_FILES)
        return muc_fail(list->ctx, MUC_USAGE, folder, MUC_NO_OFFSET,
                        "more than %d pictures; fewer tell as much", MOST_FILES);
    MUC_TRY(MUC_ARENA_GROW(list->ctx, list->arena, list->count + 1, &list->capacity, &list->paths));
    list->paths[list->count++] = path;
    return MUC_OK;
}

static muc_status list_folder(file_list *list, const char *path, unsigned depth)
{
    const char *const *names;
    size_t count;

    if (depth == MOST_FOLDERS)
        return muc_fail(list->ctx, MUC_IO, path, MUC_NO_OFFSET,
                        "cannot list the folder: folders in folders without end");
    MUC_TRY(muc_folder_names(list->ctx, list->arena, path, &names, &count));
    for (size_t i = 0; i < count; i++)
        if (names[i][0] != '.')
            MUC_TRY(list_entry(list, path, names[i], depth));
    return MUC_OK;
}

/* one picture, which takes the arena's bytes only as long as it is read */
static muc_status read_one(muc_context *ctx, const char *path, const char *says,
                           const muc_port *input, uint8_t *out)
{
    muc_arena arena = { 0 };
    muc_tensor_view array;
    const char *said;
    muc_status status = muc_image_array(ctx, &arena, path, says, input, &array, &said);

    if (status == MUC_OK)
        memcpy(out, array.data, (size_t)input->bytes);
    muc_arena_free(&arena);
    return status;
}

muc_status muc_pictures_read(muc_context *ctx, muc_arena *arena, const char *path, const char *says,
                             const muc_port *input, muc_tensor_view *out)
{
    file_list list = { .ctx = ctx, .arena = arena, .paths = &path, .count = 1 };
    uint8_t *data;

    if (muc_path_is_dir(path)) {
        list.paths = NULL;
        list.count = 0;
        MUC_TRY(list_folder(&list, path, 0));
    }
    if (list.count == 0)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET, "the folder has no pictures");
    qsort(list.paths, list.count, sizeof(*list.paths), muc_compare_names);
    MUC_TRY(muc_arena_new(ctx, arena, list.count, (size_t)input->bytes, (void **)&data));
    for (size_t i = 0; i < list.count; i++) {
        muc_progress(ctx, "reading pictures", i, list.count);
        MUC_TRY(read_one(ctx, list.paths[i], says, input, data + i * (size_t)input->bytes));
    }
    muc_progress(ctx, "reading pictures", list.count, list.count);
    *out = muc_port_array(input, data, path);
    out->dims[0] *= list.count;
    return muc_tensor_measure(ctx, out);
}
