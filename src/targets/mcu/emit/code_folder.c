/* code_folder.c - what NAME.json says, and arrays as the code wants them. */
#include "targets/mcu/emit/code_folder.h"

#include <string.h>

#include "base/output_folder.h"
#include "base/text.h"

/* ---- the description ---- */

static muc_status find_description(muc_context *ctx, muc_code_folder *folder, const char **out)
{
    MUC_TRY(muc_folder_find(ctx, folder->path, ".json", &folder->arena, out));
    if (*out)
        return muc_folder_protect(ctx, folder->path);
    return muc_fail(ctx, MUC_MALFORMED, folder->path, MUC_NO_OFFSET,
                    "its FILES names no description: this is not a folder of generated code");
}

static muc_status read_port(muc_context *ctx, const char *file, const json_t *item, muc_port *out)
{
    const json_t *dims = json_object_get(item, "dims");
    const char *type;
    uint64_t elements;

    MUC_TRY(muc_json_string_or_null(ctx, file, item, "name", &out->name));
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "field", &out->field));
    MUC_TRY(muc_json_string_or_null(ctx, file, item, "type", &type));
    if (!out->name || !out->field || !type || !muc_dtype_find(type, &out->dtype) ||
        json_array_size(dims) > MUC_MAX_RANK)
        return muc_fail(ctx, MUC_MALFORMED, file, MUC_NO_OFFSET, "an input or output is damaged");
    out->rank = (uint32_t)json_array_size(dims);
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = (uint64_t)json_integer_value(json_array_get(dims, i));
    if (!muc_dtype_measure(out->dtype, out->rank, out->dims, &elements, &out->bytes))
        return muc_fail(ctx, MUC_MALFORMED, file, MUC_NO_OFFSET, "'%s' has no size", out->name);
    out->extents = json_object_get(item, "extents");
    out->quantized = json_object_get(item, "scale") != NULL;
    out->scale = json_number_value(json_object_get(item, "scale"));
    out->zero = (int32_t)json_integer_value(json_object_get(item, "zero"));
    return MUC_OK;
}

static muc_status read_ports(muc_context *ctx, muc_code_folder *folder, const char *key,
                             muc_port **out, size_t *count)
{
    const json_t *items = json_object_get(folder->json, key);

    *count = json_array_size(items);
    MUC_TRY(MUC_ARENA_NEW(ctx, &folder->arena, *count, out));
    for (size_t i = 0; i < *count; i++)
        MUC_TRY(read_port(ctx, folder->path, json_array_get(items, i), &(*out)[i]));
    return MUC_OK;
}

/* several exports name their arrays; else these are the inputs */
static muc_status name_arrays(muc_context *ctx, muc_code_folder *folder)
{
    const json_t *names = json_object_get(folder->json, "arrays");

    folder->array_count = names ? json_array_size(names) : folder->input_count;
    MUC_TRY(MUC_ARENA_NEW(ctx, &folder->arena, folder->array_count + 1, &folder->arrays));
    for (size_t i = 0; i < folder->array_count; i++) {
        folder->arrays[i] =
            names ? json_string_value(json_array_get(names, i)) : folder->inputs[i].name;
        if (!folder->arrays[i])
            return muc_fail(ctx, MUC_MALFORMED, folder->path, MUC_NO_OFFSET,
                            "the name of an array is damaged");
    }
    return MUC_OK;
}

static muc_status open_folder(muc_context *ctx, const char *path, muc_code_folder *folder)
{
    const char *description;

    if (!muc_path_is_dir(path))
        return muc_fail(ctx, MUC_IO, path, MUC_NO_OFFSET, "is not a folder");
    MUC_TRY(muc_arena_string(ctx, &folder->arena, path, strlen(path), &folder->path));
    MUC_TRY(find_description(ctx, folder, &description));
    MUC_TRY(muc_file_open(ctx, description, &folder->file));
    MUC_TRY(muc_json_parse(ctx, folder->file.bytes, 0, &folder->json));
    MUC_TRY(muc_json_string_or_null(ctx, description, folder->json, "name", &folder->name));
    if (!folder->name)
        return muc_fail(ctx, MUC_MALFORMED, description, MUC_NO_OFFSET, "it has no name");
    MUC_TRY(muc_json_bool_or(ctx, description, folder->json, "streams", false, &folder->streams));
    MUC_TRY(read_ports(ctx, folder, "inputs", &folder->inputs, &folder->input_count));
    MUC_TRY(read_ports(ctx, folder, "caches", &folder->caches, &folder->cache_count));
    MUC_TRY(name_arrays(ctx, folder));
    return read_ports(ctx, folder, "outputs", &folder->outputs, &folder->output_count);
}

muc_status muc_code_open(muc_context *ctx, const char *path, muc_code_folder *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = open_folder(ctx, path, out);
    if (status != MUC_OK)
        muc_code_close(out);
    return status;
}

void muc_code_close(muc_code_folder *folder)
{
    json_decref(folder->json);
    muc_file_close(&folder->file);
    muc_arena_free(&folder->arena);
    memset(folder, 0, sizeof(*folder));
}

muc_status muc_code_check(muc_context *ctx, const char *path, void *arg)
{
    muc_code_folder folder;

    (void)arg;
    if (muc_code_open(ctx, path, &folder) != MUC_OK)
        return MUC_BUG;
    muc_code_close(&folder);
    return MUC_OK;
}
