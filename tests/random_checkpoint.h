/* random_checkpoint.h - a checkpoint in memory whose tensors are those of a configuration, of
 * random values. */
#ifndef RANDOM_CHECKPOINT_H
#define RANDOM_CHECKPOINT_H

#include "chance.h"
#include "check.h"

#include "formats/format.h"
#include "models/llama.h"

static inline int by_name(const void *a, const void *b)
{
    return strcmp(((const muc_tensor_view *)a)->name, ((const muc_tensor_view *)b)->name);
}

/* gains are around 1, with this deviation */
static inline void add_random_tensor(muc_context *ctx, muc_checkpoint *out, unsigned id,
                                     uint32_t layer, double deviation)
{
    const muc_llama_tensor tensor = muc_llama_tensor_of(&out->config, id);
    muc_tensor_view view = { .dtype = MUC_F32, .rank = tensor.dims[1] ? 2 : 1, .file = "memory" };
    double scale = tensor.dims[1] ? 1 / sqrt(tensor.dims[1]) : deviation;
    float *data;

    view.dims[0] = tensor.dims[0];
    view.dims[1] = tensor.dims[1];
    CHECK_OK(ctx, muc_tensor_measure(ctx, &view));
    CHECK_OK(ctx, muc_llama_tensor_name(ctx, &out->arena, id, layer, &view.name));
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, &out->arena, view.elements, &data));
    for (uint64_t i = 0; i < view.elements; i++)
        data[i] = (float)(random_gaussian() * scale + (view.rank == 1));
    view.data = (const uint8_t *)data;
    CHECK_OK(ctx, muc_checkpoint_add(ctx, out, &view));
}

/* a model of this configuration that nobody trained */
static inline void random_checkpoint(muc_context *ctx, const char *path,
                                     const muc_model_config *config, double deviation,
                                     muc_checkpoint *out)
{
    *out = (muc_checkpoint){ .path = path, .config = *config };
    for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++) {
        const muc_llama_tensor tensor = muc_llama_tensor_of(config, id);

        for (uint32_t l = 0; tensor.present && l < (tensor.per_layer ? config->layers : 1); l++)
            add_random_tensor(ctx, out, id, l, deviation);
    }
    qsort(out->tensors, out->tensor_count, sizeof(out->tensors[0]), by_name);
}

#endif
