/* export.c - a model as the folder that every reader takes. */
#include "train/export.h"

#include "base/file.h"
#include "base/text.h"
#include "formats/hf/hf_tensors.h"
#include "formats/hf/save_checkpoint.h"

muc_status muc_train_import(muc_context *ctx, const muc_train_shape *shape,
                            const muc_checkpoint *checkpoint, muc_scalar *weights)
{
    memset(weights, 0, shape->elements * sizeof(*weights));
    for (size_t t = 0; t < shape->tensor_count; t++) {
        const muc_train_tensor *tensor = &shape->tensors[t];
        const muc_tensor_view *view = muc_checkpoint_find(checkpoint, tensor->name);

        if (!view || view->elements != tensor->elements)
            return muc_fail(ctx, MUC_MALFORMED, checkpoint->path, MUC_NO_OFFSET,
                            "no tensor '%s' of %zu elements", tensor->name, tensor->elements);
        for (size_t i = 0; i < tensor->elements; i++) {
            float value;

            MUC_TRY(muc_tensor_to_f32(ctx, view, i, 1, &value));
            weights[tensor->first + i] = value;
        }
    }
    return MUC_OK;
}

/* the tensors, as little-endian floats */
static muc_status add_tensors(muc_context *ctx, const muc_train_shape *shape,
                              const muc_scalar *weights, muc_arena *arena, muc_text *text)
{
    size_t count = shape->tensor_count;
    muc_tensor_view *views;
    float *values;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, shape->tensor_count, &views));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, shape->elements, &values));
    for (size_t i = 0; i < shape->elements; i++) {
        float value = (float)weights[i];
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        muc_store_u32((uint8_t *)&values[i], bits);
    }
    for (size_t t = 0; t < shape->tensor_count; t++) {
        const muc_train_tensor *tensor = &shape->tensors[t];

        views[t] = (muc_tensor_view){ .name = tensor->name,
                                      .dtype = MUC_F32,
                                      .rank = tensor->columns ? 2 : 1,
                                      .dims = { tensor->rows, tensor->columns },
                                      .elements = tensor->elements,
                                      .bytes = tensor->elements * sizeof(float),
                                      .data = (const uint8_t *)(values + tensor->first) };
    }
    if (shape->config.family == MUC_FAMILY_GPT2)
        MUC_TRY(muc_hf_gpt2_store(ctx, &shape->config, views, count, arena, &views, &count));
    return muc_safetensors_print(ctx, views, count, text);
}

static muc_status write(muc_context *ctx, const char *folder, const char *name,
                        const muc_text *content)
{
    muc_text path = { 0 };
    muc_status status = muc_text_status(ctx, content);

    muc_text_add(&path, "%s/%s", folder, name);
    if (status == MUC_OK)
        status = muc_text_status(ctx, &path);
    if (status == MUC_OK)
        status = muc_file_write(ctx, path.data, content->data, content->size);
    muc_text_free(&path);
    return status;
}

muc_status muc_train_export(muc_context *ctx, const muc_train_shape *shape,
                            const muc_scalar *weights, const char *folder)
{
    muc_text config = { 0 }, tensors = { 0 };
    muc_arena arena = { 0 };
    muc_status status;

    MUC_TRY(muc_make_dir(ctx, folder));
    muc_hf_add_config(&shape->config, "", &config);
    status = add_tensors(ctx, shape, weights, &arena, &tensors);
    if (status == MUC_OK)
        status = write(ctx, folder, "model.safetensors", &tensors);
    if (status == MUC_OK)
        status = write(ctx, folder, "config.json", &config);
    muc_text_free(&config);
    muc_text_free(&tensors);
    muc_arena_free(&arena);
    return status;
}
