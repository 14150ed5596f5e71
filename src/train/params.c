/* params.c - lays the tensors of llama_tensors.def out in one buffer. */
#include "train/params.h"

/* tensors begin at multiples of a cache line of floats */
enum { ALIGN_ELEMENTS = 16 };

static muc_status add(muc_context *ctx, muc_train_shape *shape, const muc_model_config *config,
                      unsigned id, uint32_t layer, size_t *at)
{
    muc_llama_tensor row = muc_llama_tensor_of(config, id);
    muc_train_tensor *tensor = &shape->tensors[shape->tensor_count];

    *at = MUC_TRAIN_ABSENT;
    if (!row.present)
        return MUC_OK;
    MUC_TRY(muc_llama_tensor_name(ctx, &shape->arena, id, layer, &tensor->name));
    tensor->id = id;
    tensor->layer = layer;
    tensor->rows = row.dims[0];
    tensor->columns = row.dims[1];
    tensor->decays = row.dims[1] != 0;
    tensor->elements = (size_t)row.dims[0] * (row.dims[1] ? row.dims[1] : 1);
    tensor->first = shape->elements;
    *at = tensor->first;
    shape->elements += (tensor->elements + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    shape->tensor_count++;
    return MUC_OK;
}

static muc_status lay_out(muc_context *ctx, muc_train_shape *shape)
{
    muc_model_config config = shape->config;

    MUC_TRY(add(ctx, shape, &config, MUC_LLAMA_EMBED, 0, &shape->embed));
    MUC_TRY(add(ctx, shape, &config, MUC_LLAMA_POSITIONS, 0, &shape->positions));
    for (uint32_t i = 0; i < config.layers; i++) {
        muc_train_layer *layer = &shape->layers[i];

        config.heads = layer->heads;
        config.kv_heads = layer->kv_heads;
        config.ffn_dim = layer->ffn_dim;
        for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++)
            if (muc_llama_tensor_of(&config, id).per_layer)
                MUC_TRY(add(ctx, shape, &config, id, i, &layer->at[id]));
    }
    MUC_TRY(add(ctx, shape, &config, MUC_LLAMA_FINAL_NORM, 0, &shape->final_norm));
    MUC_TRY(add(ctx, shape, &config, MUC_LLAMA_FINAL_NORM_BIAS, 0, &shape->final_norm_bias));
    MUC_TRY(add(ctx, shape, &config, MUC_LLAMA_HEAD, 0, &shape->head));
    if (config.tied)
        shape->head = shape->embed;
    return MUC_OK;
}

static muc_status check(muc_context *ctx, const muc_train_shape *shape, uint32_t i)
{
    const muc_train_layer *layer = &shape->layers[i];

    if (layer->heads && layer->kv_heads && layer->ffn_dim && layer->heads % layer->kv_heads == 0)
        return MUC_OK;
    return muc_fail(ctx, MUC_MALFORMED, "train", MUC_NO_OFFSET,
                    "layer %u: %u heads, %u of keys, %u neurons; expected at least one each, and "
                    "heads in whole groups",
                    i, layer->heads, layer->kv_heads, layer->ffn_dim);
}

static void grow(uint32_t *most, uint32_t value)
{
    *most = value > *most ? value : *most;
}

/* the configuration of the layers as they are, its list in the shape's arena */
static muc_status settle_config(muc_context *ctx, muc_train_shape *shape)
{
    muc_model_config *config = &shape->config;
    muc_layer_sizes *sizes;

    MUC_TRY(MUC_ARENA_NEW(ctx, &shape->arena, config->layers, &sizes));
    config->heads = config->kv_heads = config->ffn_dim = 0;
    for (uint32_t i = 0; i < config->layers; i++) {
        const muc_train_layer *layer = &shape->layers[i];

        sizes[i] = (muc_layer_sizes){ layer->heads, layer->kv_heads, layer->ffn_dim };
        grow(&config->heads, layer->heads);
        grow(&config->kv_heads, layer->kv_heads);
        grow(&config->ffn_dim, layer->ffn_dim);
    }
    config->layer_sizes = sizes;
    return MUC_OK;
}

static muc_status make(muc_context *ctx, const uint32_t *heads, const uint32_t *kv_heads,
                       const uint32_t *ffn_dims, muc_train_shape *shape)
{
    const muc_model_config *config = &shape->config;

    MUC_TRY(MUC_ARENA_NEW(ctx, &shape->arena, config->layers, &shape->layers));
    MUC_TRY(MUC_ARENA_NEW(ctx, &shape->arena, ((size_t)config->layers + 1) * MUC_LLAMA_TENSOR_COUNT,
                          &shape->tensors));
    for (uint32_t i = 0; i < config->layers; i++) {
        const muc_model_config one = muc_config_of_layer(config, i);

        shape->layers[i].heads = heads ? heads[i] : one.heads;
        shape->layers[i].kv_heads = kv_heads ? kv_heads[i] : one.kv_heads;
        shape->layers[i].ffn_dim = ffn_dims ? ffn_dims[i] : one.ffn_dim;
        MUC_TRY(check(ctx, shape, i));
    }
    MUC_TRY(settle_config(ctx, shape));
    return lay_out(ctx, shape);
}

muc_status muc_train_shape_make(muc_context *ctx, const muc_model_config *config,
                                const uint32_t *heads, const uint32_t *kv_heads,
                                const uint32_t *ffn_dims, muc_train_shape *out)
{
    muc_train_shape shape = { .config = *config };
    const char *particular = muc_config_particular(config);
    muc_status status;

    if (particular)
        return muc_fail(ctx, MUC_UNSUPPORTED, config->architecture, MUC_NO_OFFSET,
                        "it has %s: training takes what is made like Llama or GPT-2", particular);
    status = make(ctx, heads, kv_heads, ffn_dims, &shape);
    if (status == MUC_OK)
        *out = shape;
    else
        muc_train_shape_free(&shape);
    return status;
}

void muc_train_shape_free(muc_train_shape *shape)
{
    muc_arena_free(&shape->arena);
}
